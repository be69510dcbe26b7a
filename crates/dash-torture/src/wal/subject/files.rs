//! SQLite's files below its WAL mode: the database and `-wal` are the engine's, a rollback journal,
//! with which the mode is entered and left, is a plain file.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use dash_ffi::{
    AccessCheck, Code, DeviceCharacteristics, File, FileControl, FileKind, Handled, KeptConnection,
    LockLevel, OpenFlags, Pragma, Result, SharedRegion, ShmLock, ShmMapping, SyncFlags,
};
use dash_simulated::Simulated;
use dash_storage::LockKind;
use dash_wal::{Barrier, Durability, Reading};

use super::log::Log;
use super::shared::{Shared, engine};
use crate::sim::stock_file as file;
use crate::sim::subject::{SqliteFiles, World};

type Connection = dash_wal::Connection<Simulated>;

/// See above.
#[derive(Debug, Clone, Copy, Default)]
pub struct Files;

impl SqliteFiles for Files {
    fn journal_mode(&self) -> &'static str {
        "WAL"
    }

    fn undoes_by_writing(&self) -> bool {
        false
    }

    fn open(
        &self,
        world: &Arc<World>,
        name: &OsStr,
        flags: OpenFlags,
    ) -> Result<Option<Box<dyn File>>> {
        match flags.kind() {
            Some(FileKind::MainDb) => {
                let connection = Arc::new(Shared::open(world)?);
                // A world is one connection's.
                drop(world.of_connection.set(Arc::clone(&connection) as Arc<_>));
                let world = Arc::clone(world);
                let kept = None;
                Ok(Some(Box::new(Database { connection, keeps_log: false, world, kept })))
            }
            Some(FileKind::Wal) => {
                let connection = of(world).ok_or(Code::CANTOPEN)?;
                engine(connection.get()?.wal_open(), Code::CANTOPEN)?;
                Ok(Some(Box::new(Log::new(connection, world))))
            }
            Some(FileKind::MainJournal) => {
                let (process, shared_memory) = (world.process.clone(), false);
                let files = file::Files { process, shared_memory };
                Ok(Some(Box::new(file::open(&files, name, flags)?)))
            }
            _ => Ok(None),
        }
    }

    fn delete(&self, world: &World, name: &OsStr, flush_folder: bool) -> Result<()> {
        match of(world) {
            Some(connection) if name.as_encoded_bytes().ends_with(b"-wal") => {
                engine(connection.get()?.wal_delete(), Code::IOERR_DELETE)
            }
            _ => file::delete(&world.process, name, flush_folder),
        }
    }

    /// The name fence is no journal.
    fn exists(&self, world: &World, name: &OsStr) -> Result<bool> {
        let path = Path::new("/").join(name);
        if name.as_encoded_bytes().ends_with(b"-journal") && world.is_folder(&path) {
            return Ok(false);
        }
        file::access(&world.process, name, AccessCheck::Exists)
    }
}

/// The connection of a world.
fn of(world: &World) -> Option<Arc<Shared>> {
    let kept = Arc::clone(world.of_connection.get()?);
    kept.downcast().ok()
}

/// The level, in the engine's words.
fn level(level: LockLevel) -> dash_wal::LockLevel {
    match level {
        LockLevel::None => dash_wal::LockLevel::None,
        LockLevel::Shared => dash_wal::LockLevel::Shared,
        LockLevel::Reserved => dash_wal::LockLevel::Reserved,
        LockLevel::Pending => dash_wal::LockLevel::Pending,
        LockLevel::Exclusive => dash_wal::LockLevel::Exclusive,
    }
}

/// The database.
struct Database {
    connection: Arc<Shared>,
    /// Whether `-wal` stays when the last one closes.
    keeps_log: bool,
    world: Arc<World>,
    /// SQLite's own, to be asked whether it reads.
    kept: Option<KeptConnection>,
}

impl Database {
    fn pragma(&mut self, pragma: &Pragma<'_>) -> Result<Handled> {
        let value = pragma.value().unwrap_or_default();
        let mut connection = self.connection.get()?;
        match pragma.name() {
            "dash_durability" => {
                connection.settings.durability = match value {
                    "full" => Durability::Full,
                    "device" => Durability::Device,
                    "none" => Durability::None,
                    _ => Durability::Host,
                }
            }
            "dash_barrier" => {
                let barrier = if value == "wal" { Barrier::Wal } else { Barrier::Log };
                engine(connection.set_barrier(barrier), Code::IOERR)?;
            }
            "dash_read" => connection.settings.durable_reads = value == "durable",
            "keeps_log" => self.keeps_log = value == "1",
            // As if other databases were written in the same transactions.
            "says" => self.connection.says.store(value.parse().unwrap_or(0), Relaxed),
            "carries" => self.connection.carry().ask_for(value.parse().unwrap_or(0)),
            "older" => self.connection.older.ask_for(value == "1", self.world.setup.page),
            "checkpoint" => return self.old_checkpoint(&mut connection, value),
            "pads" => self.connection.pads.store(value == "1", Relaxed),
            // As SQLite before 3.34, whose cursor outlived its transaction.
            "hides" => self.connection.hides.store(value == "1", Relaxed),
            // As the thread does in which a process watches for that.
            "rests" => drop(engine(connection.come_to_rest(), Code::IOERR_FSYNC)?),
            "busy" => self.connection.busy.ask_for(value),
            "undeferred" => connection.set_undeferred(value == "1"),
            _ => return Ok(Handled::No),
        }
        Ok(Handled::Yes)
    }
}

impl Database {
    /// One of an older SQLite takes CKPT, and reads the header of the wal-index (`begins`); later
    /// it asks for READ(0), copies, and gives both back.
    fn old_checkpoint(&self, connection: &mut Connection, step: &str) -> Result<Handled> {
        let (ckpt, read_0) = (1..2, 3..4);
        let code = Code::IOERR_SHMLOCK;
        if step == "begins" {
            engine(connection.index_lock(ckpt, LockKind::Exclusive), code)?;
            self.connection.older.checkpoint_begins();
            return Ok(Handled::Yes);
        }
        let taken = engine(connection.index_lock(read_0.clone(), LockKind::Exclusive), code);
        if taken.is_ok() {
            self.connection.older.checkpoint_copies();
            engine(connection.index_unlock(read_0), code)?;
        }
        engine(connection.index_unlock(ckpt), code)?;
        taken.map(|()| Handled::Yes)
    }
}

impl File for Database {
    fn read(&mut self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        engine(self.connection.get()?.read(buffer, offset), Code::IOERR_READ)
    }

    fn write(&mut self, data: &[u8], offset: u64) -> Result<()> {
        self.connection.busy.writes()?;
        engine(self.connection.get()?.write(data, offset), Code::IOERR_WRITE)
    }

    fn truncate(&mut self, size: u64) -> Result<()> {
        engine(self.connection.get()?.truncate(size), Code::IOERR_TRUNCATE)
    }

    fn sync(&mut self, _: SyncFlags) -> Result<()> {
        engine(self.connection.get()?.sync(), Code::IOERR_FSYNC)
    }

    fn size(&mut self) -> Result<u64> {
        engine(self.connection.get()?.database().size(), Code::IOERR_FSTAT)
    }

    fn lock(&mut self, to: LockLevel) -> Result<()> {
        engine(self.connection.get()?.lock(level(to)), Code::IOERR_LOCK)
    }

    fn unlock(&mut self, to: LockLevel) -> Result<()> {
        engine(self.connection.get()?.unlock(level(to)), Code::IOERR_UNLOCK)
    }

    fn check_reserved_lock(&mut self) -> Result<bool> {
        engine(self.connection.get()?.database().is_reserved(), Code::IOERR_CHECKRESERVEDLOCK)
    }

    fn file_control(&mut self, control: FileControl<'_>) -> Result<Handled> {
        match control {
            FileControl::Pragma(pragma) => return self.pragma(&pragma),
            FileControl::PersistWal(answer) => file::keep_log(&mut self.keeps_log, answer),
            FileControl::HasMoved(moved) => {
                *moved = engine(self.connection.get()?.has_moved(), Code::IOERR_FSTAT)?;
            }
            FileControl::CommitPhaseTwo => {
                self.connection.carry().begin();
                self.connection.older.forget_checksum();
                engine(self.connection.get()?.committed(), Code::IOERR_FSYNC)?;
            }
            FileControl::CheckpointStart => {
                engine(self.connection.get()?.checkpoint_starts(), Code::IOERR_FSYNC)?;
            }
            FileControl::CheckpointDone => self.connection.get()?.checkpoint_done(),
            FileControl::Pdb(connection) => self.kept = Some(connection.keep()),
            _ => return Ok(Handled::No),
        }
        Ok(Handled::Yes)
    }

    fn sector_size(&mut self) -> u32 {
        4096
    }

    fn device_characteristics(&mut self) -> DeviceCharacteristics {
        let always = DeviceCharacteristics::SUBPAGE_READ;
        match self.connection.pads.load(Relaxed) {
            true => always,
            false => always | DeviceCharacteristics::POWERSAFE_OVERWRITE,
        }
    }

    fn has_shared_memory(&self) -> bool {
        true
    }

    fn shm_map(&mut self, region: usize, size: usize, extend: bool) -> Result<ShmMapping> {
        let mapped = self.connection.get()?.map_region(region, size, extend);
        let mapped = engine(mapped, Code::IOERR_SHMMAP)?;
        if region == 0 {
            self.connection.older.maps(mapped);
        }
        // SAFETY: the engine's region lies in one piece, which it holds until SQLite unmaps it or
        // closes the database; all who have it use it as shared memory.
        #[expect(unsafe_code, reason = "SQLite has a pointer to it")]
        let region = mapped.map(|start| unsafe { SharedRegion::new(start) });
        Ok(ShmMapping { region, read_only: false })
    }

    fn shm_lock(&mut self, slot: usize, count: usize, lock: ShmLock) -> Result<()> {
        let slots = slot..slot + count;
        if slot == 0 && lock == ShmLock::UnlockExclusive {
            self.connection.older.forget_checksum();
        }
        if slot == 0 && lock == ShmLock::LockExclusive {
            self.connection.carry().begin();
            self.connection.older.begin();
        }
        let mut connection = self.connection.get()?;
        let done = match lock {
            ShmLock::LockShared => connection.index_lock(slots, LockKind::Shared),
            ShmLock::LockExclusive => connection.index_lock(slots, LockKind::Exclusive),
            ShmLock::UnlockShared | ShmLock::UnlockExclusive => connection.index_unlock(slots),
        };
        let is_writer = slot == 0 && lock == ShmLock::LockExclusive;
        let reads = || {
            let kept = self.kept.as_ref().filter(|_| !self.connection.hides.load(Relaxed));
            let is_reading = kept.and_then(|it| it.visit(|it| it.is_reading()));
            if is_reading == Some(true) { Reading::Own } else { Reading::Nothing }
        };
        let done = done.and_then(|()| match is_writer {
            true => connection.upgrade_if(reads).map(drop),
            false => Ok(()),
        });
        engine(done, Code::IOERR_SHMLOCK)
    }

    fn shm_unmap(&mut self, delete: bool) -> Result<()> {
        self.connection.older.maps(None);
        engine(self.connection.get()?.unmap(delete), Code::IOERR_SHMMAP)
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.connection.close()
    }
}
