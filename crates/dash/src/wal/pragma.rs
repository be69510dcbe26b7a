//! The PRAGMAs of mode wal, and those of mode shadow that mean nothing here.

use dash_ffi::{Code, Error, Result};
use dash_wal::Execute;

use super::file::WalFile;
use super::parameters::{self, BARRIER, DURABILITY, READ, STOCK, WAL};
use super::statement;
use crate::controls::deletes_securely;
use crate::rerun::Executor;
use crate::statements::TEXT;

/// Those that are its own.
pub const ALL: &[&str] = &[DURABILITY, BARRIER, READ, TEXT, WAL, STOCK];

fn wrong(message: String) -> Error {
    Error::new(Code::ERROR, message)
}

/// What only the URI chooses: an error, if another value is wanted than the present one.
fn chosen_at_opening<T: Copy + PartialEq>(
    parameter: &str,
    name: fn(T) -> &'static str,
    present: T,
    wanted: Option<T>,
) -> Result<&'static str> {
    match wanted.filter(|wanted| *wanted != present) {
        None => Ok(name(present)),
        Some(wanted) => Err(wrong(format!(
            "{parameter}={0} is chosen when the database is opened: close all connections, and open it with {parameter}={0} in \
             its URI",
            name(wanted)
        ))),
    }
}

impl WalFile {
    /// See [`crate::mode::Database::pragma`].
    pub(super) fn answer(&mut self, name: &str, value: Option<&str>) -> Option<Result<String>> {
        let answer = match name {
            DURABILITY => self.dash_durability(value),
            BARRIER => self.dash_barrier(value),
            READ => self.dash_read(value),
            TEXT => self.dash_statement_text(value),
            WAL => self.dash_wal(value),
            STOCK => self.dash_stock(value),
            "dash_time_reads" => self.dash_time_reads(value),
            "secure_delete" => {
                // SQLite answers it.
                self.link.state().paper.deletes_as_told |= value.is_some();
                if value.is_some_and(deletes_securely) {
                    drop(self.link.state().engine().map(|engine| engine.keep_no_log()));
                }
                return None;
            }
            "dash_commit" if self.mode == statement::MODE => self.dash_commit(value),
            "dash_commit" => Err(wrong(
                "dash_commit means nothing in mode wal: a commit is one write and one flush, which commits of several \
                 connections share; PRAGMA dash_durability says what it survives"
                    .to_owned(),
            )),
            _ => return None,
        };
        Some(answer.map(str::to_owned))
    }

    fn dash_commit(&mut self, value: Option<&str>) -> Result<&'static str> {
        if self.link.is_read_only {
            let path = self.link.path.display();
            return Err(wrong(format!("dash_commit: {path} was opened for reading only")));
        }
        let mut state = self.link.state();
        if let Some(name) = value {
            let is_paper = statement::protocol(name).map_err(wrong)?;
            if is_paper && state.engine()?.is_in_memory() {
                return Err(wrong(statement::NOT_IN_MEMORY.to_owned()));
            }
            let unseen = self.link.why_unseen(&state).filter(|_| is_paper);
            if let Some(why) = unseen {
                return Err(wrong(statement::not_seen(why)));
            }
            state.paper.runner = is_paper.then(|| Executor::of(&self.host).runner());
        }
        Ok(statement::name_of(state.paper.runner.is_some()))
    }

    fn dash_durability(&mut self, value: Option<&str>) -> Result<&'static str> {
        let mut state = self.link.state();
        let engine = state.engine()?;
        if let Some(value) = value {
            engine.settings.durability = parameters::durability(value).map_err(wrong)?;
        }
        Ok(parameters::name_of(engine.settings.durability))
    }

    fn dash_barrier(&mut self, value: Option<&str>) -> Result<&'static str> {
        let mut state = self.link.state();
        if let Some(value) = value {
            let barrier = parameters::barrier(value).map_err(wrong)?;
            state.call(|engine| engine.set_barrier(barrier))?;
        }
        Ok(parameters::name_of_barrier(state.engine()?.chosen_barrier()))
    }

    fn dash_read(&mut self, value: Option<&str>) -> Result<&'static str> {
        let mut state = self.link.state();
        let engine = state.engine()?;
        if let Some(value) = value {
            engine.settings.durable_reads = parameters::reads(value).map_err(wrong)?;
        }
        Ok(parameters::name_of_reads(engine.settings.durable_reads))
    }

    fn dash_wal(&mut self, value: Option<&str>) -> Result<&'static str> {
        let is_in_memory = self.link.state().engine()?.is_in_memory();
        let wanted = value.map(parameters::wal).transpose().map_err(wrong)?;
        chosen_at_opening(WAL, parameters::name_of_wal, is_in_memory, wanted)
    }

    fn dash_stock(&mut self, value: Option<&str>) -> Result<&'static str> {
        let chosen = self.link.state().engine()?.stock();
        let wanted = value.map(parameters::stock).transpose().map_err(wrong)?;
        chosen_at_opening(STOCK, dash_wal::Stock::name, chosen, wanted)
    }

    fn dash_statement_text(&mut self, value: Option<&str>) -> Result<&'static str> {
        let mut state = self.link.state();
        if let Some(value) = value {
            state.text = parameters::statement_text(value).map_err(wrong)?;
        }
        Ok(parameters::name_of_text(state.text))
    }

    fn dash_time_reads(&mut self, value: Option<&str>) -> Result<&'static str> {
        if let Some(value) = value {
            self.time_reads = crate::latency::times_reads(value).map_err(wrong)?;
        }
        Ok(if self.time_reads { "on" } else { "off" })
    }
}
