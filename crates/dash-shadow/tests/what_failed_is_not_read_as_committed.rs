//! SHADOW-13: after a commit that failed everybody reads the last acknowledged state, or gets an
//! error; also where nothing can be written any more, so that the failed one can't be undone and
//! looks whole in the page cache.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking; its numbers are small"
)]

use std::path::Path;

use super::common::sim::{read_only, start, tiny};
use super::common::{commit, read, write};
use dash_shadow::{Connection, LockLevel};
use dash_simulated::{Effect, Everything, Fault, Machine, Nothing, OperationKind, Simulated};

const ACKNOWLEDGED: [u8; 3] = [2, 1, 1];
const EROFS: i32 = 30;
const EIO: i32 = 5;
const ENOSPC: i32 = 28;

/// A commit whose flush fails; so many writes later the file system turns read-only.
fn failed(writes: u64) -> (Machine, Simulated, Connection<Simulated>) {
    let machine = Machine::new(1);
    let (process, mut a) = start(&machine, &tiny());
    commit(&mut a, &[1, 1, 1]).unwrap();
    commit(&mut a, &ACKNOWLEDGED).unwrap();
    write(&mut a, &[3, 9, 9]).unwrap();
    a.prepare(None).unwrap();
    machine.fail(Fault::new(Effect::LostFlush(EIO)).on(OperationKind::Flush).forever());
    machine.fail(Fault::new(Effect::Error(EROFS)).on(OperationKind::Write).after(writes).forever());
    machine.fail(Fault::new(Effect::Error(EROFS)).on(OperationKind::Unlink).forever());
    assert!(a.flush().is_err());
    a.unlock(LockLevel::None).unwrap();
    (machine, process, a)
}

/// After how many writes the undo is through.
const WRITES: u64 = 20;

#[test]
fn by_the_connection_that_failed() {
    for writes in 0..WRITES {
        let (_machine, _, mut a) = failed(writes);
        assert_eq!(read(&mut a).unwrap(), ACKNOWLEDGED, "after {writes} writes");
    }
}

/// Who may only read, as everybody does once the file system has turned read-only.
#[test]
fn by_a_reader_that_comes_later() {
    for writes in 0..WRITES {
        for killed in [false, true] {
            let (machine, process, a) = failed(writes);
            if killed {
                machine.kill(&process);
                drop(a);
            } else {
                let _nothing_can_be_written = a.close();
            }
            let found = read_only(&machine).unwrap();
            assert_eq!(found, ACKNOWLEDGED, "after {writes} writes, killed: {killed}");
        }
    }
}

/// Who opens it for writing when the device is well again, and whoever comes after that.
#[test]
fn by_a_writer_that_comes_later() {
    for writes in 0..WRITES {
        for killed in [false, true] {
            let (machine, process, a) = failed(writes);
            if killed {
                machine.kill(&process);
                drop(a);
            } else {
                let _nothing_can_be_written = a.close();
            }
            let story = format!("after {writes} writes, killed: {killed}");
            // One that fails in the middle of its recovery.
            let _fails = Connection::open(&machine.process(), Path::new("/app.db"), &tiny());
            machine.stop_failing();
            let (_p, mut b) = start(&machine, &tiny());
            assert_eq!(read(&mut b).unwrap(), ACKNOWLEDGED, "{story}");
            let after = machine.power_loss(&mut Everything);
            let (_q, mut c) = start(&after, &tiny());
            assert_eq!(read(&mut c).unwrap(), ACKNOWLEDGED, "{story}, power lost");
            commit(&mut b, &[4, 4]).unwrap();
            assert_eq!(read(&mut b).unwrap(), [4, 4], "{story}");
        }
    }
}

/// One that had it open all the time and writes when the device is well again.
#[test]
fn by_a_connection_that_was_there() {
    for writes in 0..WRITES {
        for closed in [false, true] {
            let (machine, _, a) = failed(writes);
            let mut kept = Some(a);
            let (_p, mut b) = start(&machine, &tiny());
            if closed && let Some(a) = kept.take() {
                a.close().unwrap();
            }
            machine.stop_failing();
            let story = format!("after {writes} writes, closed: {closed}");
            assert_eq!(read(&mut b).unwrap(), ACKNOWLEDGED, "{story}");
            b.lock(LockLevel::Shared).unwrap();
            b.lock(LockLevel::Reserved).unwrap();
            b.unlock(LockLevel::None).unwrap();
            assert_eq!(read(&mut b).unwrap(), ACKNOWLEDGED, "{story}");
            commit(&mut b, &[4, 4]).unwrap();
            assert_eq!(read(&mut b).unwrap(), [4, 4], "{story}");
        }
    }
}

/// The one that failed goes on when the device is well again, with or without a lock call in
/// between (locking_mode=EXCLUSIVE), and whatever it could not undo leaves no trace.
#[test]
fn by_the_connection_that_failed_once_it_writes_again() {
    for writes in 0..WRITES {
        for locked in [false, true] {
            let machine = Machine::new(1);
            let (_p, mut a) = start(&machine, &tiny());
            commit(&mut a, &[1, 1, 1, 1]).unwrap();
            commit(&mut a, &[2, 1, 1, 1]).unwrap();
            write(&mut a, &[3, 9, 9, 1]).unwrap();
            a.prepare(None).unwrap();
            machine.fail(Fault::new(Effect::LostFlush(EIO)).on(OperationKind::Flush).forever());
            let full = Fault::new(Effect::Error(ENOSPC)).on(OperationKind::Write);
            machine.fail(full.after(writes).forever());
            assert!(a.flush().is_err());
            if !locked {
                a.unlock(LockLevel::None).unwrap();
            }
            machine.stop_failing();
            let story = format!("after {writes} writes, locked: {locked}");
            // Touches other pages than the one that failed.
            commit(&mut a, &[4, 1, 1, 5]).unwrap_or_else(|error| panic!("{story}: {error}"));
            assert_eq!(read(&mut a).unwrap(), [4, 1, 1, 5], "{story}");
            let after = machine.power_loss(&mut Nothing);
            let (_q, mut b) = start(&after, &tiny());
            assert_eq!(read(&mut b).unwrap(), [4, 1, 1, 5], "{story}, power lost");
            a.close().unwrap();
            let (_q, mut b) = start(&machine, &tiny());
            assert_eq!(read(&mut b).unwrap(), [4, 1, 1, 5], "{story}, closed");
        }
    }
}
