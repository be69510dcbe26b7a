//! Putting aside what the shadow's readers need, and reading it: see [`crate::shared::versions`].

use crate::connection::state::Connection;
use crate::mutation::{Mutation, broken};
use crate::shared::versions::{LOG, RECORD, RECORD_LEN, Record};
use dash_engine::error::{Context, Error, Operation, Result, scribbled};
use dash_engine::io::{STRIDE, read_exact, read_padded};
use dash_engine::memory::{headroom_for, zeros};
use dash_engine::ranges::RangeSet;
use dash_storage::{File, Storage};
use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};

/// A store of this length, in bytes, is not worth a look at its file.
const UNLOOKED: u64 = 16 << 20;

impl<S: Storage> Connection<S> {
    /// Before the copy in `slot` is written: whether somebody reads it, and if so, that what is
    /// overwritten will be put aside. `Busy` if a reader has mapped pages of it.
    pub(crate) fn make_way(&mut self, slot: usize) -> Result<()> {
        let label = self.view.current.sequence + 1;
        self.target.put_aside.label = None;
        let pins = self.pair.coordination.pins_of_others(slot)?;
        self.give_kept_back(&pins)?;
        if !pins.any {
            return Ok(());
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
    pub(crate) fn versions(&self) -> Result<(u64, u64)> {
        self.pair
            .coordination
            .versions()
            .ok_or_else(|| self.scribbled("its version store ends before it begins"))
    }

    pub(crate) fn scribbled(&self, what: &str) -> Error {
        scribbled(self.pair.names.shown_coordination(), what)
    }

    /// Begins a new snapshot: what is put aside for it comes behind what is there.
    pub(crate) fn begin_versions(&mut self, now: u64) -> Result<()> {
        let (_, end) = self.versions()?;
        self.view.versions.begin(end);
        self.pair.coordination.tell_beginning(now, end);
        Ok(())
    }

    /// Puts aside what the shadow holds in `ranges`, if somebody reads it and has not got it yet.
    /// Nothing of that has been written before it returns.
    pub(crate) fn put_aside(&mut self, ranges: &RangeSet) -> Result<()> {
        let Some(label) = self.target.put_aside.label else {
            return Ok(());
        };
        let slot = self.shadow_slot();
        // Looked at as late as can be: connections that only wait for the write lock read for a
        // moment, and nobody can come to this copy any more.
        let pins = self.pair.coordination.pins_of_others(slot)?;
        if !pins.any {
            self.target.put_aside.label = None;
            return Ok(());
        }
        self.look_at_records()?;
        let (shadow, name) = (self.pair.file(slot)?, self.role(slot));
        let len = shadow.metadata().during(Operation::Stat, &name)?.len;
        let todo =
            self.target.put_aside.covered[slot].missing(&ranges.below(len), pins.newest_here);
        if todo.is_empty() {
            return Ok(());
        }
        self.check_versions_end()?;
        self.check_kept_room(slot, todo.bytes())?;
        if self.target.put_aside.label.is_none() {
            return Ok(());
        }
        let longest = todo.iter().map(|range| range.end - range.start).max().unwrap_or(0);
        let mut buffer = zeros(RECORD_LEN + longest.min(STRIDE))?;
        for range in todo.iter() {
            let mut at = range.start;
            while at < range.end {
                let part = (range.end - at).min(STRIDE);
                let record = Record { label, slot, offset: at, len: part };
                let len = usize::try_from(record.stored()).unwrap_or(0);
                let (header, bytes) = buffer[..len].split_at_mut(RECORD);
                header.copy_from_slice(&record.encode());
                read_padded(&*shadow, bytes, at).during(Operation::Read, &name)?;
                self.append_record(&buffer[..len], slot)?;
                if self.target.put_aside.label.is_none() {
                    return Ok(());
                }
                at += part;
            }
            self.target.put_aside.covered[slot].add(label, range);
        }
        Ok(())
    }

    /// Whether what the words say is in the store has been written: else the next record would make
    /// the file as long as they say.
    fn check_versions_end(&self) -> Result<()> {
        let (base, end) = self.versions()?;
        let place = self.place_of(end)?;
        if base == end || place - LOG <= UNLOOKED {
            return Ok(());
        }
        let shared = self.pair.coordination.file().metadata();
        let len = shared.during(Operation::Stat, self.pair.names.shown_coordination())?.len;
        match place > len {
            true => Err(self.scribbled("its version store ends behind its own end")),
            false => Ok(()),
        }
    }

    fn append_record(&mut self, record: &[u8], slot: usize) -> Result<()> {
        let (_, end) = self.versions()?;
        let (place, file) = (self.place_of(end)?, self.pair.coordination.file());
        let long = place + record.len() as u64;
        let written = match file.length_limit() {
            Ok(limit) if long > limit => Err(FileTooLarge.into()),
            Ok(_) => file.write_at(record, place),
            Err(error) => Err(error),
        };
        if let Err(error) = &written
            && matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
        {
            return self.no_space_to_keep(slot);
        }
        written.during(Operation::Write, self.pair.names.shown_coordination())?;
        self.pair.coordination.versions_appended(record.len() as u64);
        if self.target.put_aside.cursor == end {
            self.target.put_aside.cursor = end + record.len() as u64;
        }
        Ok(())
    }

    /// Where a position of the version store lies in the coordination file.
    fn place_of(&self, position: u64) -> Result<u64> {
        let place = self.pair.coordination.place_of(position);
        place.ok_or_else(|| self.scribbled("its version store was emptied"))
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
            // What has been found stays where it is as long as this snapshot is read.
            let place = self.place_of(position + (from - start))?;
            self.read_log(&mut buffer[a..b], place)?;
        }
        Ok(())
    }

    /// Reads at a place in the version store, where something is.
    fn read_log(&self, buffer: &mut [u8], place: u64) -> Result<()> {
        let read = read_exact(self.pair.coordination.file(), buffer, place)
            .during(Operation::Read, self.pair.names.shown_coordination())?;
        if read { Ok(()) } else { Err(self.scribbled("its version store ends too early")) }
    }

    /// The record at a position, and the position behind it.
    pub(crate) fn record_at(&self, position: u64, end: u64) -> Result<(Record, u64)> {
        let mut header = [0; RECORD];
        self.read_log(&mut header, self.place_of(position)?)?;
        let record = Record::decode(&header).map(|record| (record, position + record.stored()));
        let record = record.filter(|&(_, next)| next <= end);
        record.ok_or_else(|| self.scribbled("a record of its version store can't be"))
    }

    /// Reads the records appended since the last look.
    fn read_versions(&mut self) -> Result<()> {
        let (base, end) = self.versions()?;
        self.view.versions.cursor = self.view.versions.cursor.max(base);
        while self.view.versions.cursor < end {
            let position = self.view.versions.cursor;
            let (record, next) = self.record_at(position, end)?;
            headroom_for(1)?;
            let here = record.slot == self.view.current.slot;
            if here && record.label > self.view.current.sequence {
                self.view.versions.add(record.range(), position + RECORD_LEN);
            }
            self.view.versions.cursor = next;
        }
        Ok(())
    }
}
