//! SHADOW-16: the commit that a clean close makes where a stock process has the shadow open. Every
//! storage call of the close made to fail in turn, once and for ever: no commit is lost, whatever
//! became of the name.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::sync::{Arc, Mutex};

use super::common::sim::OldNames;
use super::common::stock::{self, Left};
use super::common::{Content, changes, commit, read};
use dash_shadow::inspect::{DbKind, Relation};
use dash_shadow::{Connection, Error, OpenOptions, Tuning, inspect};
use dash_simulated::{Effect, Fault, Machine, Metadata, Random, Simulated};

const DB: &str = "/app.db";
const EIO: i32 = 5;
const ENOSPC: i32 = 28;

fn open(process: &Simulated) -> Result<Connection<Simulated>, Error> {
    let options = OpenOptions { tuning: Tuning::tiny(), ..OpenOptions::default() };
    Connection::open(process, Path::new(DB), &options)
}

/// The number of the inode called so.
fn named(machine: &Machine, name: &str) -> u64 {
    machine.open_stock(name).unwrap().inode()
}

/// One story; whether the fault was met at all.
fn story(fault: Option<Fault>, commits: u8, number: u64) -> bool {
    let name = format!("{fault:?}, call {number} after {commits} commits");
    let machine = Machine::new(number);
    let mut content: Content = vec![1, 2, 3];
    let mut first = open(&machine.process()).unwrap();
    commit(&mut first, &content).unwrap();
    first.close().unwrap();
    let stock = machine.open_stock(DB).unwrap();
    let process = machine.process();
    let mut connection = open(&process).unwrap();
    for i in 0..commits {
        content.push(i);
        commit(&mut connection, &content).unwrap();
    }
    let odd = !commits.is_multiple_of(2);
    assert_eq!(named(&machine, DB) != stock.inode(), odd);
    let start = machine.steps();
    if let Some(fault) = fault.clone() {
        machine.fail(fault.after(number));
    }
    let mut told = String::new();
    let closed = connection.close_telling(&mut |message| told = message.to_owned());
    let met = machine.steps() - start > number;
    machine.stop_failing();
    if fault.is_none() {
        closed.unwrap();
        assert_eq!(told, "");
        assert_eq!(named(&machine, DB), stock.inode(), "{name}");
    } else if closed.is_ok() && named(&machine, DB) != stock.inode() && told.is_empty() {
        // Only where nobody could tell that the file is open.
        assert!(met, "{name}: nobody is told");
    }
    for seed in 0..4 {
        let after = machine.power_loss(&mut Random::new(seed));
        let mut recovered = open(&after.process())
            .unwrap_or_else(|error| panic!("{name}: {error}\n{}", machine.journal()));
        assert_eq!(read(&mut recovered).unwrap(), content, "{name}\n{}", machine.journal());
    }
    let mut again = open(&machine.process())
        .unwrap_or_else(|error| panic!("{name}: again: {error}\n{}", machine.journal()));
    assert_eq!(read(&mut again).unwrap(), content, "{name}\n{}", machine.journal());
    content[1] = 55;
    commit(&mut again, &content).unwrap();
    let after = machine.power_loss(&mut Random::new(number));
    let mut last = open(&after.process()).unwrap();
    assert_eq!(read(&mut last).unwrap(), content, "{name}: last\n{}", machine.journal());
    // What one closing could not do, the next one does.
    again.close().unwrap();
    assert_eq!(named(&machine, DB), stock.inode(), "{name}: last\n{}", machine.journal());
    met
}

/// A power loss within the close may leave the commit before it under the name, and where the file
/// system has no journal no name fence. What stock SQLite writes on that commit lacks nothing, so
/// nobody has to choose.
#[test]
pub(crate) fn nor_does_what_stock_sqlite_writes_on_the_commit_before() {
    let machine = Machine::new(1);
    machine.set_metadata(Metadata::OneSector);
    let mut connection = open(&machine.process()).unwrap();
    // As long as nothing is committed the database is an empty file.
    let _idle = machine.open_stock(DB).unwrap();
    let content: Content = vec![1, 2, 3];
    commit(&mut connection, &content).unwrap();
    let images = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&images);
    machine.watch(move |machine, operation| {
        if changes(operation.kind) {
            let mut images = seen.lock().unwrap();
            images.push(machine.power_loss(&mut OldNames));
            images.extend((0..4).map(|seed| machine.power_loss(&mut Random::new(seed))));
        }
    });
    connection.close().unwrap();
    machine.watch(|_, _| {});
    let mut beside_newer = 0;
    for image in images.lock().unwrap().iter() {
        let report = inspect(&image.process(), Path::new(DB)).unwrap();
        if report.beside.fence || report.verdict.db != DbKind::Whole {
            continue;
        }
        beside_newer += u32::from(report.verdict.relation == Relation::Child);
        let written = stock::commit(image, &content, Left::All);
        let mut after = open(&image.process()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(read(&mut after).unwrap(), written);
    }
    assert!(beside_newer > 0);
}

#[test]
fn whichever_call_fails() {
    let effects = [
        Effect::Error(EIO),
        Effect::Error(ENOSPC),
        Effect::LostFlush(EIO),
        // Media assumption 1: never within a sector.
        Effect::ShortWrite(512, ENOSPC),
    ];
    for effect in effects {
        for commits in [1, 2, 3] {
            for forever in [false, true] {
                let fault = Fault::new(effect);
                let fault = if forever { fault.forever() } else { fault };
                let mut number = 0;
                while story(Some(fault.clone()), commits, number) {
                    number += 1;
                }
                assert!(number > 10);
            }
        }
    }
}

#[test]
fn and_where_none_fails_it_is_given_back() {
    for commits in 0..5 {
        story(None, commits, 0);
    }
}
