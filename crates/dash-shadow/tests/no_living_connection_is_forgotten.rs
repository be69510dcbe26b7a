//! A13, A15: who opens or closes must know of every connection that is
//! alive, whatever became of the files it has open and of their names.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking; its numbers are small"
)]

use std::path::Path;

use super::common::sim::{
    STEPS_OF_AN_EXCHANGE, is_step_of_an_exchange, read_only, start, tiny, without_exchange,
};
use super::common::{Content, commit, read, read_locked};
use dash_shadow::{Connection, Error, LockLevel};
use dash_simulated::{Effect, Fault, Machine, Simulated};
use dash_storage::{Directory, Storage};

/// A database that `idle` has open, whose two files were both made anew since it looked.
fn idle_while_both_are_made_anew()
-> (Machine, Connection<Simulated>, Simulated, Connection<Simulated>) {
    let machine = Machine::new(1);
    let (_p, mut idle) = start(&machine, &tiny());
    commit(&mut idle, &[1, 1]).unwrap();
    let (q, mut b) = start(&machine, &tiny());
    for i in 0..2 {
        q.open_directory(Path::new("/")).unwrap().unlink("app.db-shadow".as_ref()).unwrap();
        commit(&mut b, &[2 + i, 1]).unwrap();
    }
    (machine, idle, q, b)
}

/// A13: the others close; the last of them must not take itself for the last of all.
#[test]
fn a13_an_idle_connection_is_not_forgotten() {
    let (machine, mut idle, _q, b) = idle_while_both_are_made_anew();
    b.close().unwrap();
    let root = machine.process().open_directory(Path::new("/")).unwrap();
    assert!(root.metadata("app.db-dash".as_ref()).unwrap().is_some(), "removed under it");
    let (_r, mut c) = start(&machine, &tiny());
    commit(&mut c, &[8, 1]).unwrap();
    assert_eq!(read(&mut idle).unwrap(), [8, 1]);
    c.lock(LockLevel::Reserved).unwrap();
    let second = idle.lock(LockLevel::Reserved);
    assert!(matches!(second, Err(Error::Busy)), "two writers at once: {second:?}");
}

/// A13, without anybody closing: who opens next must not take itself for the first one.
#[test]
fn a13_an_opener_sees_an_idle_connection() {
    // How often the pair changes after that decides whether an idle connection would notice it.
    for changes in 0..6 {
        let (machine, mut idle, q, b) = idle_while_both_are_made_anew();
        machine.kill(&q);
        drop(b);
        let (r, mut c) = start(&machine, &tiny());
        for i in 0..changes {
            r.open_directory(Path::new("/")).unwrap().unlink("app.db-shadow".as_ref()).unwrap();
            commit(&mut c, &[20 + i, 1]).unwrap();
        }
        commit(&mut c, &[8, 1]).unwrap();
        assert_eq!(read(&mut idle).unwrap(), [8, 1], "after {changes} changes");
    }
}

/// A writer without RENAME_EXCHANGE that is killed before one of its three renames, and a reader
/// that is alive.
fn killed_before_rename(links: bool, which: usize) -> (Machine, Connection<Simulated>) {
    let machine = without_exchange(links);
    let (killed, mut victim) = start(&machine, &tiny());
    commit(&mut victim, &[1, 2, 3]).unwrap();
    let (_q, reader) = start(&machine, &tiny());
    let victims = killed.clone();
    let mut seen = 0;
    machine.watch(move |machine, operation| {
        if is_step_of_an_exchange(operation) {
            seen += 1;
            if seen == which {
                machine.kill(&victims);
            }
        }
    });
    let _ = commit(&mut victim, &[2, 2, 3]);
    machine.watch(|_, _| {});
    (machine, reader)
}

/// A15: killed between the renames with only readers alive: others open the database, read it, and
/// write it.
#[test]
fn a15_openers_join_readers_between_the_three_renames() {
    for (links, which) in STEPS_OF_AN_EXCHANGE {
        let (machine, mut reader) = killed_before_rename(links, which);
        let states: [Content; 2] = [vec![1, 2, 3], vec![2, 2, 3]];
        assert_eq!(read(&mut reader).unwrap(), states[0], "killed before rename {which}");
        assert!(!reader.has_moved().unwrap(), "killed before rename {which}");
        assert!(states.contains(&read_only(&machine).unwrap()), "killed before rename {which}");
        let (_r, mut opener) = start(&machine, &tiny());
        assert_eq!(read(&mut opener).unwrap(), states[0], "killed before rename {which}");
        let mut written = Err(Error::Busy);
        for _ in 0..3 {
            written = commit(&mut opener, &[7, 7]);
            if written.is_ok() {
                break;
            }
        }
        written.unwrap();
        assert_eq!(read(&mut reader).unwrap(), [7, 7]);
        reader.close().unwrap();
        opener.close().unwrap();
        assert_eq!(read_only(&machine).unwrap(), [7, 7]);
    }
}

/// A connection that has to look for its files anew (somebody made a new shadow while it idled)
/// finds the one that lies under the temporary name.
#[test]
fn a_file_is_found_between_the_three_renames() {
    for (links, which) in STEPS_OF_AN_EXCHANGE {
        let machine = without_exchange(links);
        let (killed, mut victim) = start(&machine, &tiny());
        commit(&mut victim, &[1, 1]).unwrap();
        let (_q, mut idle) = start(&machine, &tiny());
        let root = killed.open_directory(Path::new("/")).unwrap();
        root.unlink("app.db-shadow".as_ref()).unwrap();
        commit(&mut victim, &[2, 1]).unwrap();
        commit(&mut victim, &[3, 1]).unwrap();
        let victims = killed.clone();
        let mut seen = 0;
        machine.watch(move |machine, operation| {
            if is_step_of_an_exchange(operation) {
                seen += 1;
                if seen == which {
                    machine.kill(&victims);
                }
            }
        });
        let _ = commit(&mut victim, &[4, 1]);
        machine.watch(|_, _| {});
        drop(victim);
        assert_eq!(read(&mut idle).unwrap(), [3, 1], "killed before rename {which}");
        // It sees that the commit was whole, so its snapshot is too old to write on.
        let begun = idle.lock(LockLevel::Reserved);
        assert!(matches!(begun, Err(Error::BusySnapshot)), "{begun:?}");
        idle.unlock(LockLevel::None).unwrap();
        idle.lock(LockLevel::Exclusive).unwrap();
        assert_eq!(read_locked(&mut idle).unwrap(), [4, 1], "killed before rename {which}");
    }
}

/// A rename that fails leaves both names in their places, and the next commit finds them.
#[test]
fn a_failed_rename_is_taken_back() {
    for (links, which) in STEPS_OF_AN_EXCHANGE {
        let machine = without_exchange(links);
        let (_p, mut a) = start(&machine, &tiny());
        commit(&mut a, &[1, 1]).unwrap();
        let mut seen = 0;
        machine.watch(move |machine, operation| {
            if is_step_of_an_exchange(operation) {
                seen += 1;
                if seen == which {
                    machine.fail(Fault::new(Effect::Error(5)).on(operation.kind));
                }
            }
        });
        let failed = commit(&mut a, &[2, 1]);
        machine.stop_failing();
        let root = machine.process().open_directory(Path::new("/")).unwrap();
        for name in ["app.db", "app.db-shadow"] {
            assert!(root.metadata(name.as_ref()).unwrap().is_some(), "{name}, rename {which}");
        }
        let now = read(&mut a).unwrap();
        assert_eq!(now, if failed.is_ok() { [2, 1] } else { [1, 1] });
        commit(&mut a, &[3, 1]).unwrap();
        assert_eq!(read(&mut a).unwrap(), [3, 1], "rename {which} failed");
    }
}
