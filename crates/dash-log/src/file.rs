//! The log's file: made once, of blocks that are allocated and written (WALDIO's preallocation with
//! explicit journaling), so that a commit changes bytes and nothing else of it. It is written
//! around the page cache where the file system lets it be, or stored where it lies in memory, and
//! read through the cache.
//!
//! Who may write when is the engine's business: nothing here takes a lock.

use crate::access::{self, Access, Written};
use crate::format::{Form, Invalid, RING_START, SECTOR};
use crate::head::{COUNT_MAX, Head};
use crate::heads::{HEADS, Heads};
use crate::ring::Ring;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_engine::io::{read_padded, read_some};
use dash_engine::memory::zeros;
use dash_engine::open::if_there;
use dash_storage::{Blocks, Directory, File, OpenMode, Persistence};
use std::ffi::OsStr;
use std::sync::Arc;

pub use crate::medium::Medium;
pub use crate::name::LogName;

/// The file's length, and the ring's, are multiples of this.
const STEP: u64 = RING_START;

/// Bytes of the longest log. What is longer is none, and is not read into memory.
const LONGEST: u64 = 256 << 20;

/// The largest block that a head is believed, in bytes.
const BLOCK_MAX: u32 = 4096;

/// What is before the ring, in memory.
const BEFORE_RING: usize = 4096;
const _: () = assert!(BEFORE_RING as u64 == RING_START && HEADS <= BEFORE_RING);

/// An open log.
pub struct LogFile<F: File> {
    /// Writes, locks.
    file: Arc<F>,
    /// Reads, through the page cache: another description of the same file, as one that is direct
    /// reads whole blocks only, and slowly.
    cached: F,
    written: Written,
    block: u32,
    /// What it is laid out for; `None` if there was no head to tell.
    form: Option<Form>,
    name: String,
}

impl<F: File> LogFile<F> {
    /// Makes a log that is not there, with `ring` bytes of ring and zeros for a head. All but the
    /// name is durable when this returns. `form`: what it is laid out for; `None`: lines, to be
    /// stored to, where the folder is in byte-addressable memory, else sectors. Where it is in none
    /// that costs the question.
    ///
    /// # Errors
    ///
    /// Those of the file system, [`std::io::ErrorKind::AlreadyExists`] among them, and
    /// `Unsupported` where there is no memory for lines. What was made is removed then.
    pub fn create<'a, D: Directory<File = F>>(
        directory: &D,
        name: impl Into<LogName<'a>>,
        permissions: u32,
        ring: u64,
        form: impl Into<Option<Form>>,
    ) -> Result<Self> {
        let name = &name.into();
        let mode = OpenMode::CreateNew { permissions };
        let made = directory.open(name.file, mode).during(Operation::Open, &name.shown)?;
        let access = Access::Make(form.into());
        let filled = Self::fill(&made, ring, &name.shown)
            .and_then(|()| Self::over(directory, name, made, access))
            .and_then(|log| log.grow(ring).map(|()| log));
        // One that stays is no log: whoever opens it finds no head.
        if filled.as_ref().is_err_and(|error| !matches!(error, Error::Moved(_))) {
            let _ = directory.unlink(name.file);
        }
        filled
    }

    /// The first block, before anything is asked of the file: what it can do may depend on it.
    fn fill(made: &F, ring: u64, name: &str) -> Result<()> {
        if ring < STEP {
            return Err(Error::Refused("a log needs a ring of 4 KiB at least".to_owned()));
        }
        made.initialize(0..RING_START).during(Operation::Resize, name)
    }

    /// Opens a log to read and write it; `None` if there is none. A log of lines that was copied to
    /// a disk is written as any file.
    ///
    /// # Errors
    ///
    /// Those of the file system; [`Error::Moved`] if the name changed hands meanwhile.
    pub fn open<'a, D: Directory<File = F>>(
        directory: &D,
        name: impl Into<LogName<'a>>,
    ) -> Result<Option<Self>> {
        Self::open_as(directory, &name.into(), OpenMode::ReadWrite, Access::Write)
    }

    /// Opens a log only to read it: all else fails. `None` if there is none.
    ///
    /// # Errors
    ///
    /// Those of the file system; [`Error::Moved`] if the name changed hands meanwhile.
    pub fn open_to_read<'a, D: Directory<File = F>>(
        directory: &D,
        name: impl Into<LogName<'a>>,
    ) -> Result<Option<Self>> {
        Self::open_as(directory, &name.into(), OpenMode::Read, Access::Read)
    }

    fn open_as<D: Directory<File = F>>(
        directory: &D,
        name: &LogName<'_>,
        mode: OpenMode,
        access: Access,
    ) -> Result<Option<Self>> {
        let Some(file) = if_there(directory.open(name.file, mode), OsStr::new(&*name.shown))?
        else {
            return Ok(None);
        };
        Self::over(directory, name, file, access).map(Some)
    }

    fn over<D: Directory<File = F>>(
        directory: &D,
        name: &LogName<'_>,
        file: F,
        access: Access,
    ) -> Result<Self> {
        let shown = name.shown.clone().into_owned();
        let cached = directory.open(name.file, OpenMode::Read).during(Operation::Open, &shown)?;
        if cached.id() != file.id() {
            return Err(Error::Moved(format!("{shown} was replaced while it was opened")));
        }
        // Each is opened twice, and so neither is ever found to be the only one.
        [&file, &cached].into_iter().for_each(File::mark_unlocked);
        let file = Arc::new(file);
        let heads = heads(&cached, &shown)?;
        let form = match access {
            Access::Make(Some(form)) => Some(form),
            Access::Make(None) => Some(Form::Lines),
            Access::Read | Access::Write => heads.head.is_ok().then_some(heads.form),
        };
        let written = access::open(&file, access, form, &shown)?;
        let form = match access {
            Access::Make(None) if written.persistence.is_none() => Some(Form::Sectors),
            _ => form,
        };
        // What the others pad records to, if that is more (LOG-5).
        let others = heads.head.map_or(0, |head| head.block);
        let others = if others.is_power_of_two() { others.min(BLOCK_MAX) } else { 0 };
        let block = written.medium.block().max(others);
        Ok(Self { file, cached, written, block, form, name: shown })
    }

    /// Writes whole blocks at a position of the ring, not durable before a [`flush`](Self::flush):
    /// what [`Builder::finish`](crate::record::Builder::finish) made with this log's block.
    ///
    /// # Errors
    ///
    /// Those of the file system; any part of it may be written then.
    pub fn write(&self, blocks: &[u8], position: u64) -> Result<()> {
        self.written.medium.write(blocks, RING_START.saturating_add(position))
    }

    /// As [`write`](Self::write), and durable when it returns, with nothing else.
    ///
    /// # Errors
    ///
    /// As of [`write`](Self::write).
    pub fn write_durable(&self, blocks: &[u8], position: u64) -> Result<()> {
        self.written.medium.write_durable(blocks, RING_START.saturating_add(position))
    }

    /// Makes durable what was written through this, and by whatever process if it is no mapping.
    ///
    /// # Errors
    ///
    /// Those of the device: what was written since the last flush may be there or not, and a later
    /// flush proves nothing (LOG-2).
    pub fn flush(&self) -> Result<()> {
        self.written.medium.flush()
    }

    /// Both, one after the other: in memory with less to look at.
    ///
    /// # Errors
    ///
    /// Those of both.
    pub fn write_and_flush(&self, blocks: &[u8], position: u64) -> Result<()> {
        self.written.medium.write_and_flush(blocks, RING_START.saturating_add(position))
    }

    /// Makes the ring `ring` bytes long, rounded up to 4 KiB; allocated, written and durable when
    /// this returns (LOG-9). It never shrinks.
    ///
    /// # Errors
    ///
    /// Those of the file system; a part may have been added then, which is a ring as well.
    pub fn grow(&self, ring: u64) -> Result<()> {
        let too_long = || Error::Refused(format!("{} can't be so long", self.name));
        let from = self.len()?.max(RING_START).next_multiple_of(STEP);
        let to = ring.checked_next_multiple_of(STEP).ok_or_else(too_long)?;
        let to = to.checked_add(RING_START).filter(|&to| to <= LONGEST).ok_or_else(too_long)?;
        if from < to {
            self.file.initialize(from..to).during(Operation::Resize, &self.name)?;
            self.file.flush().during(Operation::Flush, &self.name)?;
        }
        Ok(())
    }

    /// Writes the head, not durable before a [`flush`](Self::flush).
    ///
    /// # Errors
    ///
    /// Those of the file system, [`Error::OutOfMemory`], and those of [`Head::encode`].
    pub fn write_head(&self, head: &Head) -> Result<()> {
        let form = self.form.map_or_else(|| self.heads().map(|heads| heads.form), Ok)?;
        self.write_head_as(form, head)
    }

    fn write_head_as(&self, form: Form, head: &Head) -> Result<()> {
        let mut start = Blocks::try_new(BEFORE_RING).map_err(|_| Error::OutOfMemory)?;
        if form == Form::Sectors {
            start[..SECTOR].copy_from_slice(&head.encode()?);
            return self.write_place(&start, 0, false);
        }
        // What counts must be durable before the other place is torn (LOG-11); and who wrote it
        // may have been killed before a flush.
        read_padded(&self.cached, &mut start, 0).during(Operation::Read, &self.name)?;
        let mut found = Heads::decode(&start);
        // Also where the turns come to an end that nobody has counted up to.
        if found.head.is_err() || found.turn >= COUNT_MAX / 2 {
            (found.place, found.turn) = (1, 1);
            start[SECTOR..HEADS].copy_from_slice(&head.encode_turn(found.turn)?);
        }
        self.write_place(&start, found.place, true)?;
        let beside = 1 - found.place;
        let turn = found.turn.saturating_add(1);
        start[beside * SECTOR..][..SECTOR].copy_from_slice(&head.encode_turn(turn)?);
        self.write_place(&start, beside, false)
    }

    /// Writes the blocks that have a place of a head, of what is before the ring.
    fn write_place(&self, start: &[u8], place: usize, durable: bool) -> Result<()> {
        let block = usize::try_from(self.written.medium.block()).unwrap_or(BEFORE_RING);
        let at = place * SECTOR - place * SECTOR % block;
        let blocks = &start[at..at + SECTOR.next_multiple_of(block)];
        match durable {
            true => self.written.medium.write_durable(blocks, at as u64),
            false => self.written.medium.write(blocks, at as u64),
        }
    }

    /// The head, or why there is none.
    ///
    /// # Errors
    ///
    /// Those of the file system.
    pub fn read_head(&self) -> Result<std::result::Result<Head, Invalid>> {
        Ok(self.heads()?.head)
    }

    /// The head with its place, and what the log is laid out for.
    ///
    /// # Errors
    ///
    /// Those of the file system.
    pub fn heads(&self) -> Result<Heads> {
        heads(&self.cached, &self.name)
    }

    /// Reads from a position of the ring on, as the page cache has it; fewer bytes at its end.
    ///
    /// # Errors
    ///
    /// Those of the file system.
    pub fn read(&self, buffer: &mut [u8], position: u64) -> Result<usize> {
        let at = RING_START.saturating_add(position);
        read_some(&self.cached, buffer, at).during(Operation::Read, &self.name)
    }

    /// All bytes of the file, as the page cache has them.
    ///
    /// # Errors
    ///
    /// Those of the file system, [`Error::OutOfMemory`]; [`Error::CantOpen`] for a file that is
    /// longer than any log.
    pub fn read_all(&self) -> Result<Vec<u8>> {
        let len = self.len()?;
        if len > LONGEST {
            return Err(Error::CantOpen(format!(
                "{} has {len} bytes, and no log has more than {LONGEST}: it is another file, or damaged; put the right one there, \
                 or remove it if there is none",
                self.name
            )));
        }
        let mut bytes = zeros(len)?;
        read_padded(&self.cached, &mut bytes, 0).during(Operation::Read, &self.name)?;
        Ok(bytes)
    }

    /// The ring as it is now: any process may have made it longer.
    ///
    /// # Errors
    ///
    /// Those of the file system.
    pub fn ring(&self) -> Result<Ring> {
        let len = self.len()?.saturating_sub(RING_START);
        Ok(Ring { len: len - len % STEP, block: self.block })
    }

    /// What records are padded to, in bytes: this description's block, or the head's as it was when
    /// this was opened, if that was more.
    pub fn block(&self) -> u32 {
        self.block
    }

    /// What it is laid out for; of sectors where no head told when this was opened.
    pub fn form(&self) -> Form {
        self.form.unwrap_or(Form::Sectors)
    }

    /// Whether the log is written around the page cache.
    pub fn is_direct(&self) -> bool {
        self.written.direct
    }

    /// What memory the log is stored to; `None` where it is written.
    pub fn persistence(&self) -> Option<Persistence> {
        self.written.persistence
    }

    /// The description that is written: for its identity, its locks, its owner and its rights.
    pub fn file(&self) -> &F {
        &self.file
    }

    /// Its name for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn len(&self) -> Result<u64> {
        Ok(self.file.metadata().during(Operation::Stat, &self.name)?.len)
    }
}

fn heads<F: File>(cached: &F, name: &str) -> Result<Heads> {
    let mut bytes = [0; HEADS];
    read_padded(cached, &mut bytes, 0).during(Operation::Read, name)?;
    Ok(Heads::decode(&bytes))
}
