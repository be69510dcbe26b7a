//! What a power loss leaves of the units, asked one by one, or by cache lines where they are words;
//! and how words become durable. Upholds rule 12.

use std::ops::Range;
use std::sync::Arc;

use dash_storage::{LINE, WORD};

use super::{Data, Pending};
use crate::page::Page;
use crate::survivors::{Asking, Question};

/// Answers of [`Question::Line`], and how many it has; above these it is torn.
const DURABLE: usize = 0;
const NEWEST: usize = 1;
const ANSWERS: usize = 3;

/// A word that is being written back: which, and the write that gave it its value.
pub(crate) type Begun = (u64, u64);

impl Data {
    /// The units that a power loss changes in the device, with the page that has their bytes.
    pub(super) fn choose(
        &self,
        inode: u64,
        len: u64,
        asking: &mut Asking<'_>,
    ) -> Vec<(u64, Arc<Page>)> {
        let mut left = Vec::new();
        for line in self.lines(len) {
            let whole = match line[..] {
                [(unit, _), _, ..] => {
                    let offset = unit * WORD / LINE * LINE;
                    asking.ask(Question::Line { inode, offset }, ANSWERS, NEWEST)
                }
                _ => ANSWERS - 1,
            };
            for &(unit, pending) in &line {
                let chosen = match whole {
                    DURABLE => 0,
                    NEWEST => pending.newest,
                    _ => {
                        let question = Question::Unit { inode, offset: unit * self.unit };
                        asking.ask(question, pending.values.len() + 1, pending.newest)
                    }
                };
                let value = chosen.checked_sub(1).and_then(|place| pending.values.get(place));
                left.extend(value.map(|value| (unit, Arc::clone(value))));
            }
        }
        left
    }

    /// In how many ways that can be answered.
    pub(super) fn ways(&self, len: u64) -> u128 {
        self.lines(len).fold(1, |all, line| {
            let torn = line.iter().fold(1_u128, |all, (_, pending)| {
                all.saturating_mul(pending.values.len() as u128 + 1)
            });
            all.saturating_mul(if line.len() > 1 { torn.saturating_add(2) } else { torn })
        })
    }

    /// The pending units below a length: those of a line together, where they are words.
    fn lines(&self, len: u64) -> impl Iterator<Item = Vec<(u64, &Pending)>> {
        let mut units = self.pending.range(..len.div_ceil(self.unit)).peekable();
        let line = |unit: u64| if self.unit == WORD { unit * WORD / LINE } else { unit };
        std::iter::from_fn(move || {
            let (&first, pending) = units.next()?;
            let mut together = vec![(first, pending)];
            while let Some((&unit, pending)) =
                units.next_if(|(unit, _)| line(**unit) == line(first))
            {
                together.push((unit, pending));
            }
            Some(together)
        })
    }

    /// The words that a write-back of the lines of `range` begins with.
    pub(crate) fn write_back(&self, range: &Range<u64>) -> Vec<Begun> {
        let lines = range.start / LINE..range.end.div_ceil(LINE);
        let words = lines.start * (LINE / WORD)..lines.end * (LINE / WORD);
        let dirty = self.pending.range(words).filter(|(_, pending)| pending.dirty);
        dirty.map(|(&unit, pending)| (unit, pending.write)).collect()
    }

    /// The write-back of these words is over: durable is what was not stored to since.
    pub(crate) fn fence(&mut self, begun: &[Begun]) {
        let size = usize::try_from(self.unit).unwrap_or_default();
        for &(unit, write) in begun {
            let same = |pending: &Pending| pending.dirty && pending.write == write;
            if self.pending.get(&unit).is_some_and(same) {
                let offset = unit * self.unit;
                let value = self.cache.page(offset / super::PAGE).slice(offset, size);
                self.durable.write_in_page(value, offset);
                self.pending.remove(&unit);
            }
        }
    }
}
