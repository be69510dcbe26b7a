//! How much is kept in the version store for readers of older states, and for whom.
//!
//! Up to the limit (`dash_kept_limit`) no dash reader makes a writer wait. At the limit a
//! transaction does not begin: it is refused where it asks for RESERVED, when it has written
//! nothing yet, with a message that names the oldest reader. One that has begun goes on beyond the
//! limit, as long as there is space.

use crate::connection::state::Connection;
use crate::mutation::{Mutation, broken};
use crate::shared::locks::LockLevel;
use crate::shared::readers::{Pins, Reader};
use crate::shared::versions::Covered;
use dash_engine::error::{Error, Result};
use dash_storage::{File, Storage};

/// Without a limit of the user's own it is so much of the free space, with what is kept already:
/// one part of these.
const SHARE: u64 = 4;

/// But not more than this, in bytes.
const DEFAULT_MAX: u64 = 4 << 30;

/// A transaction that has begun may have this kept, whatever the limit; or twice the limit.
const BEGUN_MAX: u64 = 256 << 20;

/// How far the place of a record may be from the beginning of the store: trimmed parts take no
/// space, but file systems have a longest file.
const SPAN_MAX: u64 = 1 << 40;

/// Records of others that are looked at in one transaction. What is left is looked at in the next
/// one; until then pages may be put aside that are there already.
const LOOKED_AT: usize = 4096;

/// Nanoseconds of a second.
const SECOND: u64 = 1_000_000_000;

impl<S: Storage> Connection<S> {
    /// Sets how many bytes may be kept for readers; `None`: a quarter of the free space, at most
    /// 4 GiB.
    pub fn set_kept_limit(&mut self, limit: Option<u64>) {
        self.kept.limit = limit;
    }

    /// What [`set_kept_limit`](Self::set_kept_limit) has set.
    pub fn kept_limit(&self) -> Option<u64> {
        self.kept.limit
    }

    /// Bytes that are kept for readers of older states now.
    pub fn kept_bytes(&self) -> u64 {
        self.pair.coordination.versions().map_or(0, |(base, end)| end - base)
    }

    /// What the user should know of what is kept; each message once.
    pub fn kept_notice(&mut self) -> Option<String> {
        self.kept.notice.take()
    }

    /// Who reads, the oldest snapshot first, of dash connections with a reader entry.
    pub fn readers(&self) -> Result<Vec<Reader>> {
        self.pair.coordination.readers()
    }

    /// Now, by the storage's clock, in nanoseconds: what [`Reader::since`] is compared with.
    pub fn now(&self) -> u64 {
        self.pair.storage.monotonic_nanos()
    }

    /// Under WRITER: gives up what nobody needs any more (SHADOW-24).
    pub(crate) fn give_kept_back(&mut self, pins: &Pins) -> Result<()> {
        let (base, end) = self.versions()?;
        if !pins.stale || broken(Mutation::KeptForgotten) {
            self.pair.coordination.empty_versions(self.tuning.kept_always);
            self.target.put_aside.covered.iter_mut().for_each(Covered::clear);
            return Ok(());
        }
        let too_far = if broken(Mutation::TrimmedTooFar) { 2 } else { 0 };
        let oldest = pins.oldest.unwrap_or(0) + too_far;
        let mut position = base;
        for _ in 0..LOOKED_AT {
            if position >= end {
                break;
            }
            let (record, next) = self.record_at(position, end)?;
            if record.label > oldest {
                break;
            }
            position = next;
        }
        if position != base {
            self.pair.coordination.trim_versions(position, self.tuning.kept_always);
        }
        Ok(())
    }

    /// Looks at the records that other writers have appended: what they have put aside need not be
    /// put aside again.
    pub(crate) fn look_at_records(&mut self) -> Result<()> {
        let (base, end) = self.versions()?;
        let mut position = self.target.put_aside.cursor.max(base);
        for _ in 0..LOOKED_AT {
            if position >= end {
                break;
            }
            let (record, next) = self.record_at(position, end)?;
            self.target.put_aside.covered[record.slot].add(record.label, record.range());
            position = next;
        }
        self.target.put_aside.cursor = position;
        Ok(())
    }

    /// A reader of an older state has left: what was kept for it alone is given back, unless
    /// somebody writes, who does that.
    pub(crate) fn leave_kept(&mut self) {
        let c = &self.pair.coordination;
        let worth = c.versions_taken() > self.tuning.kept_always && c.is_registered();
        if !worth || self.view.current.sequence >= c.current().sequence {
            return;
        }
        if !matches!(c.keep_writer(), Ok(true)) {
            return;
        }
        // Nobody waits for what fails here: the next writer does it.
        let pins = self.pair.coordination.pins_of_others(self.view.current.slot);
        drop(pins.and_then(|pins| self.give_kept_back(&pins)));
        drop(self.pair.coordination.give_writer_back());
    }

    /// Under WRITER, before a transaction: whether it may have more kept for readers. `Held`, with
    /// who they are, if not.
    pub(crate) fn check_kept_limit(&mut self) -> Result<()> {
        if self.pair.coordination.versions_taken() <= self.tuning.kept_always {
            return Ok(());
        }
        let pins = self.pair.coordination.pins_of_others(self.shadow_slot())?;
        self.give_kept_back(&pins)?;
        let kept = self.pair.coordination.versions_taken();
        let limit = self.present_limit(kept);
        if kept >= limit || self.is_too_far() {
            return Err(self.held_by_readers(kept, limit)?);
        }
        let half = kept >= limit / 2;
        if half && !self.kept.warned {
            let who = self.oldest_reader()?;
            self.kept.notice = Some(format!(
                "{}: {} are kept for readers of older states, half of what may be (dash_kept_limit); \
                 when it is all, nobody can write until they have left. {who}",
                self.pair.names.shown(),
                size(kept),
            ));
        }
        self.kept.warned = half;
        Ok(())
    }

    /// Under locking_mode=EXCLUSIVE, where SQLite asks for no lock between two transactions: the
    /// same as [`check_kept_limit`](Self::check_kept_limit), as `Busy`.
    pub(crate) fn check_kept_limit_of_session(&mut self) -> Result<()> {
        debug_assert_eq!(self.view.level, LockLevel::Exclusive);
        self.check_kept_limit().map_err(|error| match error {
            Error::Held(_) => Error::Busy,
            error => error,
        })
    }

    /// Within a transaction: whether `more` bytes may be put aside in it.
    pub(crate) fn check_kept_room(&mut self, slot: usize, more: u64) -> Result<()> {
        let kept = self.pair.coordination.versions_taken().saturating_add(more);
        if kept > BEGUN_MAX && kept > self.present_limit(kept).saturating_mul(2) {
            return self.no_space_to_keep(slot);
        }
        Ok(())
    }

    /// There is no space for what must be put aside: the transaction waits, as it does for a
    /// reader that maps pages, if there is anybody to wait for. Else nothing need be put aside.
    pub(crate) fn no_space_to_keep(&mut self, slot: usize) -> Result<()> {
        if self.pair.coordination.pins_of_others(slot)?.any {
            let kept = self.pair.coordination.versions_taken();
            return Err(self.held_by_readers(kept, kept)?);
        }
        self.target.put_aside.label = None;
        Ok(())
    }

    /// The limit now, when so many bytes are kept.
    fn present_limit(&self, kept: u64) -> u64 {
        self.kept.limit.unwrap_or_else(|| {
            let free = self.pair.coordination.file().free_space();
            free.map_or(DEFAULT_MAX, |free| {
                (free.saturating_add(kept) / SHARE).clamp(self.tuning.kept_always, DEFAULT_MAX)
            })
        })
    }

    /// Whether the store has never been empty for so long that its records lie too far behind.
    fn is_too_far(&self) -> bool {
        let end = self.versions().map_or(0, |(_, end)| end);
        self.pair.coordination.place_of(end).is_none_or(|place| place > SPAN_MAX)
    }

    fn held_by_readers(&self, kept: u64, limit: u64) -> Result<Error> {
        Ok(Error::Held(format!(
            "{} can't be written now: {} are kept for readers of older states, and {} may be (dash_kept_limit, \
             free space). {}",
            self.pair.names.shown(),
            size(kept),
            size(limit),
            self.oldest_reader()?,
        )))
    }

    /// Who keeps writers waiting, and what to do.
    fn oldest_reader(&self) -> Result<String> {
        let newest = self.pair.coordination.current().sequence;
        let readers = self.readers()?;
        let Some(oldest) = readers.iter().find(|reader| reader.sequence < newest) else {
            return Ok("None of them is left".to_owned());
        };
        Ok(format!(
            "The oldest reader is {}, for {} s: end its transaction (reset or finalize its statements), or end \
             the process",
            self.process_of(oldest),
            self.now().saturating_sub(oldest.since) / SECOND,
        ))
    }
}

/// A number of bytes for people.
fn size(bytes: u64) -> String {
    match bytes {
        0..0x10_0000 => format!("{} KiB", bytes >> 10),
        _ => format!("{} MiB", bytes >> 20),
    }
}
