//! Where the file system has neither an exchange of names nor a journal (an SD card, for instance),
//! files may lose their names one by one in a power loss. An old file that lost its last name,
//! before the new one in its place was durable, left neither: "app.db is missing", "app.db-shadow
//! is missing", for ever.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::sync::{Arc, Mutex};

use super::common::sim::{kill_at_step, start, tiny, without_exchange};
use super::common::{Content, commit, read};
use dash_shadow::Connection;
use dash_simulated::{Machine, Metadata, Random};
use dash_storage::{Directory, OpenMode, Storage};

const CONTENT: [u8; 3] = [1, 2, 3];
const NEXT: [u8; 3] = [4, 2, 3];

fn machine(links: bool) -> Machine {
    let machine = without_exchange(links);
    machine.set_metadata(Metadata::OneSector);
    machine
}

/// What power losses leave at every call of an action.
fn cut(machine: &Machine, fates: u64, act: impl FnOnce()) -> Vec<Machine> {
    let images = Arc::new(Mutex::new(Vec::new()));
    let taken = Arc::clone(&images);
    machine.watch(move |machine, _| {
        let left = (0..fates).map(|seed| machine.power_loss(&mut Random::new(seed)));
        taken.lock().unwrap().extend(left);
    });
    act();
    machine.watch(|_, _| {});
    std::mem::take(&mut *images.lock().unwrap())
}

fn opens(image: &Machine, either: [&[u8]; 2], story: &str) {
    let opened = Connection::open(&image.process(), Path::new("/app.db"), &tiny());
    let mut connection = opened.unwrap_or_else(|error| panic!("{story}: {error}"));
    let found: Content = read(&mut connection).unwrap();
    assert!(either.contains(&found.as_slice()), "{story}: {found:?}");
}

#[test]
fn of_a_shadow_that_is_made_anew_beside_a_name_fence() {
    for links in [false, true] {
        let machine = machine(links);
        let (process, mut connection) = start(&machine, &tiny());
        for value in 0..4 {
            commit(&mut connection, &[value, 2, 3]).unwrap();
        }
        commit(&mut connection, &CONTENT).unwrap();
        machine.kill(&process);
        machine.write_back();
        let shadow = machine.open_stock("app.db-shadow").unwrap();
        shadow.write_at(&vec![0; shadow.read_all().len()], 0).unwrap();
        shadow.flush().unwrap();
        let (_p, mut connection) = start(&machine, &tiny());
        for image in cut(&machine, 6, || commit(&mut connection, &NEXT).unwrap()) {
            opens(&image, [&CONTENT, &NEXT], "made anew");
        }
    }
}

/// In the first commit's exchange a stock process makes an `app.db`, of no bytes as the one that
/// has the temporary name.
#[test]
fn of_an_empty_database_in_the_middle_of_an_exchange() {
    for step in 1..5 {
        let machine = machine(false);
        let (killed, mut victim) = start(&machine, &tiny());
        kill_at_step(&machine, killed, step);
        assert!(commit(&mut victim, &CONTENT).is_err(), "killed before step {step}");
        machine.watch(|_, _| {});
        machine.write_back();
        let root = machine.process().open_directory(Path::new("/")).unwrap();
        root.open("app.db".as_ref(), OpenMode::Create { permissions: 0o644 }).unwrap();
        for image in cut(&machine, 6, || drop(start(&machine, &tiny()))) {
            opens(&image, [&[], &CONTENT], &format!("killed before step {step}"));
        }
    }
}

/// The first commit of a database is cut off, at every call, and the names were exchanged or not.
/// Whoever comes next makes a new shadow: the empty file that it takes the place of may be what is
/// called `app.db` on the disk.
#[test]
pub(crate) fn of_the_empty_file_that_a_cut_off_first_commit_replaced() {
    for stock in [false, true] {
        for calls in 0.. {
            let machine = Machine::new(1);
            machine.set_metadata(Metadata::OneSector);
            let root = machine.process().open_directory(Path::new("/")).unwrap();
            root.open("app.db".as_ref(), OpenMode::Create { permissions: 0o644 }).unwrap();
            machine.write_back();
            let (killed, mut victim) = start(&machine, &tiny());
            let mut left = calls;
            let dying = killed.clone();
            machine.watch(move |machine, _| match left {
                0 => machine.kill(&dying),
                _ => left -= 1,
            });
            let committed = commit(&mut victim, &CONTENT).is_ok();
            machine.watch(|_, _| {});
            drop(victim);
            if stock && !write_as_stock(&machine) {
                continue;
            }
            let story = format!("killed before call {calls}, stock writes: {stock}");
            let again = || {
                let (_p, mut connection) = start(&machine, &tiny());
                commit(&mut connection, &NEXT).unwrap();
            };
            for image in cut(&machine, 40, again) {
                let opened = Connection::open(&image.process(), Path::new("/app.db"), &tiny());
                assert!(opened.is_ok(), "{story}: {:?}", opened.err());
            }
            if committed {
                break;
            }
        }
    }
}

/// A stock process writes `app.db`, if it is a database; whether it is.
fn write_as_stock(machine: &Machine) -> bool {
    let Ok(file) = machine.open_stock("app.db") else { return false };
    let content = file.read_all();
    if content.len() < 100 {
        return false;
    }
    let counter = u32::from_be_bytes(content[24..28].try_into().unwrap()) + 1;
    file.write_at(&counter.to_be_bytes(), 24).unwrap();
    file.write_at(&counter.to_be_bytes(), 92).unwrap();
    file.flush().unwrap();
    true
}
