//! The file controls of a database in mode wal. Among them is the end of a commit: it is visible
//! when COMMIT_PHASETWO comes, and durable when that returns.

use std::time::Duration;

use dash_ffi::{Code, FileControl, Handled, Result, in_folder_of};
use dash_storage::real::Real;
use dash_wal::Connection;

use super::file::WalFile;
use super::rest;
use crate::controls::{answer_temporary_name, lock_number, set_mmap_size, toggle};
use crate::holders::{Wanted, in_the_way};

impl WalFile {
    /// Answers a control; PRAGMA is answered one level up, or by SQLite.
    pub(super) fn control(&mut self, control: FileControl<'_>) -> Result<Handled> {
        match control {
            FileControl::CommitPhaseTwo => self.committed()?,
            FileControl::CheckpointStart => {
                self.link.state().call(Connection::checkpoint_starts)?;
            }
            FileControl::CheckpointDone => {
                let mut state = self.link.state();
                let engine = state.engine()?;
                engine.checkpoint_done();
                let after = engine.rests_after();
                drop(state);
                self.watch_for_rest(after);
            }
            FileControl::HasMoved(moved) => {
                let mut state = self.link.state();
                *moved = state.call(Connection::is_wal_left)?;
                self.tell(state.engine()?);
            }
            FileControl::Pdb(connection) => self.link.state().kept = Some(connection.keep()),
            FileControl::MmapSize(size) => set_mmap_size(&mut self.maps, size),
            FileControl::VfsName(mut name) => name.answer("wal"),
            FileControl::LockState(level) => {
                *level = lock_number(self.link.state().engine()?.database().level());
            }
            FileControl::LastErrno(errno) => *errno = self.link.state().errno,
            FileControl::PersistWal(setting) => toggle(&mut self.persist_wal, setting),
            FileControl::PowersafeOverwrite(setting) => {
                toggle(&mut self.powersafe_overwrite, setting);
            }
            FileControl::TempFilename(name) => return answer_temporary_name(name),
            FileControl::SizeHint(size) => self.expect_size(size)?,
            FileControl::ChunkSize(size) => self.chunk = u64::try_from(size).unwrap_or(0),
            // SQLite's own busy handler is called by SQLite. SYNC is about a journal, which is a
            // file of the host's.
            FileControl::Overwrite(_) | FileControl::BusyHandler(_) | FileControl::Sync { .. } => {}
            // EXTERNAL_READER among them: the engine knows of readers, not whose they are.
            _ => return Ok(Handled::No),
        }
        Ok(Handled::Yes)
    }

    /// Says once who reads what keeps `-wal` from being begun anew. Where nobody does, it is looked
    /// again when that is twice as large.
    #[cold]
    pub(super) fn warn_of_readers(&mut self, held: u64) {
        let path = &self.link.path;
        self.tolerates = held.saturating_mul(2);
        if let Some(who) = in_the_way(path, Wanted::NoReaderOfWal, &[], Duration::ZERO) {
            self.tolerates = u64::MAX;
            let (path, held) = (path.display(), held >> 20);
            self.host.note(
                Code::WARNING,
                &format!(
                    "{path}-wal has {held} MiB and grows, as no checkpoint can begin it anew: {who}. End that transaction (reset or \
                     finalize its statements) or process"
                ),
            );
        }
    }

    /// Says what the engine has to say of calls that did not fail.
    pub(super) fn tell(&self, engine: &mut Connection<Real>) {
        if let Some(notice) = engine.take_notice() {
            self.host.note(Code::WARNING, &in_folder_of(&self.link.path, &notice));
        }
    }

    /// Where the log is in use somebody has to end that.
    pub(super) fn watch_for_rest(&self, after: Option<Duration>) {
        if self.link.is_read_only {
            return;
        }
        if let (Some(after), Some(links)) = (after, self.link.siblings.upgrade()) {
            rest::watch(&links, after);
        }
    }
}
