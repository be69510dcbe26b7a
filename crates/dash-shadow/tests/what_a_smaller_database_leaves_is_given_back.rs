//! SHADOW-26, SHADOW-27: what a smaller database leaves behind its end is given back: of both files
//! at the last close, unless somebody else has them open, and while the database is open as holes,
//! unless a reader needs it. Whenever the power goes, or a process, nothing is lost.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking; its numbers are small"
)]

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex};

use super::common::sim::{start, tiny};
use super::common::{self, Content, PAGE, changes, commit, open, read, read_locked};
use dash_shadow::{Connection, LockLevel};
use dash_simulated::{
    Effect, Everything, Fault, Machine, Nothing, OperationKind, Random, Simulated,
};
use dash_storage::real::Real;

const FILES: [&str; 2] = ["/app.db", "/app.db-shadow"];
/// Enough for the database that is left, with its tail.
const SMALL: usize = 16 << 10;

fn lens(machine: &Machine) -> [usize; 2] {
    FILES.map(|name| machine.file_view(name).unwrap().len())
}

fn large() -> Content {
    (0..120).map(|i| i as u8).collect()
}

/// A session that has made a large database small; `last`: commits after that.
fn shrunk_by(seed: u64, last: u8) -> (Machine, Simulated, Connection<Simulated>, Content) {
    let machine = Machine::new(seed);
    let (process, mut connection) = start(&machine, &tiny());
    commit(&mut connection, &large()).unwrap();
    commit(&mut connection, &large()).unwrap();
    let mut content = vec![5, 6, 7];
    commit(&mut connection, &content).unwrap();
    for i in 0..last {
        content[1] = 100 + i;
        commit(&mut connection, &content).unwrap();
    }
    assert!(lens(&machine).iter().all(|&len| len > 100 << 10));
    (machine, process, connection, content)
}

/// The next session commits, page 1 of any shape, then the power goes: everything that was not
/// flushed, or nothing of it, or any part.
fn goes_on(machine: &Machine, content: &Content, number: usize, what: &str) {
    let machine = machine.killed();
    let (_, mut connection) = start(&machine, &tiny());
    assert_eq!(read(&mut connection).unwrap(), *content, "{what}, {number}");
    let mut next = content.clone();
    (next[0], next[1]) = (number as u8 % 4, 200);
    commit(&mut connection, &next).unwrap();
    let lost = [
        machine.power_loss(&mut Nothing),
        machine.power_loss(&mut Everything),
        machine.power_loss(&mut Random::new(number as u64)),
    ];
    for machine in lost {
        let (_, mut connection) = start(&machine, &tiny());
        assert_eq!(read(&mut connection).unwrap(), next, "{what}, {number}, after a commit");
        commit(&mut connection, content).unwrap();
        connection.close().unwrap();
        assert!(lens(&machine).iter().all(|&len| len <= SMALL), "{what}: {:?}", lens(&machine));
    }
}

/// Whichever length survived, a tail of ours is at the end: else what was there before would be
/// taken for one.
fn assert_tails(machine: &Machine) {
    for name in FILES {
        let bytes = machine.file_view(name).unwrap();
        // The intent; the commit block may never have been needed there.
        assert_eq!(bytes[bytes.len() - 8192..][4..8], *b"DSHI", "{name} has no tail");
    }
}

#[test]
fn at_the_last_close() {
    for last in 0..4 {
        let (machine, _, connection, mut content) = shrunk_by(1, last);
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

/// Not by the first of two to close, nor where so little is left over that the next commits need
/// it.
#[test]
fn not_before_and_not_for_little() {
    let (machine, _, connection, content) = shrunk_by(1, 1);
    let (_, other) = start(&machine, &tiny());
    connection.close().unwrap();
    assert!(lens(&machine).iter().all(|&len| len > 100 << 10), "{:?}", lens(&machine));
    other.close().unwrap();
    assert!(lens(&machine).iter().all(|&len| len <= SMALL), "{:?}", lens(&machine));
    let (_, mut connection) = start(&machine, &tiny());
    let mut more = content.clone();
    more.extend(0..40);
    commit(&mut connection, &more).unwrap();
    more.truncate(38);
    commit(&mut connection, &more).unwrap();
    let before = lens(&machine);
    connection.close().unwrap();
    assert_eq!(lens(&machine), before);
}

/// A18: the power goes before each step of the close, and what survives is drawn: of a cut either
/// all, or the length and each sector for itself.
#[test]
pub fn whenever_the_power_goes_nothing_is_lost() {
    for (last, whole) in (0..3).flat_map(|last| [(last, false), (last, true)]) {
        let (machine, _, connection, content) = shrunk_by(u64::from(last), last);
        machine.set_whole_cuts(whole);
        let cut: Arc<Mutex<Vec<Machine>>> = Arc::default();
        let cuts = Arc::clone(&cut);
        let mut seed = 0;
        machine.watch(move |machine, operation| {
            for _ in 0..if changes(operation.kind) { 4 } else { 0 } {
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
            goes_on(&machine, &content, number, &format!("{last}, {whole}"));
        }
    }
}

/// The process is killed before each step of the close, and the power goes after the next commit.
#[test]
fn whenever_it_is_killed_nothing_is_lost() {
    for step in 0.. {
        let (machine, process, connection, content) = shrunk_by(step, 1);
        let mut steps = 0;
        machine.watch(move |machine, operation| {
            steps += u64::from(changes(operation.kind));
            if steps > step {
                machine.kill(&process);
            }
        });
        let closed = connection.close().is_ok();
        machine.watch(|_, _| {});
        (0..4).for_each(|value| goes_on(&machine, &content, value, &format!("killed at {step}")));
        if closed {
            assert!(step > 20, "{step} steps");
            break;
        }
    }
}

/// Each flush of the close fails in turn, and leaves what it was to flush clean in the cache and
/// not on the disk: the length, too.
#[test]
pub fn a_cut_whose_flush_failed_is_made_again() {
    for whole in [false, true] {
        for flushes in 0.. {
            let (machine, _, connection, content) = shrunk_by(1, 1);
            machine.set_whole_cuts(whole);
            let lost = Fault::new(Effect::LostFlush(5)).on(OperationKind::Flush);
            machine.fail(lost.after(flushes));
            let closed = connection.close().is_ok();
            machine.stop_failing();
            for value in 0..4 {
                goes_on(&machine, &content, value, &format!("flush {flushes}, {whole}"));
            }
            if closed {
                assert!(flushes > 6, "{flushes} flushes");
                break;
            }
        }
    }
}

/// After the close: the first flushes of the next session fail, the ones after that don't.
#[test]
pub fn a_cut_is_durable_whatever_fails_later() {
    for (failing, value) in (0..3).flat_map(|failing| (0..4).map(move |value| (failing, value))) {
        let (machine, _, connection, content) = shrunk_by(1, 1);
        connection.close().unwrap();
        let (_, mut connection) = start(&machine, &tiny());
        let mut next = content.clone();
        (next[0], next[1]) = (value, 200);
        for _ in 0..=failing {
            machine.fail(Fault::new(Effect::LostFlush(5)).on(OperationKind::Flush));
            assert!(commit(&mut connection, &next).is_err());
            machine.stop_failing();
        }
        if commit(&mut connection, &next).is_err() {
            drop(connection);
            let (_, mut connection) = start(&machine, &tiny());
            commit(&mut connection, &next).unwrap();
        }
        for machine in [machine.power_loss(&mut Nothing), machine.power_loss(&mut Everything)] {
            let (_, mut connection) = start(&machine, &tiny());
            assert_eq!(read(&mut connection).unwrap(), next, "{failing}, {value}");
        }
    }
}

fn real_lens(path: &Path) -> [u64; 2] {
    let paths = [path.to_path_buf(), path.with_file_name("app.db-shadow")];
    paths.map(|path| std::fs::metadata(path).unwrap().len())
}

fn blocks(path: &Path) -> [u64; 2] {
    let paths = [path.to_path_buf(), path.with_file_name("app.db-shadow")];
    paths.map(|path| std::fs::metadata(path).unwrap().blocks() * 512)
}

/// Real files of more than 1 MiB, made small in one commit.
fn shrunk_file() -> (tempfile::TempDir, std::path::PathBuf, Connection<Real>) {
    let (folder, path) = common::real();
    let large: Content = (0..1200).map(|i| i as u8).collect();
    let mut connection = open(&Real, path.to_str().unwrap()).unwrap();
    commit(&mut connection, &large).unwrap();
    commit(&mut connection, &large).unwrap();
    commit(&mut connection, &[5, 6, 7]).unwrap();
    (folder, path, connection)
}

/// Whoever has a file open may have it mapped, or read an older and larger state.
#[test]
pub fn not_of_a_file_that_somebody_else_has_open() {
    for (held, name) in ["app.db", "app.db-shadow"].into_iter().enumerate() {
        let (_folder, path, connection) = shrunk_file();
        let before = real_lens(&path);
        let file =
            std::fs::File::open([path.clone(), path.with_file_name("app.db-shadow")][held].clone())
                .unwrap();
        let len = file.metadata().unwrap().len();
        connection.close().unwrap();
        assert_eq!(file.metadata().unwrap().len(), len, "{name} is open");
        assert!(before.contains(&len));
        drop(file);
        let mut connection = open(&Real, path.to_str().unwrap()).unwrap();
        assert_eq!(read(&mut connection).unwrap(), [5, 6, 7]);
        commit(&mut connection, &[5, 6, 8]).unwrap();
        connection.close().unwrap();
        assert!(real_lens(&path).iter().all(|len| *len <= 320 << 10), "{:?}", real_lens(&path));
    }
}

/// While the database is open the copy that a commit has written is given back at once, the other
/// one by the next commit. Neither becomes shorter.
#[test]
fn as_holes_while_it_is_open() {
    let (_folder, path, mut connection) = shrunk_file();
    let lens = real_lens(&path);
    assert!(blocks(&path)[0] <= 320 << 10, "{:?}", blocks(&path));
    commit(&mut connection, &[5, 6, 8]).unwrap();
    assert!(blocks(&path).iter().all(|&bytes| bytes <= 320 << 10), "{:?}", blocks(&path));
    assert_eq!(real_lens(&path), lens);
    let given_back = connection.statistics().given_back_bytes;
    assert!(given_back > 2 << 20, "{given_back}");
    commit(&mut connection, &[5, 6, 9]).unwrap();
    assert_eq!(connection.statistics().given_back_bytes, given_back, "once");
    // And again, when it has grown meanwhile.
    let large: Content = (0..1000).map(|i| (i * 3) as u8).collect();
    commit(&mut connection, &large).unwrap();
    assert_eq!(read(&mut connection).unwrap(), large);
    commit(&mut connection, &large).unwrap();
    commit(&mut connection, &[1, 2]).unwrap();
    commit(&mut connection, &[1, 3]).unwrap();
    assert!(blocks(&path).iter().all(|&bytes| bytes <= 320 << 10), "{:?}", blocks(&path));
    connection.close().unwrap();
    let mut connection = open(&Real, path.to_str().unwrap()).unwrap();
    assert_eq!(read(&mut connection).unwrap(), [1, 3]);
}

/// Whether a copy holds anything between the database and its tail.
fn is_filled(machine: &Machine, name: &str, pages: usize) -> bool {
    let bytes = machine.file_view(name).unwrap();
    let end = (pages * PAGE).next_multiple_of(4096);
    bytes[end..bytes.len() - 8192].iter().any(|&byte| byte != 0)
}

/// A reader of an older state of the copy keeps it; when it has left, the next commit there gives
/// it back, whoever commits.
#[test]
pub fn nothing_that_a_reader_needs() {
    let machine = Machine::new(3);
    let (_, mut writer) = start(&machine, &tiny());
    let (_, mut other) = start(&machine, &tiny());
    let (_, mut reader) = start(&machine, &tiny());
    commit(&mut writer, &large()).unwrap();
    commit(&mut writer, &large()).unwrap();
    reader.lock(LockLevel::Shared).unwrap();
    for i in 0..4 {
        commit(if i % 2 == 0 { &mut writer } else { &mut other }, &[5, 6, i]).unwrap();
        assert_eq!(read_locked(&mut reader).unwrap(), large(), "after commit {i}");
    }
    assert!(FILES.iter().any(|name| is_filled(&machine, name, 3)), "nothing was kept");
    reader.unlock(LockLevel::None).unwrap();
    commit(&mut other, &[5, 6, 8]).unwrap();
    commit(&mut writer, &[5, 6, 9]).unwrap();
    assert!(!FILES.iter().any(|name| is_filled(&machine, name, 3)));
    assert_eq!(read(&mut reader).unwrap(), [5, 6, 9]);
}

/// The list of a commit that changes many places, and makes the database smaller, lies where that
/// was.
#[test]
pub fn nor_the_page_list() {
    let machine = Machine::new(3);
    let (_, mut writer) = start(&machine, &tiny());
    let mut content: Content = (0..1200).map(|i| i as u8).collect();
    commit(&mut writer, &content).unwrap();
    commit(&mut writer, &content).unwrap();
    content.truncate(600);
    for round in 0..4 {
        for page in content.iter_mut().skip(round % 2).step_by(2) {
            *page = page.wrapping_add(1);
        }
        commit(&mut writer, &content).unwrap();
        for machine in [machine.power_loss(&mut Nothing), machine.power_loss(&mut Everything)] {
            let (_, mut connection) = start(&machine, &tiny());
            assert_eq!(read(&mut connection).unwrap(), content, "after commit {round}");
        }
    }
}

/// The power goes after each step of commits that give space back.
#[test]
fn whenever_the_power_goes_holes_lose_nothing() {
    let (machine, _, mut connection, mut content) = shrunk_by(5, 0);
    let mut seed = 0;
    let known: Arc<Mutex<Vec<Content>>> = Arc::new(Mutex::new(vec![content.clone()]));
    let allowed = Arc::clone(&known);
    machine.watch(move |machine, operation| {
        if !changes(operation.kind) {
            return;
        }
        for _ in 0..3 {
            seed += 1;
            let machine = machine.power_loss(&mut Random::new(seed));
            let (_, mut connection) = start(&machine, &tiny());
            let seen = read(&mut connection).unwrap();
            assert!(allowed.lock().unwrap().contains(&seen), "{seen:?}");
        }
    });
    let sizes = [30, 100, 8, 8, 60, 4, 90, 3, 3, 3];
    for (round, &pages) in sizes.iter().enumerate() {
        content = (0..pages).map(|i| (i + round) as u8).collect();
        known.lock().unwrap().push(content.clone());
        commit(&mut connection, &content).unwrap();
        *known.lock().unwrap() = vec![content.clone()];
        assert_eq!(read(&mut connection).unwrap(), content);
    }
}
