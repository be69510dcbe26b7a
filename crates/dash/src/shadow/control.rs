//! The file controls of a database in mode shadow. Among them is the commit: SYNC prepares it,
//! `xSync` flushes it, COMMIT_PHASETWO publishes it.

use std::path::Path;
use std::time::Instant;

use dash_ffi::{FileControl, Handled, Result};
use dash_shadow::{Error as EngineError, Protocol};

use super::file::ShadowFile;
use super::secure_delete;
use crate::controls::{answer_temporary_name, lock_number, set_mmap_size, toggle};
use crate::latency::Op;
use crate::mode::COMMIT;
use crate::rollback::super_journal;

impl ShadowFile {
    /// Answers a control; PRAGMA is answered one level up.
    pub(super) fn control(&mut self, control: FileControl<'_>) -> Result<Handled> {
        match control {
            FileControl::Sync { super_journal } => self.prepare(super_journal)?,
            FileControl::CommitPhaseTwo => self.publish()?,
            FileControl::BusyHandler(handler) => self.busy = Some(handler),
            FileControl::HasMoved(moved) => {
                *moved = self.call(|engine| engine.has_moved())?;
            }
            FileControl::MmapSize(size) => self.link.with_maps(|maps| set_mmap_size(maps, size)),
            FileControl::VfsName(mut name) => name.answer("shadow"),
            FileControl::LockState(level) => *level = lock_number(self.level()),
            FileControl::LastErrno(errno) => *errno = self.errno,
            FileControl::PersistWal(setting) => toggle(&mut self.persist_wal, setting),
            FileControl::PowersafeOverwrite(setting) => {
                toggle(&mut self.powersafe_overwrite, setting);
            }
            FileControl::ExternalReader(reader) => *reader = 0,
            FileControl::TempFilename(name) => return answer_temporary_name(name),
            // The engine grows its files as it sees fit, and knows its connections already. A chunk
            // size is kept one level up, for the plain file that may come.
            FileControl::SizeHint(_)
            | FileControl::ChunkSize(_)
            | FileControl::Overwrite(_)
            | FileControl::Pdb(_) => {}
            _ => return Ok(Handled::No),
        }
        Ok(Handled::Yes)
    }

    /// The lock that SQLite has.
    pub(super) fn level(&self) -> dash_shadow::LockLevel {
        match self.without_engine {
            Some(_) => dash_shadow::LockLevel::Shared,
            None => self.link.level(),
        }
    }

    /// SYNC: everything goes to the shadow, to be flushed in one go. Not yet the commit: a rollback
    /// that had spilled sends it too.
    fn prepare(&mut self, super_journal: Option<&Path>) -> Result<()> {
        self.progress.begun = Some(Instant::now());
        self.progress.flushed = false;
        let secure_delete = self.secure_delete.unwrap_or_else(secure_delete::is_on);
        self.link.engine()?.set_secure_delete(secure_delete);
        self.progress.leaving_super_journal =
            super_journal.is_none() && self.prepared.is_prepared();
        let name = match super_journal {
            None => None,
            Some(path) => {
                self.prepared.set_super_journal(Some(path.to_path_buf()));
                super_journal::check_children(path, &self.link.path)?;
                Some(super_journal::relative(&self.folder, path))
            }
        };
        let prepared = self.link.engine()?.prepare(name.as_deref());
        match prepared {
            Err(EngineError::Busy) => self.patiently(|engine| engine.prepare(name.as_deref())),
            other => other.map_err(|error| self.failed(error)),
        }
    }

    /// xSync.
    pub(crate) fn flush(&mut self) -> Result<()> {
        let begun = Instant::now();
        let flushed = self.link.engine()?.flush();
        self.latencies.record(Op::Flush, begun);
        flushed.map_err(|error| self.failed(error))?;
        self.progress.flushed = true;
        if self.progress.leaving_super_journal {
            self.leave_super_journal();
        }
        Ok(())
    }

    /// COMMIT_PHASETWO.
    fn publish(&mut self) -> Result<()> {
        self.call(|engine| engine.publish())?;
        self.link.siblings.resting.has_committed();
        self.leave_super_journal();
        if let Some(begun) = self.progress.begun.take() {
            self.latencies.record(Op::Commit, begun);
            self.progress.unflushed += u64::from(!self.progress.flushed);
            self.progress.commits_under_lock += 1;
            if self.progress.commits_under_lock > 1 && self.protocol == Protocol::Paper {
                // locking_mode=EXCLUSIVE, set where no PRAGMA came by here.
                self.link.choose(COMMIT, Protocol::Exclusive.name());
            }
        }
        Ok(())
    }
}
