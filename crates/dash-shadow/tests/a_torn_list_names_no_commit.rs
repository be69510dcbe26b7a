//! The checksum of a list area: each commit of a large list writes it over the one that its file
//! held two commits ago. Where a power loss keeps old sectors of the list and the old pages that
//! they name, every page is as its list says, and the commit is torn all the same.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use super::common::sim::{start, tiny};
use super::common::{Content, PAGE, commit, read, write};
use dash_simulated::{Machine, Question, Survivors};
use dash_storage::{Directory, Storage};

/// Every second one is changed: more units than fit into a block.
const PAGES: usize = 600;
/// Units of a list in a sector.
const IN_SECTOR: usize = 32;

fn content(first: u8) -> Content {
    let value = |i| if i % 2 == 0 { first } else { 1 };
    (0..PAGES).map(value).collect()
}

/// All that is not flushed, but one unit behind the pages, and some pages.
struct Lost {
    inode: u64,
    unit: u64,
    pages: std::ops::Range<u64>,
    /// Where units behind the pages were asked for.
    asked: Vec<u64>,
}

impl Survivors for Lost {
    fn choose(&mut self, question: Question, _: usize, newest: usize) -> usize {
        match question {
            Question::Unit { inode, offset } if inode == self.inode => {
                if offset >= (PAGES * PAGE) as u64 {
                    self.asked.push(offset);
                }
                if offset == self.unit || self.pages.contains(&offset) { 0 } else { newest }
            }
            _ => newest,
        }
    }
}

#[test]
pub(crate) fn a_list_of_two_commits() {
    let machine = Machine::new(1);
    let (_p, mut a) = start(&machine, &tiny());
    for first in 2..8 {
        commit(&mut a, &content(first)).unwrap();
    }
    write(&mut a, &content(8)).unwrap();
    a.prepare(None).unwrap();
    let root = machine.process().open_directory(Path::new("/")).unwrap();
    let inode = root.metadata("app.db-shadow".as_ref()).unwrap().unwrap().id.inode;
    let mut all = Lost { inode, unit: u64::MAX, pages: 0..0, asked: Vec::new() };
    let whole = machine.power_loss(&mut all);
    assert!(read(&mut start(&whole, &tiny()).1).unwrap() == content(8));
    assert!(all.asked.len() >= PAGES / 2 / IN_SECTOR, "no list area: {:?}", all.asked);
    for unit in all.asked {
        for window in 0..=PAGES / 2 / IN_SECTOR {
            // The page that is listed first is the third: page 1 comes last.
            let page = |number: usize| (2 * (number * IN_SECTOR + 1) * PAGE) as u64;
            let pages = page(window)..page(window + 1).min((PAGES * PAGE) as u64);
            let after = machine.power_loss(&mut Lost { inode, unit, pages, asked: Vec::new() });
            let found = read(&mut start(&after, &tiny()).1).unwrap();
            let story = "pages of two commits";
            assert!(found == content(7) || found == content(8), "{story}: {found:?}");
        }
    }
}
