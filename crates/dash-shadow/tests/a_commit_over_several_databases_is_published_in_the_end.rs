//! An exchange that fails in the second phase of a transaction over two databases (ATTACH). SQLite
//! has deleted the super-journal by then, passes over the error and says that it has committed. The
//! engine took the error for its own commit's and undid the one database: half of an acknowledged
//! transaction was lost, without any power loss. It has to be published later: by the same
//! connection, or by whoever comes next.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::ffi::OsStr;
use std::path::Path;

use super::common::sim::tiny;
use super::common::{PAGE, commit, read, read_locked, write};
use dash_shadow::{Connection, LockLevel};
use dash_simulated::{Effect, Fault, Machine, Nothing, OperationKind, Random};
use dash_storage::{Directory, OpenMode, Storage};

const SUPER: &str = "app.db-mj1";
const OLD: [u8; 3] = [1, 2, 3];
const NEW: [u8; 4] = [9, 2, 8, 7];

/// Commits up to the end of the super-journal; then the exchange fails, once or for ever.
fn unpublished(forever: bool) -> (Machine, Connection<dash_simulated::Simulated>) {
    let machine = Machine::new(1);
    let process = machine.process();
    let mut connection = Connection::open(&process, Path::new("/app.db"), &tiny()).unwrap();
    commit(&mut connection, &OLD).unwrap();
    commit(&mut connection, &OLD).unwrap();
    write(&mut connection, &NEW).unwrap();
    let root = process.open_directory(Path::new("/")).unwrap();
    drop(root.open(SUPER.as_ref(), OpenMode::CreateNew { permissions: 0o644 }).unwrap());
    root.flush().unwrap();
    connection.prepare(Some(OsStr::new(SUPER))).unwrap();
    connection.flush().unwrap();
    root.unlink(SUPER.as_ref()).unwrap();
    root.flush().unwrap();
    let fault = Fault::new(Effect::Error(5)).on(OperationKind::Exchange);
    machine.fail(if forever { fault.forever() } else { fault });
    connection.publish().unwrap_err();
    connection.unlock(LockLevel::None).unwrap();
    (machine, connection)
}

#[test]
pub(crate) fn by_the_same_connection() {
    let (_machine, mut connection) = unpublished(false);
    assert_eq!(read(&mut connection).unwrap(), NEW);
    commit(&mut connection, &OLD).unwrap();
    assert_eq!(read(&mut connection).unwrap(), OLD);
}

#[test]
fn not_before_it_can_be_and_the_old_state_is_not_shown_meanwhile() {
    let (machine, mut connection) = unpublished(true);
    assert!(read(&mut connection).is_err());
    machine.stop_failing();
    assert_eq!(read(&mut connection).unwrap(), NEW);
    connection.close().unwrap();
    assert_eq!(machine.file_view("/app.db").unwrap()[PAGE - 1], NEW[0]);
}

#[test]
pub(crate) fn by_another_writer() {
    let (machine, connection) = unpublished(true);
    machine.stop_failing();
    let process = machine.process();
    let mut other = Connection::open(&process, Path::new("/app.db"), &tiny()).unwrap();
    // Reading comes first, and shows no state that another database of the transaction has left.
    other.lock(LockLevel::Shared).unwrap();
    assert_eq!(read_locked(&mut other).unwrap(), NEW);
    other.lock(LockLevel::Reserved).unwrap();
    other.unlock(LockLevel::None).unwrap();
    assert_eq!(read(&mut other).unwrap(), NEW);
    drop(connection);
}

#[test]
fn by_the_next_opener_after_a_power_loss() {
    let (machine, _connection) = unpublished(true);
    for fate in 0..20 {
        let after = match fate {
            0 => machine.power_loss(&mut Nothing),
            _ => machine.power_loss(&mut Random::new(fate)),
        };
        let process = after.process();
        let mut opener = Connection::open(&process, Path::new("/app.db"), &tiny()).unwrap();
        assert_eq!(read(&mut opener).unwrap(), NEW, "fate {fate}");
    }
}
