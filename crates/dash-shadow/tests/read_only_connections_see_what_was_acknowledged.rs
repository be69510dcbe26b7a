//! A14: a connection that may not write sees what one that may would
//! recover, also where the names were cut between the three renames.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking; its numbers are small"
)]

use std::path::Path;

use super::common::sim::{start, tiny, without_exchange};
use super::common::{Content, PAGE, commit, read};
use dash_shadow::{LockLevel, ReadOnly};
use dash_simulated::{Machine, Question, Survivors};

/// The names after so many operations on the directory; all data as it was last.
struct Prefix(usize);
impl Survivors for Prefix {
    fn choose(&mut self, question: Question, answers: usize, newest: usize) -> usize {
        match question {
            Question::Operations { .. } => self.0.min(answers - 1),
            _ => newest,
        }
    }
}

fn names_cut_anywhere(machine: &Machine) {
    let (_p, mut a) = start(machine, &tiny());
    for i in 0..6 {
        commit(&mut a, &[i, i, i, i]).unwrap();
    }
    let newest = [5, 5, 5, 5];
    for prefix in 0..30 {
        for immutable in [false, true] {
            let after = machine.power_loss(&mut Prefix(prefix));
            let process = after.process();
            let mut reader = ReadOnly::open(&process, Path::new("/app.db"), immutable).unwrap();
            reader.lock(LockLevel::Shared).unwrap();
            let content: Content = (0..reader.size() / PAGE as u64)
                .map(|number| {
                    let mut page = [0; PAGE];
                    reader.read(&mut page, number * PAGE as u64).unwrap();
                    page[PAGE - 1]
                })
                .collect();
            assert_eq!(content, newest, "{prefix} operations on the directory survived");
            reader.close().unwrap();
            let (_q, mut b) = start(&after, &tiny());
            assert_eq!(read(&mut b).unwrap(), newest, "{prefix} operations");
        }
    }
}

#[test]
fn where_names_are_exchanged_in_one_step() {
    names_cut_anywhere(&Machine::new(1));
}

/// A14.
#[test]
fn between_the_three_renames() {
    names_cut_anywhere(&without_exchange(false));
}

#[test]
fn between_a_link_and_two_renames() {
    names_cut_anywhere(&without_exchange(true));
}

/// A find of the explorer: the names stop between the second and the third rename of an older
/// commit, `app.db` is n+1 and the temporary name has n+2, which was acknowledged.
#[test]
pub(crate) fn where_the_newest_has_the_temporary_name() {
    let machine = Machine::new(1);
    machine.set_exchange_supported(false);
    let (_p, mut a) = start(&machine, &tiny());
    for i in 0..6 {
        commit(&mut a, &[i, i, i, i]).unwrap();
    }
    let mut met = 0;
    for prefix in 0..30 {
        let after = machine.power_loss(&mut Prefix(prefix));
        let between = after.exists("/app.db") && !after.exists("/app.db-shadow");
        let behind = after.file_view("/app.db").is_some_and(|bytes| bytes[PAGE - 1] == 4);
        if between && behind && after.exists("/app.db-shadow-tmp") {
            met += 1;
            let process = after.process();
            let mut reader = ReadOnly::open(&process, Path::new("/app.db"), false).unwrap();
            reader.lock(LockLevel::Shared).unwrap();
            let mut page = [0; PAGE];
            reader.read(&mut page, 0).unwrap();
            assert_eq!(page[PAGE - 1], 5, "{prefix} operations on the directory survived");
        }
    }
    assert!(met > 0, "the names never stop there");
}
