//! A process died in the first commit of its session, between the flush and the exchange: a commit
//! that nobody was told of, whole on the disk. Then stock SQLite wrote the database. dash refused
//! it for ever after, as if both had been acknowledged. As long as the page cache is the one of
//! then, the coordination file tells that it was not (SHADOW-22); after a power loss nothing does,
//! and the choice is the user's.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::common;
use std::path::Path;

use super::common::sim::{OldNames, at_rest, start, tiny};
use super::common::stock::{self, Left};
use super::common::{Content, commit, read};
use dash_shadow::{Connection, LockLevel, ReadOnly};
use dash_simulated::{Everything, Machine, Simulated};
use dash_storage::{Directory, File, OpenMode, Storage};

/// A database at rest, and a process with the first commit of its session flushed and not
/// exchanged.
fn flushed() -> (Machine, Simulated, Connection<Simulated>) {
    let machine = at_rest();
    let (process, mut connection) = start(&machine, &tiny());
    common::write(&mut connection, &[1, 99, 3]).unwrap();
    connection.prepare(None).unwrap();
    connection.flush().unwrap();
    (machine, process, connection)
}

/// It dies there.
fn killed() -> Machine {
    let (machine, process, _connection) = flushed();
    machine.kill(&process);
    machine
}

fn expect(machine: &Machine, content: &Content, story: &str) {
    let (_p, mut connection) = start(machine, &tiny());
    assert_eq!(&read(&mut connection).unwrap(), content, "{story}");
    connection.close().unwrap();
}

#[test]
pub(crate) fn to_what_stock_sqlite_wrote_after_it() {
    for left in stock::ALL {
        let machine = killed();
        let written = stock::commit(&machine, &[1, 2, 3], left);
        assert_eq!(last_page(&machine), 77, "who may only read");
        // For good: the next one has no coordination file to look at, and what comes after a power
        // loss neither.
        for _ in 0..3 {
            expect(&machine, &written, &format!("{left:?}"));
        }
        expect(&machine.power_loss(&mut OldNames), &written, "after a power loss");
        let (_p, mut connection) = start(&machine, &tiny());
        commit(&mut connection, &[5, 5]).unwrap();
        expect(&machine.power_loss(&mut OldNames), &vec![5, 5], "written on");
    }
}

/// The last page, as somebody sees it who may only read.
fn last_page(machine: &Machine) -> u8 {
    let mut reader = ReadOnly::open(&machine.process(), Path::new("/app.db"), false).unwrap();
    reader.lock(LockLevel::Shared).unwrap();
    let mut page = [0; common::PAGE];
    reader.read(&mut page, 2 * common::PAGE as u64).unwrap();
    reader.close().unwrap();
    page[common::PAGE - 1]
}

/// Who could not publish it does not show it either: a stock process may be the next to write.
#[test]
fn and_is_shown_to_nobody_before_it_is_published() {
    let machine = killed();
    let second = |machine: &Machine| {
        let mut reader = ReadOnly::open(&machine.process(), Path::new("/app.db"), false).unwrap();
        reader.lock(LockLevel::Shared).unwrap();
        let mut page = [0; common::PAGE];
        reader.read(&mut page, common::PAGE as u64).unwrap();
        page[common::PAGE - 1]
    };
    assert_eq!(second(&machine), 2);
    expect(&machine, &vec![1, 99, 3], "who may write publishes it");
    assert_eq!(second(&machine), 99);
}

/// Nobody else wrote: it may as well be there.
#[test]
fn but_not_for_nothing() {
    expect(&killed(), &vec![1, 99, 3], "killed");
    expect(&killed().power_loss(&mut Everything), &vec![1, 99, 3], "and a power loss");
}

/// What a coordination file says that a power loss left is of any time before: this one is of an
/// instant before the commit was acknowledged.
#[test]
pub(crate) fn and_not_after_a_power_loss() {
    let (machine, _process, mut connection) = flushed();
    let coordination = |machine: &Machine, mode| {
        let root = machine.process().open_directory(Path::new("/")).unwrap();
        root.open("app.db-dash".as_ref(), mode).unwrap()
    };
    let mut words = vec![0; 4096 * 8];
    coordination(&machine, OpenMode::Read).read_at(&mut words, 0).unwrap();
    connection.publish().unwrap();
    let machine = machine.power_loss(&mut OldNames);
    stock::commit(&machine, &[1, 2, 3], Left::All);
    let create = OpenMode::Create { permissions: 0o644 };
    coordination(&machine, create).write_at(&words, 0).unwrap();
    let refused =
        Connection::open(&machine.process(), Path::new("/app.db"), &tiny()).err().unwrap();
    assert!(refused.to_string().contains("sqlite-dash recover"), "{refused}");
}

/// Who refuses it, because it can't know, leaves what tells others.
#[test]
fn and_not_because_somebody_was_refused() {
    let machine = killed();
    let written = stock::commit(&machine, &[1, 2, 3], Left::All);
    let root = machine.process().open_directory(Path::new("/")).unwrap();
    root.create_directory("app.db-journal".as_ref()).unwrap();
    root.rename("app.db-shadow".as_ref(), "aside".as_ref()).unwrap();
    let refused = Connection::open(&machine.process(), Path::new("/app.db"), &tiny()).err();
    assert!(refused.is_some(), "beside a fence, without a shadow");
    root.rename("aside".as_ref(), "app.db-shadow".as_ref()).unwrap();
    root.remove_directory("app.db-journal".as_ref()).unwrap();
    expect(&machine, &written, "found again");
}
