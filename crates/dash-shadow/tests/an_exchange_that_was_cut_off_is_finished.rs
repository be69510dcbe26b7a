//! Where names can't be exchanged in one step, a writer may be killed between two steps, and a
//! stock process may look at what it left.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking; its numbers are small"
)]

use super::common;
use std::path::Path;

use super::common::sim::{
    OldNames, STEPS_OF_AN_EXCHANGE, kill_at_step, read_only, start, tiny, without_exchange,
};
use super::common::{Content, commit, read, write};
use dash_shadow::inspect::{Opening, Refusal};
use dash_shadow::{Connection, LockLevel, ReadOnly, inspect};
use dash_simulated::{Machine, Simulated};
use dash_storage::{Directory, File, OpenMode, Storage};

const BEFORE: [u8; 3] = [1, 2, 3];
const AFTER: [u8; 3] = [2, 2, 3];

/// Where a writer was killed before one of the steps of its exchange, with a reader or without.
fn killed_before(
    (links, step): (bool, usize),
    with_reader: bool,
) -> (Machine, Option<Connection<Simulated>>) {
    let machine = without_exchange(links);
    let (killed, mut victim) = start(&machine, &tiny());
    commit(&mut victim, &BEFORE).unwrap();
    let reader = with_reader.then(|| start(&machine, &tiny()).1);
    kill_at_step(&machine, killed, step);
    assert!(commit(&mut victim, &AFTER).is_err(), "killed before step {step}");
    machine.watch(|_, _| {});
    (machine, reader)
}

/// A stock process opens `app.db`, and so makes an empty one if the name is missing.
fn stock_opens(machine: &Machine) {
    let root = machine.process().open_directory(Path::new("/")).unwrap();
    root.open("app.db".as_ref(), OpenMode::Create { permissions: 0o644 }).unwrap();
}

/// With a second name instead of the first rename there is no instant without `app.db`.
#[test]
fn with_links_the_database_always_has_its_name() {
    for step in 1..=3 {
        let (machine, _) = killed_before((true, step), false);
        let view = machine.file_view("app.db").unwrap();
        assert!(view.starts_with(b"SQLite format 3\0"), "killed before step {step}");
    }
}

#[test]
fn an_empty_file_that_a_stock_process_made_is_not_the_database() {
    for cut in STEPS_OF_AN_EXCHANGE {
        let (machine, _) = killed_before(cut, false);
        stock_opens(&machine);
        assert!(!matches!(
            inspect(&machine.process(), Path::new("/app.db")).unwrap().opening,
            Opening::Refuse(..) | Opening::HardLinks(_)
        ));
        // As far as it is published.
        assert!(
            [BEFORE, AFTER].map(Content::from).contains(&read_only(&machine).unwrap()),
            "{cut:?}"
        );
        let (_p, mut opener) = start(&machine, &tiny());
        assert_eq!(read(&mut opener).unwrap(), AFTER, "{cut:?}");
        commit(&mut opener, &[7, 7]).unwrap();
        opener.close().unwrap();
        assert_eq!(read_only(&machine).unwrap(), [7, 7]);
        assert!(machine.file_view("app.db-shadow-tmp").is_none(), "{cut:?}");
    }
}

#[test]
fn nor_is_it_for_connections_that_are_alive() {
    for cut in STEPS_OF_AN_EXCHANGE {
        let (machine, reader) = killed_before(cut, true);
        stock_opens(&machine);
        let mut reader = reader.unwrap();
        assert_eq!(read(&mut reader).unwrap(), BEFORE, "{cut:?}");
        assert!(!reader.has_moved().unwrap(), "{cut:?}");
        assert!(
            [BEFORE, AFTER].map(Content::from).contains(&read_only(&machine).unwrap()),
            "{cut:?}"
        );
        let (_p, mut opener) = start(&machine, &tiny());
        assert_eq!(read(&mut opener).unwrap(), BEFORE, "{cut:?}");
        let written = (0..3).find(|_| commit(&mut opener, &[7, 7]).is_ok());
        assert!(written.is_some(), "{cut:?}");
        assert_eq!(read(&mut reader).unwrap(), [7, 7], "{cut:?}");
        reader.close().unwrap();
        opener.close().unwrap();
        assert_eq!(read_only(&machine).unwrap(), [7, 7]);
        assert!(machine.file_view("app.db-shadow-tmp").is_none(), "{cut:?}");
    }
}

/// A stock process makes `app.db` while it has no name, and writes it: one of the two would be
/// lost.
#[test]
pub(crate) fn what_a_stock_process_wrote_there_is_refused() {
    for torn in [false, true] {
        let (machine, _) = killed_before((false, 3), false);
        assert!(!machine.exists("/app.db"));
        let root = machine.process().open_directory(Path::new("/")).unwrap();
        let mut foreign = machine.file_view("app.db-shadow-tmp").unwrap();
        foreign[100..].fill(0);
        let made = root.open("app.db".as_ref(), OpenMode::Create { permissions: 0o644 }).unwrap();
        made.write_at(&foreign[..common::PAGE], 0).unwrap();
        if torn {
            // Nothing else tells of what the database held.
            machine.open_stock("app.db-shadow").unwrap().write_at(&[0; 512], 512).unwrap();
        }
        let opened = Connection::open(&machine.process(), Path::new("/app.db"), &tiny());
        let seen = ReadOnly::open(&machine.process(), Path::new("/app.db"), false)
            .and_then(|mut reader| reader.lock(LockLevel::Shared));
        for refused in [opened.err(), seen.err()] {
            let message = refused.unwrap().to_string();
            assert!(message.contains("app.db-shadow-tmp") && message.contains("move"), "{message}");
        }
        let looked = inspect(&machine.process(), Path::new("/app.db")).unwrap();
        assert!(matches!(looked.opening, Opening::Refuse(Refusal::Hidden, _)));
        // What it says.
        root.rename("app.db".as_ref(), "made.db".as_ref()).unwrap();
        let (_p, mut opener) = start(&machine, &tiny());
        assert!(
            [BEFORE, AFTER].map(Content::from).contains(&read(&mut opener).unwrap()),
            "torn: {torn}"
        );
    }
}

/// A file with two names is refused, but not while an exchange gives it the second.
#[test]
fn only_links_of_others_are_refused() {
    let (machine, _) = killed_before((true, 2), false);
    let root = machine.process().open_directory(Path::new("/")).unwrap();
    root.link("app.db".as_ref(), "copy.db".as_ref()).unwrap();
    let refused = Connection::open(&machine.process(), Path::new("/app.db"), &tiny());
    let message = refused.err().unwrap().to_string();
    assert!(message.contains("has 2 hard links"), "{message}");
    root.unlink("copy.db".as_ref()).unwrap();
    let (_p, mut opener) = start(&machine, &tiny());
    assert_eq!(read(&mut opener).unwrap(), AFTER);
}

/// A find of the explorer: before its first commit the database is empty, and has the temporary
/// name.
#[test]
fn the_first_exchange_beside_somebody_alive() {
    for (links, step) in STEPS_OF_AN_EXCHANGE {
        let machine = without_exchange(links);
        let (killed, mut victim) = start(&machine, &tiny());
        write(&mut victim, &BEFORE).unwrap();
        victim.unlock(LockLevel::None).unwrap(); // rolled back; both files are there
        let (_p, mut alive) = start(&machine, &tiny());
        kill_at_step(&machine, killed, step);
        assert!(commit(&mut victim, &BEFORE).is_err(), "killed before step {step}");
        machine.watch(|_, _| {});
        let (_q, mut opener) = start(&machine, &tiny());
        assert_eq!(read(&mut opener).unwrap(), [0; 0], "{links}, {step}");
        let written = (0..3).find(|_| commit(&mut opener, &AFTER).is_ok());
        assert!(written.is_some(), "{links}, {step}");
        assert_eq!(read(&mut alive).unwrap(), AFTER, "{links}, {step}");
    }
}

/// Names are behind, and the file under `app.db` never got its first page. Whoever recovers marked
/// the zeros as those of a copy that was current; should the power go again before its exchange is
/// durable, what `app.db` names was "not an SQLite database" for ever.
#[test]
fn a_copy_that_never_got_its_first_page_stays_what_it_is() {
    let machine = Machine::new(1);
    let (_p, mut a) = start(&machine, &tiny());
    for content in [AFTER, BEFORE, AFTER, BEFORE, AFTER] {
        commit(&mut a, &content).unwrap();
    }
    let newest = machine.file_view("app.db").unwrap();
    let machine = machine.power_loss(&mut OldNames);
    assert_ne!(machine.file_view("app.db").unwrap(), newest, "the names are not behind");
    let behind = machine.open_stock("app.db").unwrap();
    behind.write_at(&[0; 512], 0).unwrap();
    behind.flush().unwrap();
    let (_q, mut b) = start(&machine, &tiny());
    assert_eq!(read(&mut b).unwrap(), AFTER);
    let machine = machine.power_loss(&mut OldNames);
    let (_r, mut c) = start(&machine, &tiny());
    assert_eq!(read(&mut c).unwrap(), AFTER);
}
