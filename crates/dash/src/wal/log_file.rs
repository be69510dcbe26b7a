//! `-wal`, as SQLite sees it: SQLite opens it on behalf of a connection, and closes it first. And
//! the commits that it writes there.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use dash_ffi::{
    Code, DeviceCharacteristics, Door, Error, File, OpenFlags, Opened, Result, SyncFlags,
};
use dash_wal::Connection;

use super::file::WalFile;
use super::link::{Link, State};
use crate::errors::inherited;
use crate::latency::Op;
use crate::main_file::SECTOR;
use crate::together;

/// Bytes of a frame's header; SQLite writes it by itself, before the page.
const FRAME_HEADER: usize = 24;
/// Where it has the size of the database, which only the last frame of a transaction has.
const COMMIT_SIZE: std::ops::Range<usize> = 4..8;

/// See the module.
struct LogFile {
    link: Arc<Link>,
    door: Option<Door>,
}

/// Opens it.
///
/// # Errors
///
/// The engine's.
pub fn open(link: Arc<Link>, _: &Path, flags: OpenFlags) -> Result<Opened> {
    let mut state = link.state();
    state.call(Connection::wal_open)?;
    state.has_log = true;
    let door = state.kept.as_ref().map(dash_ffi::KeptConnection::door);
    drop(state);
    Ok(Opened { file: Box::new(LogFile { link, door }), flags })
}

/// Whether this ends a transaction.
fn is_commit_frame(data: &[u8]) -> bool {
    data.len() == FRAME_HEADER && data[COMMIT_SIZE] != [0; 4]
}

impl LogFile {
    /// The connection: in a forked child the one that goes on there, once the database's file has
    /// brought it about.
    #[inline]
    fn link(&mut self) -> Result<&Arc<Link>> {
        while let Some(renewed) = self.link.renewed() {
            self.link = Arc::clone(renewed);
        }
        match self.link.is_inherited() {
            false => Ok(&self.link),
            true => Err(inherited(&self.link.path)),
        }
    }
}

impl Link {
    /// Before a commit frame: an error after a commit has become visible reaches nobody where its
    /// transaction also writes other files, so there it has to be durable before. Nor may it become
    /// visible where the transaction is refused.
    fn begin_commit(&self, state: &mut State) -> Result<()> {
        state.begun = Some(Instant::now());
        let (written, main) = state
            .kept
            .as_ref()
            .and_then(|kept| {
                kept.visit(|connection| {
                    let mut written = connection.files_written();
                    let is_alone = written.iter().all(|path| *path == self.path);
                    if is_alone {
                        written.clear();
                    }
                    let main = (!is_alone).then(|| connection.path("main"));
                    (written, main.flatten())
                })
            })
            .unwrap_or_default();
        let undeferred = !written.is_empty();
        together::check_unseen(main.as_deref(), &self.path, &written)?;
        if undeferred != state.undeferred {
            state.undeferred = undeferred;
            state.engine()?.set_undeferred(undeferred);
        }
        self.capture_statements(state, undeferred);
        Ok(())
    }
}

impl WalFile {
    /// COMMIT_PHASETWO: waits until the commit is durable, as far as it is to be.
    pub(super) fn committed(&mut self) -> Result<()> {
        let mut state = self.link.state();
        self.link.keep_statements(&mut state);
        let begun = state.begun.take();
        let committed = state.call_that_flushes(Connection::committed);
        self.tell(state.engine()?);
        committed?;
        if let Some(begun) = begun {
            state.latencies.record(Op::Commit, begun);
        }
        let after = state.engine()?.rests_after();
        let held = state.engine()?.uncopied_wal().filter(|held| *held > self.tolerates);
        drop(state);
        if let Some(held) = held {
            self.warn_of_readers(held);
        }
        if let Some(links) = self.link.siblings.upgrade() {
            links.resting.has_committed();
        }
        self.watch_for_rest(after);
        Ok(())
    }
}

impl File for LogFile {
    fn read(&mut self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.link()?.state().call(|engine| engine.wal_read(buffer, offset))
    }

    fn write(&mut self, data: &[u8], offset: u64) -> Result<()> {
        let link = self.link()?;
        if link.is_read_only {
            return Err(Code::READONLY.into());
        }
        let mut state = link.state();
        if is_commit_frame(data) {
            link.begin_commit(&mut state)?;
        }
        state.call(|engine| engine.wal_write(data, offset))
    }

    fn truncate(&mut self, size: u64) -> Result<()> {
        self.link()?.state().call(|engine| engine.wal_truncate(size))
    }

    fn sync(&mut self, _: SyncFlags) -> Result<()> {
        self.link()?.state().call_that_flushes(Connection::wal_sync)
    }

    fn size(&mut self) -> Result<u64> {
        self.link()?.state().call(|engine| engine.wal_size())
    }

    fn sector_size(&mut self) -> u32 {
        SECTOR
    }

    /// SQLite asks the database's file.
    fn device_characteristics(&mut self) -> DeviceCharacteristics {
        DeviceCharacteristics::empty()
    }

    /// The database's: SQLite is in one of the two at a time, and what is known of its connection
    /// is known in both.
    fn door(&self) -> Option<Door> {
        self.door.clone()
    }

    fn close(mut self: Box<Self>) -> Result<()> {
        let Ok(link) = self.link() else {
            return Ok(()); // the parent's
        };
        let mut state = link.state();
        (state.has_log, state.outdated) = (false, true);
        match state.engine() {
            Ok(_) => state.call(Connection::wal_close),
            // The database's file was closed before, against the rule.
            Err(Error { .. }) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_frame_of_a_transaction_ends_it() {
        let mut header = [7; FRAME_HEADER];
        assert!(is_commit_frame(&header));
        header[COMMIT_SIZE].fill(0);
        assert!(!is_commit_frame(&header));
        assert!(!is_commit_frame(&[7; 32]), "the header of the log itself");
        assert!(!is_commit_frame(&[7; 512]), "a page");
    }
}
