//! Putting aside what the shadow's readers need, and reading it: see [`crate::shared::versions`].

use crate::connection::state::Connection;
use crate::mutation::{Mutation, broken};
use crate::shared::versions::{LOG, RECORD, RECORD_LEN, VersionsWritten};
use dash_engine::error::{Context, Error, Operation, Result, scribbled};
use dash_engine::io::{STRIDE, read_exact, read_padded};
use dash_engine::memory::{headroom_for, zeros};
use dash_engine::ranges::RangeSet;
use dash_storage::{File, Storage};

/// A transaction does not begin to add to a log longer than this: it waits for the readers.
const LOG_SOFT: u64 = 16 << 20;

/// A large transaction waits in the middle when the log is longer than this.
const LOG_HARD: u64 = 256 << 20;

impl<S: Storage> Connection<S> {
    /// Before the copy in `slot` is written: whether somebody reads it, and if so, that what is
    /// overwritten will be put aside. `Busy` if a reader has mapped pages of it, or the log is
    /// full.
    pub(crate) fn make_way(&mut self, slot: usize) -> Result<()> {
        let label = self.view.current.sequence + 1;
        if self.target.put_aside.label != Some(label) {
            self.target.put_aside = VersionsWritten::default();
        }
        let pins = self.pair.coordination.pins_of_others(slot)?;
        if !pins.stale {
            self.pair.coordination.empty_versions();
        }
        if !pins.any {
            self.target.put_aside = VersionsWritten::default();
            return Ok(());
        }
        let (base, end) = self.versions()?;
        if end - base > LOG_SOFT {
            return Err(Error::Busy);
        }
        if !broken(Mutation::OverwritingNotAnnounced) {
            self.pair.coordination.announce_overwriting(slot, label);
        }
        if self.pair.coordination.pins_of_others(slot)?.mapped {
            return Err(Error::Busy);
        }
        self.target.put_aside.label = Some(label);
        Ok(())
    }

    /// Positions of the first byte of the version store and behind its last one.
    fn versions(&self) -> Result<(u64, u64)> {
        self.pair
            .coordination
            .versions()
            .ok_or_else(|| self.scribbled("its version store ends before it begins"))
    }

    fn scribbled(&self, what: &str) -> Error {
        scribbled(self.pair.names.shown_coordination(), what)
    }

    /// Begins a new snapshot: what is put aside for it comes behind what is there.
    pub(crate) fn begin_versions(&mut self) -> Result<()> {
        let (_, end) = self.versions()?;
        self.view.versions.begin(end);
        Ok(())
    }

    /// Puts aside what the shadow holds in `ranges`, if somebody reads it.
    pub(crate) fn put_aside(&mut self, ranges: &RangeSet) -> Result<()> {
        let Some(label) = self.target.put_aside.label else {
            return Ok(());
        };
        let slot = self.shadow_slot();
        let (shadow, name) = (self.pair.file(slot)?, self.role(slot));
        let len = shadow.metadata().during(Operation::Stat, &name)?.len;
        let todo = ranges.below(len).without(&self.target.put_aside.done);
        let (base, end) = self.versions()?;
        if end - base > LOG_SOFT {
            // What is there has been written: else the next record would make the file as long as
            // it says.
            let shared = self.pair.coordination.file().metadata();
            let len = shared.during(Operation::Stat, self.pair.names.shown_coordination())?.len;
            if end - base > len.saturating_sub(LOG) {
                return Err(self.scribbled("its version store ends behind its own end"));
            }
        }
        if end - base + todo.bytes() > LOG_HARD
            && self.pair.coordination.pins_of_others(slot)?.stale
        {
            return Err(Error::Busy);
        }
        let longest = todo.iter().map(|range| range.end - range.start).max().unwrap_or(0);
        let mut buffer = zeros(RECORD_LEN + longest.min(STRIDE))?;
        for range in todo.iter() {
            let mut at = range.start;
            while at < range.end {
                let part = (range.end - at).min(STRIDE);
                let len = usize::try_from(RECORD_LEN + part).unwrap_or(0);
                let record = &mut buffer[..len];
                for (field, value) in [label, slot as u64, at, part].into_iter().enumerate() {
                    record[field * 8..field * 8 + 8].copy_from_slice(&value.to_le_bytes());
                }
                let (_, bytes) = record.split_at_mut(RECORD);
                read_padded(&*shadow, bytes, at).during(Operation::Read, &name)?;
                let (base, end) = self.versions()?;
                self.pair
                    .coordination
                    .file()
                    .write_at(record, LOG + (end - base))
                    .during(Operation::Write, self.pair.names.shown_coordination())?;
                self.pair.coordination.versions_appended(RECORD_LEN + part);
                at += part;
            }
            self.target.put_aside.done.insert(range);
        }
        Ok(())
    }

    /// Lays over `buffer`, just read from the pinned copy at `offset`, what was overwritten there
    /// since the snapshot.
    pub(crate) fn mend_read(&mut self, buffer: &mut [u8], offset: u64) -> Result<()> {
        if self.pair.coordination.overwritten(self.view.current.slot) <= self.view.current.sequence
        {
            return Ok(());
        }
        self.read_versions()?;
        let end = offset + buffer.len() as u64;
        let first = self
            .view
            .versions
            .ranges
            .range(..=offset)
            .next_back()
            .filter(|&(_, &(until, _))| until > offset)
            .map_or(offset, |(&start, _)| start);
        for (&start, &(until, position)) in self.view.versions.ranges.range(first..end.max(first)) {
            let (from, to) = (start.max(offset), until.min(end));
            let (Ok(a), Ok(b)) = (usize::try_from(from - offset), usize::try_from(to - offset))
            else {
                continue;
            };
            let (base, _) = self.versions()?;
            // What has been found stays where it is as long as this snapshot is read.
            let place = (position + (from - start)).checked_sub(base);
            let place = place.ok_or_else(|| self.scribbled("its version store was emptied"))?;
            self.read_log(&mut buffer[a..b], place)?;
        }
        Ok(())
    }

    /// Reads at a place in the version store, where something is.
    fn read_log(&self, buffer: &mut [u8], place: u64) -> Result<()> {
        let read = read_exact(self.pair.coordination.file(), buffer, LOG + place)
            .during(Operation::Read, self.pair.names.shown_coordination())?;
        if read { Ok(()) } else { Err(self.scribbled("its version store ends too early")) }
    }

    /// Reads the records appended since the last look.
    fn read_versions(&mut self) -> Result<()> {
        let (base, end) = self.versions()?;
        self.view.versions.cursor = self.view.versions.cursor.max(base);
        while self.view.versions.cursor < end {
            let position = self.view.versions.cursor;
            let mut header = [0; RECORD];
            self.read_log(&mut header, position - base)?;
            let field = |i: usize| {
                header[i * 8..i * 8 + 8]
                    .iter()
                    .rev()
                    .fold(0, |value, &byte| value << 8 | u64::from(byte))
            };
            let (label, slot, offset, len) = (field(0), field(1), field(2), field(3));
            let next = position + RECORD_LEN + len.min(STRIDE);
            let until = offset.checked_add(len).filter(|_| (1..=STRIDE).contains(&len));
            let Some(until) = until.filter(|_| slot <= 1 && next <= end) else {
                return Err(self.scribbled("a record of its version store can't be"));
            };
            headroom_for(1)?;
            if slot == self.view.current.slot as u64 && label > self.view.current.sequence {
                self.view.versions.add(offset..until, position + RECORD_LEN);
            }
            self.view.versions.cursor = next;
        }
        Ok(())
    }
}
