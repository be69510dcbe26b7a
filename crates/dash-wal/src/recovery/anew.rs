//! A `-wal` made of the log alone, in the place of one that was removed by hand: because a person
//! says so.
//!
//! The log may begin within the generation. Its first frame becomes frame 1 then, and what was
//! before it is in the database as far as a checkpoint had copied it, or lost. So each frame gets a
//! checksum of its own, and all of them are another generation's, the next one: beside it the log
//! is void, wherever this is cut off. Until it has its name, `-wal` is missing (WAL-16).

use super::Recovery;
use super::look::{Chain, Log};
use crate::frames::{FRAME_HEADER, FrameHeader, WalHeader, frame_offset, seal};
use crate::logged::Frames;
use crate::mutation::{Mutation, broken};
use crate::names::Names;
use dash_engine::beside::make;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_engine::locks::{SHARED, holder};
use dash_log::images::Images;
use dash_storage::{Directory, File, LockKind, Storage};
use std::io::ErrorKind;

impl<S: Storage> Recovery<'_, S> {
    /// Makes it; durable when this returns, name and all.
    pub(super) fn make_wal_anew(&self, log: &Log<S::File>, chain: &Chain) -> Result<S::File> {
        let (names, directory) = (&self.files.names, &*self.files.directory);
        let name = names.shown_wal();
        self.remove_unfinished()?;
        let made = if broken(Mutation::AnewInPlace) { &names.wal } else { &names.wal_anew };
        // Nobody else's file gets the name.
        let wal = make(directory, made, &**self.files.database.file());
        let wal = wal.during(Operation::Open, made.to_string_lossy())?;
        let bytes = match broken(Mutation::AnewInGeneration) {
            true => chain.generation.header,
            false => seal::next(&chain.generation.header),
        };
        let header = WalHeader::decode(&bytes, name)?;
        let header = header.ok_or_else(|| self.look().damaged_log("it has no header of -wal"))?;
        wal.write_at(&bytes, 0).during(Operation::Write, name)?;
        let mut images = Images::new(header.page_size);
        let (mut sums, mut number) = (header.checksum, 0);
        for record in log.scan.records() {
            for logged in Frames::of(&record?)?.1 {
                let image = images.feed(&logged.entry)?;
                let frame = logged.header_behind(&header, sums, image);
                sums = FrameHeader::decode(&frame).checksum;
                number += 1;
                let at = frame_offset(number, header.page_size);
                wal.write_at(&frame, at).during(Operation::Write, name)?;
                let behind = at + FRAME_HEADER as u64;
                wal.write_at(image, behind).during(Operation::Write, name)?;
            }
        }
        if !broken(Mutation::AnewNotFlushed) {
            wal.flush().during(Operation::Flush, name)?;
        }
        directory.rename(made, &names.wal).during(Operation::Exchange, name)?;
        directory.flush().during(Operation::FlushDirectory, name)?;
        Ok(wal)
    }

    /// Refuses to go on beside a stock program with the `-wal` that was removed: it goes on with
    /// that, by a wal-index that is all connections'. Stock SQLite deletes `-wal` where nobody else
    /// has the database.
    pub(super) fn refuse_survivor(&self) -> Result<()> {
        let names = &self.files.names;
        let found = self.files.database.file().lock_conflict(SHARED, LockKind::Exclusive);
        match found.during(Operation::Lock, names.shown())? {
            Some(process) if !broken(Mutation::SurvivorOverlooked) => Err(survivor(names, process)),
            _ => Ok(()),
        }
    }

    /// Removes one that was cut off.
    pub(super) fn remove_unfinished(&self) -> Result<()> {
        match self.files.directory.unlink(&self.files.names.wal_anew) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(error).during(Operation::Delete, self.files.names.wal_anew.to_string_lossy())
            }
            _ => Ok(()),
        }
    }
}

/// See [`Recovery::refuse_survivor`].
pub(crate) fn survivor(names: &Names, process: i32) -> Error {
    let (db, wal) = (names.shown(), names.shown_wal());
    Error::CantOpen(format!(
        "{wal} is missing or blank, and {} has a lock on {db} since before that, as a program on stock SQLite has: what it closes \
         with may be all that was in {wal}, and would overwrite what is made now; end it first, or put that very {wal} back by \
         `mv`, not a copy of it",
        holder(process)
    ))
}
