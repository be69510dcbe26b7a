//! PRAGMA on a database of dash.
//!
//! | PRAGMA | without a value | with a value |
//! |---|---|---|
//! | `journal_mode` | `shadow`, or SQLite's own answer | changes the mode, see [`crate::switch`]; a name that is none answers the mode in force, as SQLite does |
//! | `locking_mode` | SQLite's | SQLite's; under `exclusive` reading keeps others from writing, too; with `dash_commit=paper` it makes that `exclusive` |
//! | `secure_delete` | SQLite's | SQLite's; on or fast, what is deleted is also gone from the shadow at rest |
//! | `dash_commit` | `single`, `paper` or `exclusive` | chooses it for this connection |
//! | `dash_time_reads` | `on` or `off` | whether `dash_latency` times reads |
//!
//! Only a PRAGMA that names the schema, or is about `main`, comes by here: SQLite can change the pager's
//! own mode of an attached database unseen, and does no harm by it.
//!
//! SQLite names the result's column after the answer: in pragma.c, behind `SQLITE_FCNTL_PRAGMA`, the
//! one text goes to `sqlite3VdbeSetColName` and to `returnSingleText`. So the column of
//! `PRAGMA journal_mode` is called `shadow`, and nothing here can change that.

use dash_ffi::{Code, Error, File, FileControl, Handled, Pragma, Result};
use dash_shadow::Protocol;

use crate::main_file::{Kind, MainFile};
use crate::mode::{self, JournalMode};
use crate::parameters;

/// dash's own PRAGMAs, for messages.
const OURS: &str = "dash_commit, dash_time_reads";

fn wrong(message: impl Into<String>) -> Error {
    Error::new(Code::ERROR, message)
}

impl MainFile {
    /// Answers a PRAGMA, or leaves it to SQLite.
    pub(crate) fn pragma(&mut self, mut pragma: Pragma<'_>) -> Result<Handled> {
        let name = pragma.name().to_ascii_lowercase();
        match name.as_str() {
            "journal_mode" => self.journal_mode(pragma),
            "locking_mode" => {
                self.locking_mode(pragma.value());
                self.pass_on(pragma)
            }
            "secure_delete" => {
                if let (Some(file), Some(value)) = (self.shadow(), pragma.value()) {
                    file.set_secure_delete(value);
                }
                self.pass_on(pragma)
            }
            "dash_commit" => {
                let answer = self.dash_commit(pragma.value())?;
                pragma.answer(answer);
                Ok(Handled::Yes)
            }
            "dash_time_reads" => {
                let answer = self.dash_time_reads(pragma.value())?;
                pragma.answer(answer);
                Ok(Handled::Yes)
            }
            "dash_linger" => Err(wrong(format!(
                "dash_linger is a parameter of the URI, not a PRAGMA: open file:{}?vfs=dash&dash_linger={}",
                self.path.file_name().unwrap_or_default().display(),
                pragma.value().unwrap_or("MILLISECONDS")
            ))),
            name if name.starts_with("dash_") => {
                Err(wrong(format!("no such PRAGMA: {name}; dash has {OURS}")))
            }
            _ => self.pass_on(pragma),
        }
    }

    /// To the host's file, if there is one, and to SQLite.
    fn pass_on(&mut self, pragma: Pragma<'_>) -> Result<Handled> {
        match &mut self.kind {
            Kind::Plain(file) => file.file_control(FileControl::Pragma(pragma)),
            _ => Ok(Handled::No),
        }
    }

    fn journal_mode(&mut self, mut pragma: Pragma<'_>) -> Result<Handled> {
        let wanted = pragma.value().and_then(JournalMode::from_name);
        match (wanted, pragma.value()) {
            (Some(JournalMode::NotYet(name)), _) => {
                self.host.note(Code::NOTICE, &mode::not_yet(name));
            }
            // SQLite changes nothing and answers the mode in force, which hosts count on.
            (None, Some(value)) => self.host.note(Code::NOTICE, &mode::unknown(value)),
            _ => {}
        }
        match (&self.kind, wanted) {
            (Kind::Shadow(_), Some(JournalMode::Plain)) => {
                self.leave_shadow()?;
                // Now SQLite's own: it sets the pager's mode and answers.
                return self.pass_on(pragma);
            }
            (Kind::Plain(_), Some(JournalMode::Shadow)) => self.enter_shadow()?,
            // It asks the file for shared memory, gets none, and answers the mode it keeps.
            (Kind::Plain(_), _) => return self.pass_on(pragma),
            (Kind::ReadOnly(file), Some(JournalMode::Plain)) => return Err(file.refusal()),
            _ => {}
        }
        pragma.answer("shadow");
        Ok(Handled::Yes)
    }

    fn locking_mode(&mut self, value: Option<&str>) {
        let (Some(file), Some(value)) = (self.shadow(), value) else {
            return;
        };
        let exclusive = value.eq_ignore_ascii_case("exclusive");
        // Any other name SQLite takes for a question.
        if exclusive || value.eq_ignore_ascii_case("normal") {
            file.exclusive = exclusive;
        }
        if file.protocol == Protocol::Paper {
            file.engine.set_protocol(if exclusive { Protocol::Exclusive } else { Protocol::Paper });
        }
    }

    fn dash_commit(&mut self, value: Option<&str>) -> Result<&'static str> {
        let Some(file) = self.shadow() else {
            return Err(self.not_shadow("dash_commit"));
        };
        if let Some(value) = value {
            file.protocol = parameters::protocol(value).map_err(wrong)?;
            file.engine.set_protocol(file.protocol);
        }
        Ok(file.engine.protocol().name())
    }

    fn dash_time_reads(&mut self, value: Option<&str>) -> Result<&'static str> {
        let Some(file) = self.shadow() else {
            return Err(self.not_shadow("dash_time_reads"));
        };
        if let Some(value) = value {
            file.time_reads = match value.to_ascii_lowercase().as_str() {
                "on" | "1" | "true" | "yes" => true,
                "off" | "0" | "false" | "no" => false,
                _ => {
                    return Err(wrong(format!(
                        "no such dash_time_reads: {value}; there are on, off"
                    )));
                }
            };
        }
        Ok(if file.time_reads { "on" } else { "off" })
    }

    fn not_shadow(&self, pragma: &str) -> Error {
        let path = self.path.display();
        wrong(match self.kind {
            Kind::ReadOnly(_) => format!("{pragma}: {path} was opened for reading only"),
            _ => {
                format!("{pragma}: {path} is not in mode shadow; PRAGMA journal_mode=shadow first")
            }
        })
    }
}
