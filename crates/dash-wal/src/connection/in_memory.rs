//! `-wal` and the wal-index in this process's memory ([`crate::memory`]).
//!
//! The first opener says in the coordination file which process has them; others are refused, and
//! connections of that process find the memory there. It is filled when the first of them attaches
//! the index, which SQLite asks for with SHARED of the database in its hands, and is ahead of the
//! files from then on. Before nobody has it attached any more `-wal` is whole in its file, or gone
//! (WAL-37).

use crate::alive::in_memory_of;
use crate::connection::files::Files;
use crate::connection::state::Connection;
use crate::connection::wal::Wal;
use crate::index::{self, Index};
use crate::memory::{Gate, InMemory};
use crate::mutation::{Mutation, broken};
use crate::shared::coordination::Word;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_engine::locks::LockLevel;
use dash_storage::{Directory, LockKind, Storage};
use std::sync::Arc;

impl<S: Storage> Wal<S> {
    /// What this process has in memory; in a forked child that is nothing.
    pub fn own_memory(&self) -> Option<Arc<InMemory<S>>> {
        self.memory.clone().filter(|memory| memory.is(memory.id))
    }

    /// Brings `-wal`'s file up to date, if it was not deleted, and makes it durable, for everybody
    /// to read.
    pub fn write_memory_back(&mut self, memory: &InMemory<S>, files: &Files<S>) -> Result<()> {
        let wal = self.find(files)?;
        let Some(wal) = wal else { return Ok(()) };
        self.flushes += 1;
        let written = memory.wal.write_back(&wal, true);
        if written.is_err() {
            files.shared.set(Word::Poisoned, 1);
        }
        let bytes = written.during(Operation::Flush, files.names.shown_wal())?;
        self.file_bytes += bytes as u64;
        Ok(())
    }

    /// Under locking_mode=EXCLUSIVE, chosen before SQLite has read anything, the wal-index is a
    /// connection's own.
    pub fn refuse_exclusive(&self, files: &Files<S>) -> Result<()> {
        match self.memory {
            None => Ok(()),
            Some(_) => Err(Error::CantOpen(format!(
                "{} is open with dash_wal=memory, where locking_mode=EXCLUSIVE can be chosen once the database was read, and \
                 not before: close this connection",
                files.names.shown()
            ))),
        }
    }

    /// Nobody has the index any more: `-wal`'s file gets what it lacks, and stock SQLite may come
    /// in.
    fn settle_memory(
        &mut self,
        memory: &InMemory<S>,
        gate: &mut Gate<S>,
        files: &Files<S>,
    ) -> Result<()> {
        if gate.guard.is_none() {
            return Ok(());
        }
        // Nobody has SHARED any more, which keeps a stock SQLite out that needs no index.
        if !broken(Mutation::LeftInMemory) {
            self.write_memory_back(memory, files)?;
        }
        let guard = gate.guard.take();
        let_stock_in(guard, files)
    }

    /// This connection has given its index up. `deletes`: SQLite is about to delete `-wal`.
    pub fn detach_memory(&mut self, deletes: bool, files: &Files<S>) -> Result<()> {
        let Some(memory) = self.own_memory() else { return Ok(()) };
        let mut gate = memory.gate();
        gate.attached = gate.attached.saturating_sub(1);
        match gate.attached > 0 || deletes {
            true => Ok(()),
            false => self.settle_memory(&memory, &mut gate, files),
        }
    }

    /// `-wal` was to be deleted, and was not.
    pub fn leave_memory(&mut self, files: &Files<S>) -> Result<()> {
        let Some(memory) = self.own_memory() else { return Ok(()) };
        let mut gate = memory.gate();
        match gate.attached > 0 {
            true => Ok(()),
            false => self.settle_memory(&memory, &mut gate, files),
        }
    }

    /// `-wal` was deleted, or is whole in its file, and nobody has the index. `alone`: this is the
    /// last connection, though one may have gone without giving it up.
    pub fn release_memory(&self, alone: bool, files: &Files<S>) -> Result<()> {
        let Some(memory) = self.own_memory() else { return Ok(()) };
        let mut gate = memory.gate();
        if gate.attached > 0 && !alone {
            return Ok(());
        }
        memory.wal.clear();
        let guard = gate.guard.take();
        let_stock_in(guard, files)
    }
}

impl<S: Storage> Connection<S> {
    /// Has `-wal` and the index in memory from here on; nobody else has the database open.
    pub(crate) fn keep_in_memory(&mut self) {
        let len = self.settings.tuning.wal_in_memory;
        let reserves = self.files.directory.keeps_order();
        let memory = Arc::new(InMemory::new(self.files.storage.random(), len, reserves));
        self.process.remember(&memory);
        self.files.shared.set(Word::InMemoryOf, u64::from(self.files.shared.process));
        self.files.shared.set(Word::InMemory, memory.id);
        self.wal.memory = Some(memory);
    }

    /// Joins others who have it so, or who have it in a file. `wanted`: as this one's options say.
    pub(crate) fn join_memory(&mut self, wanted: Option<bool>) -> Result<()> {
        let (c, db) = (&self.files.shared, self.files.names.shown());
        let (id, wal) = (c.get(Word::InMemory), self.files.names.shown_wal());
        if id == 0 {
            return match wanted {
                None | Some(false) => Ok(()),
                Some(true) => Err(Error::Held(format!(
                    "{db} is open with {wal} in a file: close it everywhere before it is opened with dash_wal=memory"
                ))),
            };
        }
        self.wal.memory = self.process.remembered().filter(|memory| memory.is(id));
        match self.wal.memory {
            Some(_) if wanted == Some(false) => Err(Error::Held(format!(
                "{db} is open in this process with {wal} in memory: close it everywhere before it is opened with dash_wal=file"
            ))),
            Some(_) => Ok(()),
            None if broken(Mutation::OthersLetIn) => Ok(()),
            None => Err(in_memory_of(c.get(Word::InMemoryOf), db)),
        }
    }

    /// Attaches the index in memory, which is filled if nobody had it; SHARED of the database is
    /// held.
    pub(crate) fn attach_memory(&mut self, memory: &InMemory<S>) -> Result<Index<S>> {
        let mut gate = memory.gate();
        if gate.guard.is_none() {
            gate.guard = Some(self.fill_memory(memory)?);
        }
        if gate.attached == 0 {
            memory.index.clear();
        }
        gate.attached += 1;
        let shown = self.files.names.shm.to_string_lossy().into_owned();
        Ok(Index::in_memory(&memory.index, shown))
    }

    /// Takes what `-wal`'s file holds into memory, and keeps stock SQLite out from then on, also
    /// connections that survive this process (WAL-36).
    fn fill_memory(&mut self, memory: &InMemory<S>) -> Result<Index<S>> {
        let (mut guard, is_first) = self.files.attach_index()?;
        if !is_first {
            return Err(Error::Busy);
        }
        // Who reads now would find pages in the database that are newer than its snapshot.
        let readers = index::READ..index::SLOTS;
        match guard.lock(readers.clone(), LockKind::Exclusive, &self.files.shared.file) {
            Err(Error::Busy) => return Err(is_read(&self.files)),
            locked => locked?,
        }
        self.look_again(None)?;
        guard.settle()?;
        // What a kill takes from memory is in the log from the first commit on.
        self.files.shared.set(Word::StockFirst, 0);
        let wal = self.wal.find(&self.files)?;
        memory.wal.load(wal.as_ref()).during(Operation::Read, self.files.names.shown_wal())?;
        guard.map_region(0, false)?;
        self.wal.sum_up_as_found(&guard, &self.files)?;
        if !broken(Mutation::StockLetIn) {
            guard.forbid()?;
        }
        guard.unlock(readers, &self.files.shared.file)?;
        guard.readmit()?;
        Ok(guard)
    }

    /// Whether `-wal` is in memory.
    #[must_use]
    pub fn is_in_memory(&self) -> bool {
        self.wal.memory.is_some()
    }
}

fn let_stock_in<S: Storage>(guard: Option<Index<S>>, files: &Files<S>) -> Result<()> {
    let Some(mut guard) = guard else { return Ok(()) };
    guard.allow()?;
    // A stock process may have opened `-shm` and not locked it yet: it would go on with a file
    // of that name that nobody else has. It holds SHARED by then, so that EXCLUSIVE tells.
    let nobody_opens = files.database.level() == LockLevel::Exclusive;
    let delete = nobody_opens || broken(Mutation::IndexRemovedEarly);
    guard.unmap(&*files.directory, &files.shared.file, delete)
}

fn is_read<S: Storage>(files: &Files<S>) -> Error {
    Error::Held(format!(
        "{} can't be taken into memory while a program on stock SQLite reads it: try again when that has ended its \
         transaction",
        files.names.shown()
    ))
}
