//! What a database in mode shadow is to the rest of this crate: PRAGMAs, statistics, the ways to
//! end it.

use std::path::Path;

use dash_ffi::{Code, ConnectionRef, Error, HostVfs, LockLevel, Result, Row};
use dash_shadow::Connection;
use dash_storage::FileId;

use super::file::ShadowFile;
use super::name::MODE;
use super::{leaving, opening, readers};
use crate::errors::{inherited, to_sqlite};
use crate::holders::{InTheWay, Wanted};
use crate::mode::{COMMIT, Database, IN_TRANSACTION, Parameters, Statistic, Switching, Watched};

impl Database for ShadowFile {
    fn engine(&self) -> &'static str {
        MODE.engine()
    }

    fn pragma(&mut self, name: &str, value: Option<&str>) -> Option<Result<String>> {
        self.answer(name, value)
    }

    fn statistics(&self) -> Option<Vec<Statistic>> {
        let mut rows = self.link.statistics();
        let more = [
            // Commits that only survive a crash of the process: synchronous was OFF.
            ("unflushed_commits", self.progress.unflushed),
            // Locks that were waited for, and had as soon as whoever was in the way was done.
            ("wakeups", self.wakeups),
        ];
        rows.extend(more.map(Statistic::alone));
        Some(rows)
    }

    fn is_of(&self, file: FileId) -> Option<bool> {
        match &self.without_engine {
            Some(without) => without.file.is_of(file),
            None => Some(self.link.engine().ok()?.is_of(file)),
        }
    }

    fn in_the_way(&mut self, wanted: Wanted) -> InTheWay {
        let why = self.why_busy.take();
        let is_of_writers = matches!(wanted, Wanted::Write | Wanted::ReadAlone) && why.is_none();
        let engine = self.link.engine_if_open().filter(|_| is_of_writers);
        let told = engine.map_or_else(Vec::new, |engine| engine.writers());
        InTheWay { told, why }
    }

    fn words(&self, _: &ConnectionRef<'_>) -> Vec<(&'static str, Option<String>)> {
        vec![("rest", Some(self.link.resting().to_owned()))]
    }

    fn latencies(&self) -> Option<Vec<Row>> {
        Some(self.latencies.rows())
    }

    fn watched(&self, what: Watched<'_>) -> Option<Result<Vec<Row>>> {
        matches!(what, Watched::Readers).then(|| {
            self.link.engine().and_then(|engine| readers::rows(&engine).map_err(to_sqlite))
        })
    }

    fn is_in_wal_mode(&mut self) -> Result<bool> {
        Ok(std::mem::take(&mut self.is_in_wal_mode))
    }

    fn may_leave(&mut self) -> Result<()> {
        match self.level() {
            dash_shadow::LockLevel::None => Ok(()),
            _ => Err(Error::new(Code::ERROR, IN_TRANSACTION)),
        }
    }

    fn leave(
        mut self: Box<Self>,
        parameters: &mut Parameters,
        path: &Path,
        host: &HostVfs,
    ) -> Result<()> {
        self.keep(parameters);
        self.close_engine(host)?;
        leaving::become_plain(path)
    }

    fn keep(&mut self, parameters: &mut Parameters) {
        // In a forked child a thread may have it that is not there.
        if let Some(state) = self.link.try_state() {
            state.keep(parameters);
        }
        parameters.set_own(COMMIT, self.protocol.name());
        parameters.powersafe_overwrite = Some(self.powersafe_overwrite);
    }

    fn renew(&mut self, switching: &Switching<'_>, _: LockLevel) -> Result<Box<dyn Database>> {
        let file = opening::entered(switching)?;
        // SQLite's cache is of one of the two files, which change their names.
        let engine = file.link.engine()?;
        if !self.link.has_file_of(&engine) {
            drop(engine);
            drop(file.link.take().map(Connection::close));
            return Err(inherited(switching.path));
        }
        drop(engine);
        Ok(Box::new(file))
    }

    fn end(self: Box<Self>, host: &HostVfs) -> Result<()> {
        self.close_engine(host)
    }
}
