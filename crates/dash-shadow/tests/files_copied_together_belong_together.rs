//! FT5: after a crash both files were copied by hand, and one of the two got the inode number that
//! its block names. They were taken for strangers, and the newest commit went with the shadow.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::common;
use super::common::sim::{OldNames, at_rest, start, tiny};
use super::common::stock::{self, Left};
use super::common::{commit, read};
use dash_shadow::Connection;
use dash_simulated::{Everything, Machine, Nothing, Question, Survivors};
use dash_storage::{Directory, File, OpenMode, Storage};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Gives a name to a new file with the content and the rights of the one that had it.
fn copy(machine: &Machine, name: &str) {
    let bytes = machine.file_view(name).unwrap();
    let root = machine.process().open_directory(Path::new("/")).unwrap();
    let permissions = root.metadata(name.as_ref()).unwrap().unwrap().permissions;
    let new = root.open("copy".as_ref(), OpenMode::CreateNew { permissions }).unwrap();
    new.write_at(&bytes, 0).unwrap();
    root.rename("copy".as_ref(), name.as_ref()).unwrap();
}

#[test]
pub(crate) fn whichever_of_the_two_has_the_inode_number_of_its_block() {
    for commits in 1..6 {
        for copied in [&["app.db"][..], &["app.db-shadow"], &["app.db", "app.db-shadow"], &[]] {
            let machine = Machine::new(1);
            let (_p, mut connection) = start(&machine, &tiny());
            for value in 0..commits {
                commit(&mut connection, &[1, value, 3]).unwrap();
            }
            connection.close().unwrap();
            let (_p, mut connection) = start(&machine, &tiny());
            commit(&mut connection, &[1, 99, 3]).unwrap();
            // The exchange is lost: the newest commit is in the shadow.
            let machine = machine.power_loss(&mut OldNames);
            for name in copied {
                copy(&machine, name);
            }
            let (_p, mut connection) = start(&machine, &tiny());
            assert_eq!(read(&mut connection).unwrap(), [1, 99, 3], "{commits}, {copied:?}");
            commit(&mut connection, &[1, 98, 4]).unwrap();
            let machine = machine.power_loss(&mut OldNames);
            let (_p, mut connection) = start(&machine, &tiny());
            assert_eq!(read(&mut connection).unwrap(), [1, 98, 4], "{commits}, {copied:?}");
        }
    }
}

/// An empty file has no block to tell by.
#[test]
pub(crate) fn also_where_the_database_is_an_empty_file() {
    for copied in [&["app.db"][..], &["app.db-shadow"], &["app.db", "app.db-shadow"]] {
        let machine = Machine::new(1);
        let (_p, mut connection) = start(&machine, &tiny());
        common::write(&mut connection, &[1, 2, 3]).unwrap();
        connection.prepare(None).unwrap();
        connection.flush().unwrap();
        let machine = machine.power_loss(&mut OldNames);
        assert!(machine.file_view("app.db").unwrap().is_empty());
        for name in copied {
            copy(&machine, name);
        }
        let (_p, mut connection) = start(&machine, &tiny());
        assert_eq!(read(&mut connection).unwrap(), [1, 2, 3], "{copied:?}");
    }
}

/// And stock SQLite has made another database of the older copy: not the one in silence, and not
/// the other.
#[test]
pub(crate) fn also_where_nothing_of_dash_is_left_in_the_database() {
    for copied in [&["app.db"][..], &["app.db-shadow"], &["app.db", "app.db-shadow"]] {
        let machine = at_rest();
        let (_p, mut connection) = start(&machine, &tiny());
        commit(&mut connection, &[1, 9, 3]).unwrap();
        // Nor the mark of the older copy, which stock SQLite would not write.
        let machine = machine.power_loss(&mut Nothing);
        stock::commit(&machine, &[1, 2, 3], Left::Nothing);
        for name in copied {
            copy(&machine, name);
        }
        let refused = Connection::open(&machine.process(), Path::new("/app.db"), &tiny()).err();
        let refused = refused.unwrap_or_else(|| panic!("{copied:?}: one of the two was dropped"));
        assert!(refused.to_string().contains("sqlite-dash recover"), "{refused}");
    }
}

/// The copy that has the name on the disk was growing: its tail is behind its former end, and
/// nothing else tells what it is.
#[test]
pub(crate) fn also_where_the_database_was_about_to_grow() {
    let small: Vec<u8> = vec![1; 4];
    let machine = Machine::new(1);
    let (_p, mut connection) = start(&machine, &tiny());
    for value in 0..5 {
        commit(&mut connection, &[&[value][..], &small].concat()).unwrap();
    }
    let newest = [&[4][..], &small].concat();
    let named = machine.open_stock("app.db-shadow").unwrap();
    let (inode, len) = (named.inode(), named.read_all().len());
    let images = Arc::new(Mutex::new(Vec::new()));
    let taken = Arc::clone(&images);
    machine.watch(move |machine, _| {
        taken.lock().unwrap().push(machine.power_loss(&mut OnlyLonger(inode)));
    });
    common::write(&mut connection, &[7; 40]).unwrap();
    connection.prepare(None).unwrap();
    let images = std::mem::take(&mut *images.lock().unwrap());
    let is_longer = |image: &&Machine| image.file_view("app.db").unwrap().len() > len;
    let longer: Vec<_> = images.iter().filter(is_longer).collect();
    assert!(!longer.is_empty(), "the name on the disk is the one that grows");
    for image in longer {
        for copied in [&[][..], &["app.db"], &["app.db-shadow"], &["app.db", "app.db-shadow"]] {
            let machine = image.power_loss(&mut Everything);
            for name in copied {
                copy(&machine, name);
            }
            let (_p, mut connection) = start(&machine, &tiny());
            assert_eq!(read(&mut connection).unwrap(), newest, "{copied:?}");
        }
    }
}

/// Of one file its length survives, and nothing that was written; of names nothing, but for the
/// flushed ones.
struct OnlyLonger(u64);
impl Survivors for OnlyLonger {
    fn choose(&mut self, question: Question, _: usize, newest: usize) -> usize {
        match question {
            Question::Operations { .. } => 0,
            Question::Unit { inode, .. } if inode == self.0 => 0,
            _ => newest,
        }
    }
}
