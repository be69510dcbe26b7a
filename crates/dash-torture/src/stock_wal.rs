//! Stock SQLite's WAL mode as if it were an engine, to show that programs of kind `wal` pass where
//! all is well, and find what is not: its files are those of stock SQLite on the simulated machine,
//! and some ways to break it.

use std::ffi::OsStr;
use std::sync::Arc;

use dash_ffi::{
    AccessCheck, DeviceCharacteristics, File, FileControl, FileKind, Handled, LockLevel, OpenFlags,
    Result, ShmLock, ShmMapping, SyncFlags,
};
use dash_simulated::Machine;

use crate::sim::stock::file::{self, Files, Handle};
use crate::sim::subject::{Claims, Sessions, Setup, SqliteFiles, Subject, WalMode, World};
use crate::variant::Variant;

/// What it does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// Nothing.
    Nothing,
    /// The flush of a commit is left out.
    CommitNotFlushed,
    /// The log is not flushed before a checkpoint copies it.
    NoBarrier,
    /// The database is not flushed after a checkpoint.
    CheckpointNotFlushed,
    /// Two may write at once.
    WritersNotLocked,
    /// Readers don't keep a checkpoint from starting the log again.
    ReadersNotLocked,
    /// The name of a new log is not made durable.
    NameNotFlushed,
    /// The log is left out by those who open it.
    LogIgnored,
}

/// The engine.
pub struct StockWal(pub Broken);

impl Subject for StockWal {
    fn engine(&self) -> &'static str {
        "stock-wal"
    }

    fn variants(&self) -> &'static [Variant] {
        &[Variant {
            name: "fdatasync",
            what: "a flush of -wal",
            uri: None,
            every_flush_counts: true,
        }]
    }

    fn claims(&self) -> Claims {
        let wal_mode = WalMode {
            beside_off: false,
            failed_flushes: false,
            keeps_stock_writers_out: false,
            pragmas: false,
        };
        Claims {
            wal_mode: Some(wal_mode),
            several_databases: false,
            stock_neighbours: true,
            without_journal: false,
        }
    }

    fn sessions(&self) -> Option<&dyn Sessions> {
        None
    }

    fn sqlite_files(&self) -> &'static dyn SqliteFiles {
        match self.0 {
            Broken::Nothing => &OnStock(Broken::Nothing),
            Broken::CommitNotFlushed => &OnStock(Broken::CommitNotFlushed),
            Broken::NoBarrier => &OnStock(Broken::NoBarrier),
            Broken::CheckpointNotFlushed => &OnStock(Broken::CheckpointNotFlushed),
            Broken::WritersNotLocked => &OnStock(Broken::WritersNotLocked),
            Broken::ReadersNotLocked => &OnStock(Broken::ReadersNotLocked),
            Broken::NameNotFlushed => &OnStock(Broken::NameNotFlushed),
            Broken::LogIgnored => &OnStock(Broken::LogIgnored),
        }
    }

    fn prepare(&self, _: &Machine, _: &Setup) {}

    fn beside(&self) -> &'static [&'static str] {
        &["-wal"]
    }

    fn leaves_a_choice(&self, _: &str) -> bool {
        false
    }

    fn stock_refuses(&self, _: &Machine, _: &str) -> Option<&'static str> {
        None
    }

    fn check_at_rest(
        &self,
        machine: &Machine,
        path: &str,
        _: &[u64],
    ) -> std::result::Result<(), String> {
        match machine.exists(format!("{path}-shm")) {
            true => Err(format!("{path}-shm is left behind")),
            false => Ok(()),
        }
    }
}

struct OnStock(Broken);

impl SqliteFiles for OnStock {
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
        let files = Files { process: world.process.clone(), shared_memory: true };
        let mut handle = file::open(&files, name, flags)?;
        if self.0 == Broken::NameNotFlushed {
            handle.forget_folder();
        }
        let (broken, is_log) = (self.0, flags.kind() == Some(FileKind::Wal));
        let world = Arc::clone(world);
        Ok(Some(Box::new(Open { handle, broken, is_log, has_committed: false, _world: world })))
    }

    fn delete(&self, world: &World, name: &OsStr, flush_folder: bool) -> Result<()> {
        file::delete(&world.process, name, flush_folder)
    }

    fn exists(&self, world: &World, name: &OsStr) -> Result<bool> {
        let is_log = name.as_encoded_bytes().ends_with(b"-wal");
        if self.0 == Broken::LogIgnored && is_log {
            file::delete(&world.process, name, false).ok();
            return Ok(false);
        }
        file::access(&world.process, name, AccessCheck::Exists)
    }
}

struct Open {
    handle: Handle,
    broken: Broken,
    is_log: bool,
    /// A frame that commits was written since the last flush.
    has_committed: bool,
    _world: Arc<World>,
}

impl File for Open {
    fn read(&mut self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.handle.read(buffer, offset)
    }

    fn write(&mut self, data: &[u8], offset: u64) -> Result<()> {
        // The header of a frame has the size of the database in it, if it commits.
        self.has_committed |= self.is_log && data.len() == 24 && data[4..8] != [0; 4];
        self.handle.write(data, offset)
    }

    fn truncate(&mut self, size: u64) -> Result<()> {
        self.handle.truncate(size)
    }

    fn sync(&mut self, flags: SyncFlags) -> Result<()> {
        let commits = std::mem::take(&mut self.has_committed);
        let left_out = match self.broken {
            Broken::CommitNotFlushed => self.is_log && commits,
            Broken::NoBarrier => self.is_log && !commits,
            Broken::CheckpointNotFlushed => !self.is_log,
            _ => false,
        };
        if left_out { Ok(()) } else { self.handle.sync(flags) }
    }

    fn size(&mut self) -> Result<u64> {
        self.handle.size()
    }

    fn lock(&mut self, level: LockLevel) -> Result<()> {
        self.handle.lock(level)
    }

    fn unlock(&mut self, level: LockLevel) -> Result<()> {
        self.handle.unlock(level)
    }

    fn check_reserved_lock(&mut self) -> Result<bool> {
        self.handle.check_reserved_lock()
    }

    fn file_control(&mut self, control: FileControl<'_>) -> Result<Handled> {
        if let FileControl::Pragma(pragma) = &control
            && pragma.name() == "keeps_log"
        {
            let mut keeps = i32::from(pragma.value() == Some("1"));
            return self.handle.file_control(FileControl::PersistWal(&mut keeps));
        }
        self.handle.file_control(control)
    }

    fn sector_size(&mut self) -> u32 {
        self.handle.sector_size()
    }

    fn device_characteristics(&mut self) -> DeviceCharacteristics {
        self.handle.device_characteristics()
    }

    fn has_shared_memory(&self) -> bool {
        self.handle.has_shared_memory()
    }

    fn shm_map(&mut self, region: usize, size: usize, extend: bool) -> Result<ShmMapping> {
        self.handle.shm_map(region, size, extend)
    }

    fn shm_lock(&mut self, slot: usize, count: usize, lock: ShmLock) -> Result<()> {
        let free = match self.broken {
            Broken::WritersNotLocked => slot == 0,
            Broken::ReadersNotLocked => slot >= 3,
            _ => false,
        };
        if free { Ok(()) } else { self.handle.shm_lock(slot, count, lock) }
    }

    fn shm_unmap(&mut self, delete: bool) -> Result<()> {
        self.handle.shm_unmap(delete)
    }

    fn close(self: Box<Self>) -> Result<()> {
        Box::new(self.handle).close()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use dash_testing::crew::each;

    use super::*;
    use crate::sim::plan::{Kind, Plan};
    use crate::sim::{Seen, Violation, run_case};

    const SOUND: StockWal = StockWal(Broken::Nothing);

    fn run(
        subject: &'static StockWal,
        seed: u64,
        page: usize,
    ) -> (usize, std::result::Result<(), Violation>) {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let mut plan = Plan::claimed(seed, page, subject.claims());
        assert_eq!(plan.kind, Kind::Wal);
        plan.metadata = dash_simulated::Metadata::Journaled;
        let ran = run_case(subject, "fdatasync", &plan, &seen);
        let states = seen.lock().expect("nobody panicked").states.len();
        (states, ran)
    }

    fn asked(name: &str, or: u64) -> u64 {
        std::env::var(name).map_or(or, |text| text.parse().expect("a number"))
    }

    #[test]
    fn stock_sqlite_loses_nothing() {
        let from = asked("DASH_TORTURE_TRY", 0);
        each(from..from + asked("DASH_SEEDS", 9), |seed| {
            let page = [512, 1024, 4096][usize::try_from(seed % 3).unwrap_or(0)];
            let begun = std::time::Instant::now();
            let (states, ran) = run(&SOUND, seed, page);
            println!("seed {seed}: {states} states in {:?}", begun.elapsed());
            if let Err(Violation(what)) = ran {
                panic!("seed {seed}, page {page}: {what}");
            }
        });
    }

    /// Otherwise passing would mean nothing.
    #[test]
    fn every_way_to_break_it_is_found() {
        const WAYS: [&StockWal; 7] = [
            &StockWal(Broken::CommitNotFlushed),
            &StockWal(Broken::NoBarrier),
            &StockWal(Broken::CheckpointNotFlushed),
            &StockWal(Broken::WritersNotLocked),
            &StockWal(Broken::ReadersNotLocked),
            &StockWal(Broken::NameNotFlushed),
            &StockWal(Broken::LogIgnored),
        ];
        each(WAYS, |way| {
            let found = (0..60).find_map(|seed| {
                let (_, ran) = run(way, seed, 512);
                ran.err().map(|Violation(what)| (seed, what))
            });
            let Some((seed, what)) = found else { panic!("{:?} is not found", way.0) };
            println!("{:?}: seed {seed}: {}", way.0, what.lines().next().unwrap_or_default());
            assert!(!what.starts_with("a panic"), "{what}");
        });
    }
}
