//! Writing a generation's frames from the log into `-wal`, behind what is there already.
//!
//! A frame of `-wal` counts as there as long as its header is the log's, and the checksums up to
//! it hold: another process's frame of the same number may be valid, and end a commit, and still be
//! one that was never acknowledged (WAL-13).

use super::Recovery;
use super::look::{Chain, Log, raw_header};
use crate::context::salts_of;
use crate::frames::{FrameHeader, Prefix, WalHeader, frame_offset, walk};
use crate::logged::{Frames, Headers, headers};
use crate::mutation::{Mutation, broken};
use dash_engine::error::{Context, Error, Operation, Result};
use dash_engine::io::write_pieces;
use dash_log::images::Images;
use dash_storage::{File, Storage};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Bytes that are written together, about.
const RUN: usize = 256 << 10;

impl<S: Storage> Recovery<'_, S> {
    /// Header, then frames from the first difference on, then a flush.
    pub(super) fn replay(&self, log: &Log<S::File>, chain: &Chain, wal: &S::File) -> Result<()> {
        let name = Arc::clone(self.files.names.shown_wal());
        let header = &chain.generation.header;
        let page = crate::context::page_of(header);
        let parsed = WalHeader::decode(header, &name)?;
        let parsed = parsed.ok_or_else(|| self.look().damaged_log("it has no header of -wal"))?;
        let headers = headers(&log.scan, &parsed)?;
        let found = raw_header(wal, &name)?;
        // Where its writer died before the first frame a stock one goes on, with a header that has
        // the same salts, and its own number of checkpoints.
        let is_gone_on_with =
            |found| salts_of(&found) == chain.generation.salts() && !broken(Mutation::OwnHeaderPut);
        let same =
            found == Some(*header) || !chain.has_frames && found.is_some_and(is_gone_on_with);
        if !same {
            wal.write_at(header, 0).during(Operation::Write, &name)?;
        }
        let there = if same { self.equal_prefix(wal, &headers)? } else { 0 };
        let mut images = Images::new(page);
        let mut run = Run { wal, name: &name, at: 0, bytes: Vec::new() };
        for record in log.scan.records() {
            for frame in Frames::of(&record?)?.1 {
                let image = images.feed(&frame.entry)?;
                if frame.number > there
                    && let Some(header) = headers.get(frame.number)
                {
                    run.push(frame_offset(frame.number, page), header, image)?;
                }
            }
        }
        run.write()?;
        match broken(Mutation::RecoveredNotFlushed) {
            true => Ok(()),
            false => wal.flush().during(Operation::Flush, &name),
        }
    }

    /// The last frame up to which `-wal` is valid, and the log says nothing else.
    fn equal_prefix(&self, wal: &S::File, headers: &Headers) -> Result<u32> {
        let name = Arc::clone(self.files.names.shown_wal());
        let Some(header) = WalHeader::read(wal, &name)? else { return Ok(0) };
        let prefix = walk(wal, &header, Prefix::before_all(&header), &name, |number, found, _| {
            let differs =
                headers.get(number).is_some_and(|known| FrameHeader::decode(known) != *found);
            match differs && !broken(Mutation::PrefixByNumber) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        })?;
        Ok(prefix.last)
    }
}

/// Frames that follow each other, to be written together.
struct Run<'a, F: File> {
    wal: &'a F,
    name: &'a str,
    /// Where the first one begins.
    at: u64,
    bytes: Vec<u8>,
}

impl<F: File> Run<'_, F> {
    fn push(&mut self, at: u64, header: &[u8], image: &[u8]) -> Result<()> {
        if self.at + self.bytes.len() as u64 != at || self.bytes.len() >= RUN {
            self.write()?;
            self.at = at;
        }
        let more = header.len() + image.len();
        self.bytes.try_reserve(more).map_err(|_| Error::OutOfMemory)?;
        self.bytes.extend_from_slice(header);
        self.bytes.extend_from_slice(image);
        Ok(())
    }

    fn write(&mut self) -> Result<()> {
        write_pieces(self.wal, &self.bytes, self.at, self.name)?;
        self.bytes.clear();
        Ok(())
    }
}
