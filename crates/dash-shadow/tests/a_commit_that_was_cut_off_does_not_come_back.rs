//! A commit that was cut off, and seen to be undone, must not become whole while its pages are
//! mended: all that was missing of it may be a page that it merely carried (SHADOW-8, SHADOW-12,
//! SHADOW-15).

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking; its numbers are small"
)]

use std::path::Path;
use std::sync::{Arc, Mutex};

use super::common::sim::{Without, start, tiny};
use super::common::{Content, PAGE, commit, read, write};
use dash_simulated::{Machine, OperationKind, Question, Survivors};
use dash_storage::{Directory, Storage};

/// Of one file only this range reaches the disk.
struct Only(u64, std::ops::Range<u64>);
impl Survivors for Only {
    fn choose(&mut self, question: Question, _: usize, newest: usize) -> usize {
        match question {
            Question::Unit { inode, offset } if inode == self.0 && !self.1.contains(&offset) => 0,
            _ => newest,
        }
    }
}

/// The page that is carried: the last commit changed it, the one that is cut off does not.
const CARRIED: usize = 9;

fn cut_off_then_mended(first: [u8; 3]) {
    let machine = Machine::new(1);
    let (_p, mut a) = start(&machine, &tiny());
    let mut content: Content = (0..16).collect();
    for (i, value) in first.into_iter().enumerate() {
        content[0] = value;
        content[CARRIED] = 100 + i as u8;
        if i < 2 {
            commit(&mut a, &content).unwrap();
        }
    }
    content[CARRIED] = 101;
    let mut never = content.clone();
    (content[0], never[4]) = (first[1], 200);
    write(&mut a, &never).unwrap();
    a.prepare(None).unwrap();
    let root = machine.process().open_directory(Path::new("/")).unwrap();
    let shadow = root.metadata("app.db-shadow".as_ref()).unwrap().unwrap().id.inode;
    let carried = (CARRIED * PAGE) as u64..((CARRIED + 1) * PAGE) as u64;
    let after = machine.power_loss(&mut Without(shadow, carried.clone()));
    let (_q, mut b) = start(&after, &tiny());
    assert_eq!(read(&mut b).unwrap(), content, "seen to be undone");
    let cuts: Arc<Mutex<Vec<Machine>>> = Arc::default();
    let put = cuts.clone();
    after.watch(move |machine, operation| {
        if operation.kind == OperationKind::Flush {
            let cut = machine.power_loss(&mut Only(shadow, carried.clone()));
            put.lock().unwrap().push(cut);
        }
    });
    let mut next = content.clone();
    next[6] = 150;
    commit(&mut b, &next).unwrap();
    let cuts = std::mem::take(&mut *cuts.lock().unwrap());
    assert!(cuts.len() > 1);
    for cut in cuts {
        let (_r, mut c) = start(&cut, &tiny());
        let seen = read(&mut c).unwrap();
        assert!(seen == content || seen == next, "it came back: {seen:?}");
    }
}

#[test]
fn with_its_block_in_page_1() {
    cut_off_then_mended([4, 8, 12]);
}

#[test]
fn with_its_block_announced_there() {
    cut_off_then_mended([4, 8, 14]);
}

#[test]
fn with_its_block_in_the_tail() {
    cut_off_then_mended([4, 8, 15]);
}
