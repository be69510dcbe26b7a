//! A `-wal` made of the log alone, in the place of one that was removed by hand: because a person
//! says so.
//!
//! The log may begin within the generation. Its first frame becomes frame 1 then, and what was
//! before it is in the database as far as a checkpoint had copied it, or lost. So each frame gets a
//! checksum of its own.

use super::Recovery;
use super::look::{Chain, Log};
use crate::frames::{FRAME_HEADER, FrameHeader, WalHeader, frame_offset};
use crate::logged::Frames;
use dash_engine::beside::open_or_make;
use dash_engine::error::{Context, Operation, Result};
use dash_log::images::Images;
use dash_storage::{Directory, File, Storage};

impl<S: Storage> Recovery<'_, S> {
    /// Makes it; durable when this returns, name and all.
    pub(super) fn make_wal_anew(&self, log: &Log<S::File>, chain: &Chain) -> Result<S::File> {
        let name = self.files.names.shown_wal();
        let (directory, database) = (&*self.files.directory, &**self.files.database.file());
        let (wal, _) =
            open_or_make(&self.files.storage, directory, (&self.files.names.wal, name), database)?;
        let bytes = &chain.generation.header;
        let header = WalHeader::decode(bytes, name)?;
        let header = header.ok_or_else(|| self.look().damaged_log("it has no header of -wal"))?;
        wal.write_at(bytes, 0).during(Operation::Write, name)?;
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
        wal.flush().during(Operation::Flush, name)?;
        self.files.directory.flush().during(Operation::FlushDirectory, name)?;
        Ok(wal)
    }
}
