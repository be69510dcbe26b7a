//! SHADOW-25: what a smaller database leaves behind its end is given back at the last close, of
//! both files, unless somebody else has them open; and whenever the power goes, nothing is lost.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking; its numbers are small"
)]

mod common;

use std::sync::{Arc, Mutex};

use common::sim::{start, tiny};
use common::{Content, commit, open, read};
use dash_storage::real::Real;
use dash_storage::simulated::{Machine, Random, Simulated};

const FILES: [&str; 2] = ["/app.db", "/app.db-shadow"];
/// Enough for the database that is left, with its tail.
const SMALL: usize = 16 << 10;

fn lens(machine: &Machine) -> [usize; 2] {
    FILES.map(|name| machine.file_view(name).unwrap().len())
}

/// Whichever length survived, a tail of ours is at the end: else whatever was there before would be
/// taken for one.
fn assert_tails(machine: &Machine) {
    for name in FILES {
        let bytes = machine.file_view(name).unwrap();
        // The intent; the commit block may never have been needed there.
        assert_eq!(bytes[bytes.len() - 8192..][4..8], *b"DSHI", "{name} has no tail");
    }
}

/// A session that has made a large database small; `last`: commits after that.
fn shrunk(last: u8) -> (Machine, dash_shadow::Connection<Simulated>, Content) {
    let machine = Machine::new(u64::from(last));
    let (_, mut connection) = start(&machine, &tiny());
    let large: Content = (0..120).map(|i| i as u8).collect();
    commit(&mut connection, &large).unwrap();
    commit(&mut connection, &large).unwrap();
    let mut content = vec![5, 6, 7];
    commit(&mut connection, &content).unwrap();
    for i in 0..last {
        content[1] = 100 + i;
        commit(&mut connection, &content).unwrap();
    }
    assert!(lens(&machine).iter().all(|&len| len > 100 << 10));
    (machine, connection, content)
}

#[test]
fn at_the_last_close() {
    for last in 0..4 {
        let (machine, connection, mut content) = shrunk(last);
        connection.close().unwrap();
        assert!(lens(&machine).iter().all(|&len| len <= SMALL), "{:?}", lens(&machine));
        for round in 0..3 {
            let (_, mut connection) = start(&machine, &tiny());
            assert_eq!(read(&mut connection).unwrap(), content);
            content[2] = round;
            if round == 1 {
                content.extend(0..50);
            }
            commit(&mut connection, &content).unwrap();
            connection.close().unwrap();
        }
    }
}

/// The power goes before each step of the close, and what survives is drawn: of a cut either all,
/// or the length and each sector for itself.
#[test]
pub fn whenever_the_power_goes_nothing_is_lost() {
    for (last, whole) in (0..3).flat_map(|last| [(last, false), (last, true)]) {
        let (machine, connection, content) = shrunk(last);
        machine.set_whole_cuts(whole);
        let cut: Arc<Mutex<Vec<Machine>>> = Arc::default();
        let cuts = Arc::clone(&cut);
        let mut seed = 0;
        machine.watch(move |machine, _| {
            for _ in 0..6 {
                seed += 1;
                cuts.lock().unwrap().push(machine.power_loss(&mut Random::new(seed)));
            }
        });
        connection.close().unwrap();
        machine.watch(|_, _| {});
        let after = (100..140).map(|seed| machine.power_loss(&mut Random::new(seed)));
        let machines: Vec<_> = std::mem::take(&mut *cut.lock().unwrap());
        assert!(machines.len() > 100);
        for (number, machine) in machines.into_iter().chain(after).enumerate() {
            if whole {
                assert_tails(&machine);
            }
            let (_, mut connection) = start(&machine, &tiny());
            assert_eq!(read(&mut connection).unwrap(), content, "{last}, {number}");
            let mut next = content.clone();
            next[1] = 200;
            commit(&mut connection, &next).unwrap();
            connection.close().unwrap();
            let machine = machine.power_loss(&mut Random::new(number as u64));
            let (_, mut connection) = start(&machine, &tiny());
            assert_eq!(read(&mut connection).unwrap(), next, "{last}, {number}, after a commit");
        }
    }
}

/// Whoever has a file open may have it mapped, or read an older and larger state.
#[test]
pub fn not_of_a_file_that_somebody_else_has_open() {
    for (held, name) in ["app.db", "app.db-shadow"].into_iter().enumerate() {
        let (_folder, path) = common::real();
        let large: Content = (0..240).map(|i| i as u8).collect();
        let mut connection = open(&Real, path.to_str().unwrap()).unwrap();
        commit(&mut connection, &large).unwrap();
        commit(&mut connection, &large).unwrap();
        commit(&mut connection, &[5, 6, 7]).unwrap();
        let paths = [path.clone(), path.with_file_name("app.db-shadow")];
        let lens = || paths.clone().map(|path| std::fs::metadata(path).unwrap().len());
        let before = lens();
        let file = std::fs::File::open(&paths[held]).unwrap();
        connection.close().unwrap();
        let mut after = lens();
        after.sort_unstable();
        let mut same = before;
        same.sort_unstable();
        assert_eq!(after, same, "{name} is open");
        drop(file);
        let mut connection = open(&Real, path.to_str().unwrap()).unwrap();
        assert_eq!(read(&mut connection).unwrap(), [5, 6, 7]);
        commit(&mut connection, &[5, 6, 8]).unwrap();
        connection.close().unwrap();
        assert!(lens().iter().all(|len| *len <= 64 << 10), "{:?}", lens());
    }
}
