//! A connection to a copy, for what a log may have anybody run: one statement at a time, of a
//! database that is there, within [`Limits`] and what the [`Authorizer`] allows.

use dash_statement::{Control, Statement, Value, only};
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ErrorCode, OpenFlags, ToSql};

use crate::Result;
use crate::authorizer::{Authorizer, Whose};
use crate::image::Image;
use crate::limits::Limits;

/// Limits of SQLite's that are the same for all: of an expression's depth, of a pattern, whose time
/// is its length times that of the text, and of threads.
const FIXED: [(Limit, i32); 3] = [
    (Limit::SQLITE_LIMIT_EXPR_DEPTH, 500),
    (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000),
    (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
];

/// What is switched off: functions of a schema that do more than compute, what a schema's text can
/// damage, and tokenizers that are given as pointers.
const SWITCHES: [(DbConfig, bool); 3] = [
    (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
    (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
    (DbConfig::SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, false),
];

/// Why a step was not done.
#[derive(Debug)]
pub enum Undone {
    /// SQLite said no, as it may have done when it was recorded.
    Failed(String),
    /// It is not run here.
    Refused(String),
}

type Done = core::result::Result<(), Undone>;

/// See the module.
pub struct Guarded {
    db: Connection,
    authorizer: Authorizer,
    limits: Limits,
}

impl Guarded {
    /// One that writes a copy, after these PRAGMAs.
    pub fn open(copy: &Image, pragmas: &str, limits: &Limits) -> Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let db = Connection::open_with_flags(&copy.path, flags)?;
        let guarded = Self::of(db, limits)?;
        let pages = limits.pages();
        guarded.db.execute_batch(&format!("{pragmas}; PRAGMA max_page_count={pages}"))?;
        guarded.watched()
    }

    /// One that is already open.
    fn of(db: Connection, limits: &Limits) -> Result<Self> {
        for (switch, on) in SWITCHES {
            db.set_db_config(switch, on)?;
        }
        let own =
            [(Limit::SQLITE_LIMIT_LENGTH, limits.length()), (Limit::SQLITE_LIMIT_ATTACHED, 0)];
        for (limit, value) in FIXED.into_iter().chain(own) {
            db.set_limit(limit, value)?;
        }
        // Of the whole process: it can only be lowered.
        db.pragma_update(None, "hard_heap_limit", limits.memory())?;
        Ok(Self { db, authorizer: Authorizer::default(), limits: limits.clone() })
    }

    fn watched(mut self) -> Result<Self> {
        self.db.authorizer(Some(self.authorizer.hook()))?;
        let (every, ask) = self.limits.hook();
        self.db.progress_handler(every, Some(ask))?;
        Ok(self)
    }

    /// Whether no transaction is open.
    pub fn is_autocommit(&self) -> bool {
        self.db.is_autocommit()
    }

    /// Runs a statement of this crate's own.
    pub fn own(&self, sql: &str) -> Done {
        self.authorizer.is_turn_of(Whose::Ours);
        self.done(|| self.db.execute_batch(sql))
    }

    /// Runs a savepoint's step, which is made of its name.
    pub fn control(&self, control: Control, sql: &[u8]) -> Done {
        match control.statement(sql) {
            Some(sql) => self.own(&sql),
            None => Err(Undone::Refused("a step of it is not the savepoint's that it says".into())),
        }
    }

    /// Runs a statement of the log.
    pub fn statement(&self, statement: &Statement) -> Done {
        let text = only(&statement.sql);
        let (Some(text), Ok(sql)) = (text, str::from_utf8(&statement.sql)) else {
            return Err(Undone::Refused("a text of it is not one whole statement".into()));
        };
        let is_vacuum = text.is_any(&["VACUUM"]) && !text.has_into;
        let whose = if is_vacuum { Whose::Vacuum } else { Whose::Step };
        self.authorizer.is_turn_of(whose);
        let attached = |count| self.db.set_limit(Limit::SQLITE_LIMIT_ATTACHED, count).map(drop);
        self.done(|| {
            attached(i32::from(is_vacuum))?;
            let done = step(&self.db, sql, statement.values.as_deref().unwrap_or_default());
            attached(0).and(done)
        })
    }

    /// Runs it, and finds the reason where it was not done.
    fn done(&self, run: impl FnOnce() -> rusqlite::Result<()>) -> Done {
        if self.limits.is_spent() {
            return Err(Undone::Refused(SPENT.into()));
        }
        let (done, stopped) = self.limits.during(run);
        let Err(error) = done else { return Ok(()) };
        if let Some(steps) = stopped {
            return Err(Undone::Refused(match self.limits.is_spent() {
                true => SPENT.into(),
                false => format!("a statement was stopped after {steps} steps of SQLite's"),
            }));
        }
        match (self.authorizer.denied(), error) {
            (Some(what), _) => {
                Err(Undone::Refused(format!("a statement asks for {what}, which is not done here")))
            }
            (None, rusqlite::Error::MultipleStatement) => {
                Err(Undone::Refused("a text of it has more than one statement".into()))
            }
            (None, error) => Err(match error.sqlite_error_code() {
                Some(ErrorCode::OutOfMemory | ErrorCode::TooBig) => Undone::Refused(format!(
                    "a statement takes more memory than one on such a database may ({error})"
                )),
                _ => Undone::Failed(error.to_string()),
            }),
        }
    }

    /// Closes it: the file has everything in it afterwards.
    pub fn close(self) -> Result<()> {
        self.authorizer.is_turn_of(Whose::Ours);
        Ok(self.db.close().map_err(|(_, error)| error)?)
    }
}

/// A connection that reads a copy as it is, and leaves nothing beside it.
pub fn reader(image: &Image, limits: &Limits) -> Result<Connection> {
    let path = image.path.to_string_lossy();
    let path = path.replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    let db = Connection::open_with_flags(format!("file:{path}?immutable=1"), flags)?;
    Ok(Guarded::of(db, limits)?.watched()?.db)
}

/// What is said when nothing is left.
const SPENT: &str = "the statements before it took as long as all of a log of such a database may";

fn step(db: &Connection, sql: &str, values: &[Value]) -> rusqlite::Result<()> {
    let mut prepared = db.prepare(sql)?;
    let count = prepared.parameter_count();
    for (number, value) in (1..).zip(values.iter().take(count)) {
        prepared.raw_bind_parameter(number, Exact(value))?;
    }
    let mut rows = prepared.raw_query();
    while rows.next()?.is_some() {}
    Ok(())
}

/// A value, to the last bit.
struct Exact<'a>(&'a Value);

impl ToSql for Exact<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self.0 {
            Value::Null | Value::Pointer => ValueRef::Null,
            Value::Integer(value) => ValueRef::Integer(*value),
            Value::Real(bits) => ValueRef::Real(f64::from_bits(*bits)),
            Value::Text(text) => ValueRef::Text(text),
            Value::Blob(blob) => ValueRef::Blob(blob),
            Value::Zeroblob(count) => {
                return Ok(ToSqlOutput::ZeroBlob(*count));
            }
        }))
    }
}
