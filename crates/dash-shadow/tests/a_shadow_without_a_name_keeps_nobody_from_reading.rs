//! A shadow whose name is gone while a connection holds its file: somebody makes a new one, or
//! leaves mode shadow just when another one opens. Found by killing converters: whoever opened
//! beside such a connection was refused ("exchanged for another file"), readers too, for as long as
//! it lived.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::common::sim::{start, tiny};
use super::common::{commit, read};
use dash_simulated::Machine;
use dash_storage::{Directory, Storage};

#[test]
fn and_the_next_writer_makes_a_new_one() {
    for writer in [0, 1] {
        let machine = Machine::new(1);
        let (process, mut first) = start(&machine, &tiny());
        commit(&mut first, &[1, 2, 3]).unwrap();
        commit(&mut first, &[4, 5, 6]).unwrap();
        let root = process.open_directory("/".as_ref()).unwrap();
        root.unlink("app.db-shadow".as_ref()).unwrap();
        let (_process, mut second) = start(&machine, &tiny());
        assert_eq!(read(&mut second).unwrap(), [4, 5, 6]);
        let mut both = [first, second];
        commit(&mut both[writer], &[7, 8, 9]).unwrap();
        commit(&mut both[1 - writer], &[7, 8, 9, 10]).unwrap();
        for connection in both {
            let mut connection = connection;
            assert_eq!(read(&mut connection).unwrap(), [7, 8, 9, 10]);
            connection.close().unwrap();
        }
    }
}
