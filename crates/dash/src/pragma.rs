//! PRAGMA on a database of dash.
//!
//! | PRAGMA | without a value | with a value |
//! |---|---|---|
//! | `journal_mode` | `shadow`, or SQLite's own answer | changes the mode, see [`crate::switch`]; a name that is none answers the mode in force, as SQLite does |
//! | `dash_durability`, `dash_barrier`, `dash_read`, `dash_statement_text` | what is chosen | in mode wal: chooses it for this connection |
//! | `locking_mode` | SQLite's | SQLite's; under `exclusive` reading keeps others from writing, too; with `dash_commit=paper` it makes that `exclusive` |
//! | `secure_delete` | SQLite's | SQLite's; on or fast, what is deleted is also gone from the shadow at rest, and the log of mode wal is removed |
//! | `dash_commit` | `single`, `paper` or `exclusive` | chooses it for this connection |
//! | `dash_time_reads` | `on` or `off` | whether `dash_latency` times reads |
//!
//! Only a PRAGMA that names the schema, or is about `main`, comes by here: SQLite can change the
//! pager's own mode of an attached database unseen, and does no harm by it.
//!
//! SQLite names the result's column after the answer: in pragma.c, behind `SQLITE_FCNTL_PRAGMA`,
//! the one text goes to `sqlite3VdbeSetColName` and to `returnSingleText`. So the column of `PRAGMA
//! journal_mode` is called `shadow`, and nothing here can change that.

use dash_ffi::{Code, Error, FileControl, Handled, LockLevel, Pragma, Result};

use crate::main_file::MainFile;
use crate::mode::registry::Membership;
use crate::mode::{DEFAULT, Mode, in_use};
use crate::modes::MODES;

fn wrong(message: impl Into<String>) -> Error {
    Error::new(Code::ERROR, message)
}

/// Whether programs ask for a mode whenever they open a database: where it can't be had just now
/// they go on in the one in force, which SQLite answers, too, where it can't change the mode.
fn is_habit(mode: &dyn Mode) -> bool {
    mode.is_sqlites() && !mode.is_plain()
}

/// How far a change of the mode is.
enum Change {
    /// It is made, or SQLite makes it.
    Made,
    /// Statements have to run first.
    Begun,
}

impl MainFile {
    /// Answers a PRAGMA, or leaves it to SQLite.
    pub(crate) fn pragma(&mut self, mut pragma: Pragma<'_>) -> Result<Handled> {
        let name = pragma.name().to_ascii_lowercase();
        if name == "journal_mode" {
            return self.journal_mode(pragma);
        }
        if name.starts_with("dash_") {
            self.decide(None)?;
        }
        self.said.note(&pragma);
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
        let before = self.mode.base();
        match wanted {
            Some(mode) if self.unlocks_first(mode, &pragma)? => return Ok(Handled::Yes),
            // A question chooses nothing.
            None if let Some(mode) = self.mode_to_be()? => {
                self.note_unknown(&pragma);
                if mode.is_sqlites() {
                    return self.pass_on(pragma);
                }
                pragma.answer(mode.names()[0]);
                return Ok(Handled::Yes);
            }
            _ => {}
        }
        self.decide_on(wanted.map(<dyn Mode>::base))?;
        if let Some(form) = wanted.filter(|mode| mode.is_form_of().is_some()) {
            return self.take_form(form, before, pragma);
        }
        let stays = wanted.is_some_and(|mode| self.stays_in_form(mode));
        match (wanted, pragma.value()) {
            (Some(mode), _) if mode == self.mode => {}
            (Some(mode), _) if stays => self.decline_base(mode),
            // From another form of it, which is one engine's.
            (Some(mode), _) if mode == self.mode.base() => self.change_form(mode),
            // Stock's rules hold for who only reads: the mode is the file's, and SQLite says it.
            (Some(mode), _) if self.membership.is_none() && is_habit(mode) => {}
            // Leaving dash is nothing that is asked for in passing.
            (Some(mode), _) if self.parameters.stays_in(self.mode) && !mode.is_plain() => {
                self.decline(mode);
            }
            (Some(mode), _) => match self.change(mode, &pragma)? {
                Change::Made => {}
                // The PRAGMA comes again.
                Change::Begun => return Ok(Handled::Yes),
            },
            (None, _) => self.note_unknown(&pragma),
        }
        let is_asked = pragma.value().is_none() || wanted.is_none() || stays;
        if self.mode.is_form_of().is_some()
            && is_asked
            && self.database.engine() == self.mode.engine()
        {
            pragma.answer(self.mode.names()[0]);
            return Ok(Handled::Yes);
        }
        if self.mode.is_sqlites() {
            // SQLite's own: it sets the pager's mode and answers. Asked for WAL it asks the file
            // for shared memory, and without that it answers the mode it keeps.
            return self.pass_on(pragma);
        }
        pragma.answer(self.mode.names()[0]);
        Ok(Handled::Yes)
    }

    /// To a form of another mode, by way of that one, to which SQLite goes by a statement of its
    /// own.
    fn take_form(
        &mut self,
        form: &'static dyn Mode,
        before: &'static dyn Mode,
        mut pragma: Pragma<'_>,
    ) -> Result<Handled> {
        let base = form.base();
        if self.parameters.stays_in(self.mode) {
            self.decline(form);
        } else if before != base {
            match pragma.ran() {
                None if pragma.run_first(|schema| {
                    format!("PRAGMA {schema}.journal_mode={}", base.names()[0])
                }) =>
                {
                    return Ok(Handled::Yes);
                }
                None => {
                    return Err(wrong(format!(
                        "this SQLite does not tell dash the name of the database: give it in PRAGMA NAME.journal_mode={}, and then \
                         in PRAGMA NAME.journal_mode={}",
                        base.names()[0],
                        form.names()[0]
                    )));
                }
                Some(Err(error)) => return Err(self.not_left(form, &error)),
                // It could not be had just now; what was said of that stands.
                Some(Ok(())) => {}
            }
        }
        if self.mode.base() == base && self.membership.is_some() {
            self.change_form(form);
            pragma.answer(self.mode.names()[0]);
            return Ok(Handled::Yes);
        }
        if self.mode.is_sqlites() {
            // It knows no such name, and answers the mode in force.
            return self.pass_on(pragma);
        }
        pragma.answer(self.mode.names()[0]);
        Ok(Handled::Yes)
    }

    /// Under `locking_mode=EXCLUSIVE` SQLite keeps its lock: it gives that up first, so that the
    /// mode can be changed, by statements of its own. Then the PRAGMA comes again.
    fn unlocks_first(&mut self, wanted: &'static dyn Mode, pragma: &Pragma<'_>) -> Result<bool> {
        match pragma.ran() {
            Some(ran) if std::mem::take(&mut self.is_unlocking) => {
                self.left = None;
                if ran.is_err() {
                    // Cut off in the middle, they have left SQLite without its lock.
                    pragma.run_first(|schema| format!("PRAGMA {schema}.locking_mode=EXCLUSIVE"));
                }
                return ran.map(|()| false);
            }
            None if !self.is_unlocking => {}
            _ => return Ok(false),
        }
        let is_new = self.level == LockLevel::Shared && self.is_still_new()?;
        let changes = self.membership.is_some() && wanted.base() != self.mode.base();
        let is_kept = self.level != LockLevel::None && changes && self.said.is_exclusive();
        if !(is_new || is_kept) || self.is_in_transaction() {
            return Ok(false);
        }
        let by_sqlite = self.mode.is_sqlites() && !self.mode.is_plain();
        self.left = by_sqlite.then_some(self.mode);
        self.is_unlocking = pragma.run_first(|schema| {
            let leave = format!("PRAGMA {schema}.journal_mode=DELETE; ");
            format!(
                "{}PRAGMA {schema}.locking_mode=NORMAL; SELECT 1 FROM {schema}.sqlite_master; \
                 PRAGMA {schema}.locking_mode=EXCLUSIVE; PRAGMA {schema}.journal_mode={}",
                if by_sqlite { &leave } else { "" },
                wanted.names()[0]
            )
        });
        Ok(self.is_unlocking)
    }

    /// SQLite changes nothing for a name that is no mode, and answers the mode in force, which
    /// hosts count on.
    fn note_unknown(&self, pragma: &Pragma<'_>) {
        if let Some(value) = pragma.value() {
            self.host.note(Code::NOTICE, &MODES.unknown(value));
        }
    }

    fn is_in_transaction(&self) -> bool {
        let connection = self.connection.as_ref();
        let is_out =
            connection.and_then(|kept| kept.visit(|connection| connection.is_autocommit()));
        is_out != Some(true)
    }

    /// Another form of the mode that the database is in.
    fn change_form(&mut self, to: &'static dyn Mode) {
        self.mode = to;
        self.database.takes_form(to);
    }

    /// Where the mode was left open, and nobody else has chosen one, it is this one, if it can be
    /// had.
    fn decide_on(&mut self, wanted: Option<&'static dyn Mode>) -> Result<()> {
        let stays = self.parameters.stays_in(MODES.0[0]);
        let wanted = match self.may_choose()? {
            true => wanted.filter(|mode| mode.is_plain() || !stays),
            false => None,
        };
        match self.decide(wanted) {
            Err(error) if error.code.primary() == Code::BUSY && wanted.is_some_and(is_habit) => {
                self.decide(None)
            }
            other => other,
        }
    }

    /// `dash_default` says that a database stays where it is, whatever a program asks for out of
    /// habit.
    fn decline(&self, mode: &'static dyn Mode) {
        let (to, stays) = (mode.names()[0], self.mode.names()[0]);
        let message = format!(
            "journal_mode={to}: the database stays in mode {stays}, as {DEFAULT}={stays} says"
        );
        self.host.note(Code::NOTICE, &message);
    }

    /// Whether this is the mode of which the URI has named another form: a program that says so out
    /// of habit has what it asks for.
    fn stays_in_form(&self, wanted: &'static dyn Mode) -> bool {
        let is_named = self.parameters.mode == Some(self.mode);
        is_named && wanted != self.mode && wanted == self.mode.base()
    }

    fn decline_base(&self, mode: &'static dyn Mode) {
        let (to, stays) = (mode.names()[0], self.mode.names()[0]);
        let message = format!(
            "journal_mode={to}: the database stays in mode {stays}, which is mode {to} as well, as journal_mode={stays} in the URI \
             says"
        );
        self.host.note(Code::NOTICE, &message);
    }

    /// To another mode, if SQLite does not go there by itself.
    fn change(&mut self, to: &'static dyn Mode, pragma: &Pragma<'_>) -> Result<Change> {
        let in_sqlites_hands = self.mode.is_sqlites() && !self.mode.is_plain();
        match self.database.may_leave() {
            Err(error) if error.code.primary() == Code::READONLY => return Err(error),
            Err(still_there) if in_sqlites_hands => match pragma.ran() {
                _ if to.is_plain() => return Ok(Change::Made),
                None => return self.ask_sqlite_to_leave(to, pragma),
                Some(Ok(())) => return Err(still_there),
                Some(Err(error)) => {
                    self.left = None;
                    return Err(self.not_left(to, &error));
                }
            },
            _ => match (self.switch(to), self.left.take()) {
                (Err(error), Some(from)) if self.mode.is_plain() => {
                    return Err(self.back_to(from, error));
                }
                (Err(error), _) if error.code.primary() == Code::BUSY && is_habit(to) => {
                    let error = self.named(error);
                    self.host.note(Code::NOTICE, error.message.as_deref().unwrap_or_default());
                }
                (other, _) => other?,
            },
        }
        Ok(Change::Made)
    }

    /// SQLite gives up its own mode first, by a statement of its own on this connection.
    fn ask_sqlite_to_leave(
        &mut self,
        to: &'static dyn Mode,
        pragma: &Pragma<'_>,
    ) -> Result<Change> {
        if !self.membership.as_ref().is_some_and(Membership::is_alone) {
            return Err(in_use(&self.path));
        }
        match pragma.run_first(|schema| format!("PRAGMA {schema}.journal_mode=DELETE")) {
            true => {
                self.left = Some(self.mode);
                Ok(Change::Begun)
            }
            false => Err(wrong(format!(
                "this SQLite does not tell dash the name of the database: give it in PRAGMA NAME.journal_mode=DELETE, \
                 and then in PRAGMA NAME.journal_mode={}",
                to.names()[0]
            ))),
        }
    }

    /// SQLite has given up its own mode, and the other one can't be had because of `error`. Where
    /// the former one can't either, a plain file stays.
    fn back_to(&mut self, from: &'static dyn Mode, error: Error) -> Error {
        let error = self.named(error);
        if self.switch(from).is_ok() {
            return error;
        }
        let (left, path) = (from.names()[0], self.path.display());
        Error::new(
            error.code,
            format!(
                "{error}; {path} has left mode {left}, mostly for mode delete: ask for a mode again once that is out of the way"
            ),
        )
    }

    fn not_left(&self, to: &'static dyn Mode, error: &Error) -> Error {
        match error.code.primary() {
            Code::BUSY | Code::LOCKED => in_use(&self.path),
            _ => Error::new(
                error.code,
                format!(
                    "journal_mode={} needs SQLite to leave its own first: {error}",
                    to.names()[0]
                ),
            ),
        }
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
