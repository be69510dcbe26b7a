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
//! Only a PRAGMA that names the schema, or is about `main`, comes by here: SQLite can change the
//! pager's own mode of an attached database unseen, and does no harm by it.
//!
//! SQLite names the result's column after the answer: in pragma.c, behind `SQLITE_FCNTL_PRAGMA`,
//! the one text goes to `sqlite3VdbeSetColName` and to `returnSingleText`. So the column of `PRAGMA
//! journal_mode` is called `shadow`, and nothing here can change that.

use dash_ffi::{Code, Error, FileControl, Handled, Pragma, Result};

use crate::main_file::MainFile;
use crate::modes::MODES;

fn wrong(message: impl Into<String>) -> Error {
    Error::new(Code::ERROR, message)
}

impl MainFile {
    /// Answers a PRAGMA, or leaves it to SQLite.
    pub(crate) fn pragma(&mut self, mut pragma: Pragma<'_>) -> Result<Handled> {
        let name = pragma.name().to_ascii_lowercase();
        if name == "journal_mode" {
            return self.journal_mode(pragma);
        }
        match self.database.pragma(&name, pragma.value()) {
            Some(answer) => {
                pragma.answer(&answer?);
                Ok(Handled::Yes)
            }
            None if name.starts_with("dash_") => Err(self.unanswered(&name, pragma.value())),
            None => self.pass_on(pragma),
        }
    }

    /// To the host's file, if there is one, and to SQLite.
    fn pass_on(&mut self, pragma: Pragma<'_>) -> Result<Handled> {
        self.database.file_control(FileControl::Pragma(pragma))
    }

    fn journal_mode(&mut self, mut pragma: Pragma<'_>) -> Result<Handled> {
        let wanted = pragma.value().and_then(|name| MODES.named(name));
        match (wanted, pragma.value()) {
            (Some(mode), _) if mode != self.mode => self.switch(mode)?,
            // SQLite changes nothing and answers the mode in force, which hosts count on.
            (None, Some(value)) => self.host.note(Code::NOTICE, &MODES.unknown(value)),
            _ => {}
        }
        if self.mode.is_plain() {
            // SQLite's own: it sets the pager's mode and answers. Asked for WAL it asks the file
            // for shared memory, gets none, and answers the mode it keeps.
            return self.pass_on(pragma);
        }
        pragma.answer(self.mode.names()[0]);
        Ok(Handled::Yes)
    }

    /// Why a PRAGMA of dash has no answer here.
    fn unanswered(&self, name: &str, value: Option<&str>) -> Error {
        if let Some((_, mode)) = MODES.pragmas().find(|(pragma, _)| *pragma == name) {
            let (path, called) = (self.path.display(), mode.names()[0]);
            return wrong(format!(
                "{name}: {path} is not in mode {called}; PRAGMA journal_mode={called} first"
            ));
        }
        if let Some(parameter) = MODES.parameters().find(|parameter| parameter.name == name) {
            return wrong(format!(
                "{name} is a parameter of the URI, not a PRAGMA: open file:{}?vfs=dash&{name}={}",
                self.path.file_name().unwrap_or_default().display(),
                value.unwrap_or(parameter.value)
            ));
        }
        let ours: Vec<_> = MODES.pragmas().map(|(name, _)| name).collect();
        wrong(format!("no such PRAGMA: {name}; dash has {}", ours.join(", ")))
    }
}
