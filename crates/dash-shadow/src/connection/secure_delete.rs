//! `PRAGMA secure_delete`: what SQLite has overwritten with zeros is in neither file at rest.
//!
//! A commit writes one copy; the other one keeps the pages as they were before, until the next
//! commit carries them over. So where something may have been deleted, the last to close carries
//! them then. And what a smaller database leaves behind its end is overwritten, too: files are cut
//! only where that is worth it.
//!
//! Most commits delete nothing. Where the pages that the shadow lacks hold all that it has of them,
//! nothing is done: a session that only adds rows pays for nothing.

use crate::connection::state::Connection;
use crate::file::tail::Tail;
use crate::format::header::plain;
use crate::format::{TAIL_LEN, first_page, list_len};
use crate::shared::coordination::Word;
use crate::shared::locks::LockLevel;
use crate::shared::state::ShadowCondition;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_engine::io::{read_header, read_padded, write_zeros};
use dash_engine::ranges::RangeSet;
use dash_storage::Storage;
use std::sync::atomic::Ordering::SeqCst;

/// Bytes of changed pages that are looked through. More are carried unseen.
const LOOKED_THROUGH: u64 = 1 << 20;

impl<S: Storage> Connection<S> {
    /// Says whether what the next transactions delete must be gone at rest.
    pub fn set_secure_delete(&mut self, on: bool) {
        self.secure_delete = on;
    }

    /// A commit is published: the database has this size now.
    pub(crate) fn note_deleted(&self, size: u64) {
        if self.secure_delete {
            let word = self.pair.coordination.word(Word::Deleted);
            let largest = size.max(self.view.snapshot.size).max(1);
            if word.load(SeqCst) < largest {
                word.store(largest, SeqCst);
            }
        }
    }

    /// For who closes last. `tell` hears of it where a reader of the shadow stands in the way.
    pub(crate) fn forget_deleted(&mut self, tell: &mut dyn FnMut(&str)) -> Result<()> {
        let largest = self.pair.coordination.word(Word::Deleted).load(SeqCst);
        let idle = self.view.level == LockLevel::None && self.debts.poisoned.is_none();
        let shadow = self.pair.files[self.shadow_slot()].is_some();
        if largest == 0
            || !idle
            || !shadow
            || self.view.snapshot.size == 0
            || !self.keeps(largest)?
        {
            return Ok(());
        }
        // With durable names no fence is needed: nothing else than the shadow is written.
        if self.pair.coordination.may_be_named_on_disk(self.shadow_slot()) {
            self.flush_directory()?;
            self.pair.coordination.set_name_on_disk(self.view.current.slot);
        }
        let forgotten = self.lock(LockLevel::Exclusive).and_then(|()| self.forget_locked(largest));
        let unlocked = self.unlock(LockLevel::None);
        match forgotten {
            Err(Error::Busy | Error::BusySnapshot) => {
                tell(&format!(
                    "what was deleted with PRAGMA secure_delete stays in {} until the next commit: \
                     somebody else is reading it",
                    self.pair.names.shown_shadow()
                ));
                unlocked
            }
            forgotten => forgotten.and(unlocked),
        }
    }

    fn forget_locked(&mut self, largest: u64) -> Result<()> {
        let current = self.view.current.slot;
        if self.zero_behind_the_end(current, largest)? {
            self.flush_file(current)?;
        }
        let shadow = self.shadow_slot();
        let zeroed = self.zero_behind_the_end(shadow, largest)?;
        let settled = self.bring_shadow_up()?;
        if zeroed && !settled {
            self.flush_file(shadow)?;
        }
        self.pair.coordination.word(Word::Deleted).store(0, SeqCst);
        Ok(())
    }

    /// Makes the shadow the current copy's equal. Whether it was not.
    pub(crate) fn bring_shadow_up(&mut self) -> Result<bool> {
        let list = self.current_page_list()?;
        if self.pair.coordination.is_settled() {
            return Ok(false);
        }
        self.guard_names(self.shadow_slot())?;
        self.pair.coordination.set_in_flight(self.view.current.sequence + 1);
        self.restore(&list)?;
        self.pair.coordination.set_settled();
        self.pair.coordination.set_in_flight(0);
        Ok(true)
    }

    /// Overwrites what a file has of a larger state of the database. Whether there was anything.
    fn zero_behind_the_end(&mut self, slot: usize, largest: u64) -> Result<bool> {
        let (file, name) = (self.pair.file(slot)?, self.role(slot));
        let tail = Tail::read(&*file, &name)?;
        let list = tail.list.as_ref().map_or(0, |(units, _)| list_len(*units as usize));
        let end = largest.min(tail.len.saturating_sub(TAIL_LEN + list));
        if end <= self.view.snapshot.size {
            return Ok(false);
        }
        write_zeros(&*file, self.view.snapshot.size, end, &name)?;
        Ok(true)
    }

    /// Whether the shadow may have something that the current copy has no more.
    fn keeps(&mut self, largest: u64) -> Result<bool> {
        if largest > self.view.snapshot.size
            || self.pair.coordination.condition() != ShadowCondition::Known
        {
            return Ok(true);
        }
        if self.pair.coordination.is_settled() {
            return Ok(false);
        }
        let list = self.current_page_list()?;
        if list.bytes() > LOOKED_THROUGH {
            return Ok(true);
        }
        self.lacks_only(&list).map(|lacks_only| !lacks_only)
    }

    /// Whether the shadow's pages in `list` have no byte of content that the current copy's don't
    /// have.
    fn lacks_only(&self, list: &RangeSet) -> Result<bool> {
        let (current, shadow) = (self.current_file()?, self.pair.file(self.shadow_slot())?);
        let name = self.pair.names.shown();
        let header = read_header(&*current, name)?;
        let Some(page) = header.and_then(|header| header.page_size()).map(u64::from) else {
            return Ok(false);
        };
        let len = usize::try_from(page).unwrap_or(0);
        let (mut old, mut new) = (vec![0; len], vec![0; len]);
        for range in list.iter() {
            let mut at = range.start - range.start % page;
            while at < range.end {
                read_padded(&*shadow, &mut old, at).during(Operation::Read, name)?;
                read_padded(&*current, &mut new, at).during(Operation::Read, name)?;
                if !adds_only(&mut old, &mut new, at == 0) {
                    return Ok(false);
                }
                at += page;
            }
        }
        Ok(true)
    }
}

/// Whether a page has all the content of its older state, in its place. What comes before a b-tree
/// page's cells is no content: headers and pointers.
fn adds_only(old: &mut [u8], new: &mut [u8], first: bool) -> bool {
    let mut content = 0;
    let at = if first { 100 } else { 0 };
    if first {
        for page in [&mut *old, &mut *new] {
            plain(page);
            first_page::clear(page);
        }
    }
    if let (Some(head), Some(now)) = (old.get(at..at + 8), new.get(at)) {
        let tree = matches!(head[0], 2 | 5 | 10 | 13) && head[0] == *now;
        let cells = usize::from(u16::from_be_bytes([head[3], head[4]]));
        if tree {
            content = at + if head[0] < 8 { 12 } else { 8 } + 2 * cells;
        }
    }
    let pairs = old.iter().zip(&*new).skip(content);
    pairs.into_iter().all(|(old, new)| old == new || *old == 0)
}

#[cfg(test)]
mod tests {
    use super::adds_only;

    /// A leaf page with the cells `cells` at its end.
    fn leaf(cells: &[&[u8]]) -> Vec<u8> {
        let mut page = vec![0; 512];
        page[0] = 13;
        page[4] = u8::try_from(cells.len()).expect("few");
        let mut end = page.len();
        for (i, cell) in cells.iter().enumerate() {
            page[end - cell.len()..end].copy_from_slice(cell);
            end -= cell.len();
            let place = u16::try_from(end).expect("small").to_be_bytes();
            page[8 + 2 * i..10 + 2 * i].copy_from_slice(&place);
        }
        page[5..7].copy_from_slice(&u16::try_from(end).expect("small").to_be_bytes());
        page
    }

    #[test]
    fn a_page_that_only_grows_has_forgotten_nothing() {
        let adds = |old: &[&[u8]], new: &[&[u8]]| adds_only(&mut leaf(old), &mut leaf(new), false);
        assert!(adds(&[b"one"], &[b"one", b"two"]));
        assert!(adds(&[], &[b"one"]));
        assert!(!adds(&[b"one", b"two"], &[b"one"]));
        assert!(!adds(&[b"one"], &[b"two"]));
        assert!(!adds_only(&mut vec![7; 512], &mut leaf(&[b"one"]), false), "another kind of page");
        assert!(adds_only(&mut vec![0; 512], &mut leaf(&[b"one"]), false), "a new page");
    }
}
