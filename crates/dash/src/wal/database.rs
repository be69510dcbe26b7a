//! What a database in mode wal is to the rest of this crate: PRAGMAs, statistics, the ways to end
//! it.

use std::path::Path;
use std::sync::atomic::Ordering;

use dash_ffi::{Code, ConnectionRef, Error, HostVfs, LockLevel, Result, Row, Value};
use dash_storage::FileId;
use dash_wal::{
    Conflict, Connection, Doing, Durability, LockLevel as EngineLevel, LogMedium, RestState,
};

use super::file::WalFile;
use super::link::State;
use super::{parameters, rest, unfinished, watch};
use crate::errors::to_sqlite;
use crate::holders::{InTheWay, Wanted};
use crate::mode::{Database, IN_TRANSACTION, Mode, Parameters, Statistic, Switching, Watched};
use crate::plain;

impl Database for WalFile {
    /// Once SQLite has left WAL mode, what it does from here on it does to a plain file.
    fn engine(&self) -> &'static str {
        if self.is_left() { plain::MODE.engine() } else { self.mode.engine() }
    }

    fn pragma(&mut self, name: &str, value: Option<&str>) -> Option<Result<String>> {
        self.answer(name, value)
    }

    fn statistics(&self) -> Option<Vec<Statistic>> {
        let mut state = self.link.state();
        let engine = state.engine().ok()?;
        let mut rows = Statistic::with_totals(&engine.statistics().rows(), &engine.totals());
        // Locks that were waited for, and had as soon as whoever was in the way was done.
        rows.push(Statistic::alone(("wakeups", self.wakeups)));
        Some(rows)
    }

    fn words(&self, connection: &ConnectionRef<'_>) -> Vec<(&'static str, Option<String>)> {
        let mut state = self.link.state();
        let medium = state.engine().ok().and_then(|engine| engine.log_medium());
        let medium = medium.map(parameters::name_of_medium).map(str::to_owned);
        let rest = state.engine().ok().and_then(|engine| engine.rest_state().ok());
        let reasons = state.paper.reasons();
        drop(state);
        vec![
            ("rest", rest.map(|rest| name_of_rest(rest).to_owned())),
            ("mode", Some(self.mode.names()[0].to_owned())),
            ("log_medium", medium),
            ("statements", Some(self.link.recording(connection).to_owned())),
            ("not_carried", reasons),
        ]
    }

    fn is_of(&self, file: FileId) -> Option<bool> {
        Some(self.link.state().engine().ok()?.is_of(file))
    }

    fn in_the_way(&mut self, wanted: Wanted) -> InTheWay {
        let doing = match wanted {
            Wanted::Write => Doing::Writes,
            Wanted::Checkpoint => Doing::Checkpoints,
            Wanted::NoReaderOfWal => Doing::Reads,
            Wanted::Newest => {
                let conflict = self.link.state().engine().ok().and_then(Connection::take_conflict);
                let name = self.link.path.file_name().unwrap_or_default().to_string_lossy();
                let why = conflict.and_then(|conflict| text_of(&name, conflict));
                return InTheWay { told: Vec::new(), why };
            }
            _ => return InTheWay::default(),
        };
        let told = self.link.state().engine().map(|engine| engine.told(doing));
        InTheWay { told: told.unwrap_or_default(), why: None }
    }

    fn was_outdated(&mut self) -> bool {
        std::mem::take(&mut self.was_outdated)
    }

    fn is_checkpoint_writing(&self) -> bool {
        self.link.state().engine().is_ok_and(|engine| engine.is_checkpoint_writing())
    }

    fn takes_form(&mut self, mode: &'static dyn Mode) {
        self.mode = mode;
        let records = mode.records_statements() || self.records_anyway;
        self.link.records.store(records, Ordering::Relaxed);
        if records {
            self.link.state().record();
        }
        if !mode.records_statements() {
            self.link.state().paper.leave();
        }
    }

    fn durability(&self, synchronous: Option<&str>) -> Option<Value> {
        let mut state = self.link.state();
        let engine = state.engine().ok()?;
        let (chosen, medium) = (engine.settings.durability, engine.log_medium());
        let word = match (chosen, synchronous) {
            (Durability::Host, Some("0")) => Some("off"),
            // Nothing that is there survives a power loss, however it came there.
            _ if medium == Some(LogMedium::Volatile) => Some("volatile"),
            (Durability::Host, Some("1")) => Some("normal"),
            (Durability::Host, Some(_)) => Some(parameters::name_of(Durability::Full)),
            (Durability::Host, None) => None,
            (chosen, _) => Some(parameters::name_of(chosen)),
        };
        Some(word.into())
    }

    fn latencies(&self) -> Option<Vec<Row>> {
        Some(self.link.state().latencies.rows())
    }

    fn watched(&self, what: Watched<'_>) -> Option<Result<Vec<Row>>> {
        Some(watch::rows(&self.link, what))
    }

    fn is_left(&self) -> bool {
        let unlocked = || {
            self.link
                .state()
                .engine()
                .is_ok_and(|engine| engine.database().level() == EngineLevel::None)
        };
        self.is_left && unlocked()
    }

    /// Only SQLite leaves WAL mode.
    fn may_leave(&mut self) -> Result<()> {
        if self.link.is_read_only {
            return Err(self.refusal());
        }
        let mut state = self.link.state();
        let unlocked = state.engine()?.database().level() == EngineLevel::None;
        match unlocked && !Self::says_wal(&mut state)? {
            true => Ok(()),
            false => Err(Error::new(Code::ERROR, IN_TRANSACTION)),
        }
    }

    fn leave(self: Box<Self>, kept: &mut Parameters, path: &Path, _: &HostVfs) -> Result<()> {
        self.keep_settings(kept, &mut self.link.state())?;
        self.close_engine()?;
        unfinished::remove_log(path, false);
        Ok(())
    }

    fn resting_level(&self) -> LockLevel {
        let state = self.link.try_state();
        match state.is_some_and(|state| state.has_log) {
            true => LockLevel::Shared,
            false => LockLevel::None,
        }
    }

    fn keep(&mut self, parameters: &mut Parameters) {
        if let Some(mut state) = self.link.try_state() {
            // Fails where it is closed: then nothing is opened again.
            drop(self.keep_settings(parameters, &mut state));
        }
    }

    fn renew(&mut self, switching: &Switching<'_>, level: LockLevel) -> Result<Box<dyn Database>> {
        Ok(Box::new(self.renewed(switching, level)?))
    }

    fn end(self: Box<Self>, _: &HostVfs) -> Result<()> {
        self.close_engine()
    }
}

impl WalFile {
    fn keep_settings(&self, kept: &mut Parameters, state: &mut State) -> Result<()> {
        let engine = state.engine()?;
        kept.set_own(parameters::DURABILITY, parameters::name_of(engine.settings.durability));
        kept.set_own(parameters::BARRIER, parameters::name_of_barrier(engine.chosen_barrier()));
        kept.set_own(parameters::READ, parameters::name_of_reads(engine.settings.durable_reads));
        kept.powersafe_overwrite = Some(self.powersafe_overwrite);
        Ok(())
    }

    /// Closes the engine.
    pub(super) fn close_engine(self) -> Result<()> {
        let closed = match self.link.take() {
            Some(engine) => engine.close().map_err(to_sqlite),
            None => Ok(()),
        };
        if let Some(siblings) = self.link.siblings.upgrade() {
            drop(self.link);
            rest::closed(&siblings);
        }
        closed
    }
}

/// As `dash_stats` has it.
fn name_of_rest(rest: RestState) -> &'static str {
    match rest {
        RestState::AtRest => "at rest",
        RestState::Off => "off",
        RestState::Writer => "writer",
        RestState::Unseen => "exclusive",
        RestState::Time => "soon",
    }
}

/// Why a transaction could not go on to write, and what to do.
fn text_of(name: &str, conflict: Conflict) -> Option<String> {
    let met = match conflict {
        Conflict::Page(page) => {
            format!("another one has changed page {page} since, which this one has read")
        }
        Conflict::Size => "another one has made the database larger or smaller since".to_owned(),
        Conflict::Several => {
            "others have committed since, and it has read other databases, too".to_owned()
        }
        Conflict::Unknown => return None,
    };
    Some(format!(
        "{name}: this transaction has read, and {met}, so it can't write any more. No timeout helps: roll it back, and run it again. One that \
         begins with BEGIN IMMEDIATE waits for its turn instead"
    ))
}
