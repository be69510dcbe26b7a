//! Waiting for locks: what is remembered of it, and what the user is told.

use std::time::{Duration, Instant};

use dash_ffi::{BusyHandler, Code, Error, Result, in_folder_of};
use dash_shadow::{Connection, Error as EngineError};
use dash_storage::real::Real;

use super::file::ShadowFile;
use crate::latency::Op;
use crate::wake::{self, Cause};

/// How often it is looked who is in the way, which reads the locks of the whole machine.
const LOOKED_AGAIN: Duration = Duration::from_millis(20);

impl ShadowFile {
    /// Calls the engine where SQLite does not expect `SQLITE_BUSY`: under locking_mode=EXCLUSIVE
    /// the next commit's copy may still be read. Asks the busy handler here, then gives up with an
    /// I/O error.
    pub(crate) fn patiently<R>(
        &mut self,
        mut call: impl FnMut(&mut Connection<Real>) -> core::result::Result<R, EngineError>,
    ) -> Result<R> {
        let begun = Instant::now();
        loop {
            let seen = self.shared.queue.releases();
            self.shared.queue.want_readers_gone(true);
            let result = call(&mut *self.link.engine()?);
            match result {
                Err(EngineError::Busy | EngineError::Held(_)) => {
                    self.shared.queue.failed(seen, Cause::Readers, None);
                }
                other => {
                    self.shared.queue.want_readers_gone(false);
                    return other.map_err(|error| self.failed(error));
                }
            }
            if !self.busy.as_ref().is_some_and(BusyHandler::call) {
                self.shared.queue.want_readers_gone(false);
                let who = self.who_is_waited_for(begun.elapsed()).unwrap_or_default();
                return Err(Error::new(
                    Code::IOERR_LOCK,
                    format!(
                        "a reader keeps the copy that the next commit goes to, longer than busy_timeout: \
                         under locking_mode=EXCLUSIVE that ends the transaction. {who}"
                    ),
                ));
            }
        }
    }

    /// Takes a lock; under locking_mode=EXCLUSIVE one that SQLite keeps, and trusts its pages by.
    pub(super) fn raise(
        &mut self,
        level: dash_shadow::LockLevel,
    ) -> Result<core::result::Result<(), EngineError>> {
        let mut engine = self.link.engine()?;
        if engine.level() == dash_shadow::LockLevel::None {
            engine.is_used();
        }
        Ok(match engine.lock(level) {
            Ok(()) if self.exclusive => engine.hold_off_writers(),
            locked => locked,
        })
    }

    pub(super) fn must_wait(&mut self, seen: u64, cause: Cause, code: Code) -> Error {
        let turn = self.link.engine_if_open().and_then(|engine| engine.turn());
        self.shared.queue.failed(seen, cause, turn);
        self.waiting_since.get_or_insert_with(Instant::now);
        code.into()
    }

    /// Readers keep it from writing.
    pub(super) fn held(&mut self, seen: u64, why: String) -> Error {
        self.why_busy = Some(why);
        self.must_wait(seen, Cause::Writer, Code::BUSY)
    }

    /// Readers keep the copy that the commit goes to.
    pub(super) fn must_wait_for_readers(&mut self, seen: u64) -> Error {
        let error = self.must_wait(seen, Cause::Readers, Code::BUSY);
        let since = self.waiting_since.map_or(Duration::ZERO, |since| since.elapsed());
        if self.looked_at.as_ref().is_none_or(|(at, _)| at.elapsed() >= LOOKED_AGAIN) {
            self.looked_at = Some((Instant::now(), self.who_is_waited_for(since)));
        }
        self.why_busy = self.looked_at.as_ref().and_then(|(_, why)| why.clone());
        error
    }

    fn who_is_waited_for(&self, since: Duration) -> Option<String> {
        // That it can't be known is no reason to fail otherwise.
        self.link.engine_if_open()?.waits_for(since).ok()?
    }

    /// It has a lock, perhaps after it waited.
    pub(super) fn has_waited(&mut self, becomes_writer: bool) {
        let since = self.waiting_since.take();
        if since.is_some() {
            self.shared.queue.want_readers_gone(false);
        }
        if becomes_writer {
            // Others may be in the way of this commit than of the one before.
            self.looked_at = None;
        }
        if !becomes_writer && since.is_none() {
            return;
        }
        // SQLite gives up its read lock before it asks the busy handler: then only the thread knows
        // how long it has waited.
        let waited = wake::succeeded();
        self.wakeups += u64::from(waited.is_some_and(|waited| waited.woken));
        let notice = self.link.engine_if_open().and_then(|mut engine| engine.kept_notice());
        if let Some(notice) = notice {
            self.host.note(Code::WARNING, &in_folder_of(&self.link.path, &notice));
        }
        if let Some(since) = since.or(waited.map(|waited| waited.since)) {
            self.latencies.record(Op::LockWait, since);
        }
    }
}
