//! SEC3: at a clean close after `PRAGMA secure_delete` the shadow is brought up to the current
//! copy, and what a smaller database left behind its end is overwritten. Cut before every step of
//! that, or with any call failing: no commit is lost, and stock SQLite finds one state or is kept
//! out.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking; its numbers are small"
)]

use std::path::Path;
use std::sync::{Arc, Mutex};

use super::common::{Content, PAGE, changes, commit, read, value_of};
use dash_shadow::{Connection, Error, OpenOptions, Tuning};
use dash_simulated::{Effect, Fault, Machine, Random, Simulated};

const EIO: i32 = 5;

fn open(process: &Simulated) -> Result<Connection<Simulated>, Error> {
    let options = OpenOptions { tuning: Tuning::tiny(), ..OpenOptions::default() };
    Connection::open(process, Path::new("/app.db"), &options)
}

/// What stock SQLite would read of `app.db`, if nothing keeps it out; pages that are torn are
/// `None`.
fn stock(machine: &Machine) -> Option<Vec<Option<u8>>> {
    let bytes = machine.file_view("/app.db")?;
    if machine.exists("/app.db-journal")
        || !bytes.starts_with(b"SQLite format 3\0")
        || bytes[19] > 2
    {
        return None;
    }
    let pages = u32::from_be_bytes(bytes[28..32].try_into().unwrap()) as usize;
    let page = |number: usize| &bytes[(number - 1) * PAGE..number * PAGE];
    Some((1..=pages).map(|number| value_of(number, page(number), false)).collect())
}

fn check(after: &Machine, states: &[Content], story: &str) {
    if let Some(seen) = stock(after) {
        let known =
            states.iter().any(|state| seen.iter().copied().eq(state.iter().map(|&v| Some(v))));
        assert!(known, "{story}: stock SQLite reads {seen:?}");
    }
    let mut recovered = open(&after.process()).unwrap_or_else(|error| panic!("{story}: {error}"));
    assert_eq!(&read(&mut recovered).unwrap(), states.last().unwrap(), "{story}");
}

/// A session that deletes; its connection, and the states that were committed.
fn session(machine: &Machine, commits: usize) -> (Connection<Simulated>, Vec<Content>) {
    let mut states: Vec<Content> = vec![(1..40).collect()];
    let mut connection = open(&machine.process()).unwrap();
    commit(&mut connection, &states[0]).unwrap();
    connection.close().unwrap();
    let mut connection = open(&machine.process()).unwrap();
    connection.set_secure_delete(true);
    for i in 0..commits {
        let mut next = states.last().unwrap().clone();
        next[3 + i] = 200 + i as u8;
        next.truncate(next.len() - 5);
        commit(&mut connection, &next).unwrap();
        states.push(next);
    }
    (connection, states)
}

#[test]
fn wherever_the_power_goes() {
    for commits in 1..4 {
        let machine = Machine::new(commits as u64);
        let (connection, states) = session(&machine, commits);
        let cuts = Arc::new(Mutex::new(0_u64));
        let counted = Arc::clone(&cuts);
        let known = states.clone();
        machine.watch(move |machine, operation| {
            if !changes(operation.kind) {
                return;
            }
            *counted.lock().unwrap() += 1;
            for fate in 0..6 {
                let seed = *counted.lock().unwrap() * 10 + fate;
                let after = machine.power_loss(&mut Random::new(seed));
                check(&after, &known, &format!("{commits} commits, fate {seed}"));
            }
        });
        connection.close().unwrap();
        machine.watch(|_, _| {});
        assert!(*cuts.lock().unwrap() > 8);
        check(&machine, &states, "closed");
        // Neither file has a page, or a place behind the end, of an older state.
        let size = states.last().unwrap().len() * PAGE;
        for name in ["/app.db", "/app.db-shadow"] {
            let bytes = machine.file_view(name).unwrap();
            for old in 36..40_u8 {
                assert!(
                    !bytes.windows(PAGE / 2).any(|part| part.iter().all(|&b| b == old)),
                    "{name}: {old}"
                );
            }
            assert!(bytes.len() > size);
        }
    }
}

#[test]
fn whichever_call_fails() {
    for effect in [Effect::Error(EIO), Effect::LostFlush(EIO), Effect::ShortWrite(512, 28)] {
        for forever in [false, true] {
            for number in 0.. {
                let machine = Machine::new(number);
                let (connection, mut states) = session(&machine, 2);
                let fault = Fault::new(effect);
                let fault = if forever { fault.forever() } else { fault };
                let start = machine.steps();
                machine.fail(fault.after(number));
                drop(connection.close());
                let met = machine.steps() - start > number;
                machine.stop_failing();
                let story = format!("{effect:?} at {number}, forever: {forever}");
                check(&machine.power_loss(&mut Random::new(number)), &states, &story);
                let mut again = open(&machine.process()).unwrap();
                assert_eq!(&read(&mut again).unwrap(), states.last().unwrap(), "{story}");
                states.push(vec![7; 9]);
                commit(&mut again, &states[3]).unwrap();
                check(&machine.power_loss(&mut Random::new(number)), &states, &story);
                if !met {
                    assert!(number > 8, "{story}");
                    break;
                }
            }
        }
    }
}
