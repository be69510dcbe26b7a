//! `Confined`: what a connection of dash's own may do that runs what somebody else has written. It
//! is a wall behind whoever judges those statements, and knows nothing of them: SQLite itself tells
//! an authorizer what each of them asks for.
//!
//! Invariants: what is not on the list is refused; no virtual table can be reached, no other
//! database, no schema that is trusted; whatever runs comes to an end.

use crate::code::{Code, OK};
use crate::error::{Error, Result};
use crate::guard::guarded;
use crate::nested::Nested;
use crate::statement_api::StatementApi;
use crate::sys::statement::{
    ATTACHED, COLUMN, DEFENSIVE, DENY, ENABLE_LOAD_EXTENSION, ENABLE_TRIGGER, ENABLE_VIEW,
    EXPR_DEPTH, LENGTH, SQL_LENGTH, TRUSTED_SCHEMA, VARIABLE_NUMBER, VDBE_OP, WRITABLE_SCHEMA,
};
use core::cell::{Cell, RefCell};
use core::ffi::{CStr, c_char, c_int, c_void};
use core::fmt;
use core::ptr::null_mut;
use core::time::Duration;

/// Instructions of SQLite's between two looks at what is left. One may copy as much as a value has.
const INSTRUCTIONS: c_int = 100;

/// What is said of what has no end.
const TOO_LONG: &str = "they take longer than any that would be there";

/// Bytes of a statement's text, and how deep its expressions may be: SQLite's own limits as a rule.
const TEXT: c_int = 1_000_000;
const DEPTH: c_int = 1000;

/// What a statement asks for, in the words of `sqlite3_set_authorizer`.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    /// `SQLITE_READ` and so on.
    pub action: i32,
    /// The third argument, such as a table.
    pub what: Option<&'a CStr>,
    /// The database.
    pub schema: Option<&'a CStr>,
    /// The trigger or view that asks.
    pub inside: Option<&'a CStr>,
}

impl fmt::Debug for Asked<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text =
            |text: Option<&CStr>| text.unwrap_or(c"").to_string_lossy().escape_debug().to_string();
        let Self { action, what, schema, inside } = *self;
        write!(f, "action {action}, \"{}\", \"{}\", \"{}\"", text(what), text(schema), text(inside))
    }
}

/// What a connection may do at most.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// What it may ask for.
    pub may: fn(&Asked<'_>) -> bool,
    /// Bytes of a value.
    pub length: u64,
    /// Instructions of SQLite's, in statements that take more than a few.
    pub instructions: u64,
    /// How much of a processor, by this clock, which is looked at before each statement, too.
    pub time: Duration,
    /// What the thread that runs them has had.
    pub clock: fn() -> Duration,
}

/// See the module. SQLite has its address.
pub(crate) struct Confined {
    may: fn(&Asked<'_>) -> bool,
    instructions: Cell<u64>,
    clock: fn() -> Duration,
    /// By that.
    end: Duration,
    /// What was refused last.
    refused: RefCell<Option<Error>>,
}

impl Confined {
    /// Confines a connection, which must be closed before this is dropped.
    ///
    /// # Errors
    ///
    /// SQLite's code and message.
    pub(crate) fn new(
        nested: &Nested,
        statements: &StatementApi,
        bounds: &Bounds,
    ) -> Result<Box<Self>> {
        let (db, api) = (nested.db, nested.api);
        let Bounds { may, length, instructions, time, clock } = *bounds;
        let confined = Box::new(Self {
            may,
            instructions: Cell::new(instructions),
            clock,
            end: clock().saturating_add(time),
            refused: RefCell::default(),
        });
        let on = [DEFENSIVE];
        let off =
            [ENABLE_LOAD_EXTENSION, ENABLE_TRIGGER, ENABLE_VIEW, TRUSTED_SCHEMA, WRITABLE_SCHEMA];
        for (setting, value) in on.map(|it| (it, 1)).into_iter().chain(off.map(|it| (it, 0))) {
            let (value, nowhere): (c_int, *mut c_int) = (value, null_mut());
            // SAFETY: an open connection, and for these settings a number and a place for the
            // answer, or null. What an SQLite does not know it was built without.
            unsafe { (statements.db_config)(db, setting, value, nowhere) };
        }
        let length = c_int::try_from(length).unwrap_or(c_int::MAX);
        let own = [(ATTACHED, 0), (EXPR_DEPTH, DEPTH), (SQL_LENGTH, TEXT), (LENGTH, length)];
        // What the program has lowered for its own connections is no limit to what it wrote before.
        let raised = [COLUMN, VARIABLE_NUMBER, VDBE_OP].map(|limit| (limit, c_int::MAX));
        for (limit, value) in own.into_iter().chain(raised) {
            // SAFETY: an open connection. What is above a limit that it was built with stays there.
            unsafe { (statements.limit)(db, limit, value) };
        }
        let this: *const Self = &raw const *confined;
        let this: *mut c_void = this.cast_mut().cast();
        if let Some(drop_modules) = api.drop_modules {
            // SAFETY: an open connection; null keeps none.
            nested.check(unsafe { drop_modules(db, null_mut()) })?;
        }
        if let Some(handler) = api.progress_handler {
            // SAFETY: an open connection; `this` stays where it is, and outlives it.
            unsafe { handler(db, INSTRUCTIONS, Some(go_on), this) };
        }
        // SAFETY: the same.
        nested.check(unsafe { (statements.set_authorizer)(db, Some(ask), this) })?;
        Ok(confined)
    }

    /// What SQLite's error came from, if that was this.
    pub(crate) fn cause(&self, error: Error) -> Error {
        self.refused.take().unwrap_or(error)
    }

    fn ask(&self, asked: &Asked<'_>) -> c_int {
        if (self.may)(asked) {
            return OK;
        }
        let text = format!("asked for beyond the list: {asked:?}");
        self.refused.replace(Some(Error::new(Code::AUTH, text)));
        DENY
    }

    /// Whether there is time for a statement. SQLite asks nobody before one that takes few
    /// instructions.
    pub(crate) fn begin(&self) -> Result<()> {
        match (self.clock)() > self.end {
            true => Err(Error::new(Code::INTERRUPT, TOO_LONG)),
            false => Ok(()),
        }
    }

    fn go_on(&self) -> Result<()> {
        let left = self.instructions.get().checked_sub(u64::from(INSTRUCTIONS.unsigned_abs()));
        self.instructions.set(left.unwrap_or(0));
        let taken = left.map(drop).ok_or_else(|| Error::new(Code::INTERRUPT, TOO_LONG));
        taken.and_then(|()| self.begin()).inspect_err(|error| {
            self.refused.replace(Some(error.clone()));
        })
    }
}

/// Whether something may be done, for `sqlite3_set_authorizer`.
unsafe extern "C" fn ask(
    confined: *mut c_void,
    action: c_int,
    what: *const c_char,
    _: *const c_char,
    schema: *const c_char,
    inside: *const c_char,
) -> c_int {
    // SAFETY: null or a C string of SQLite's that stays during the call.
    let text = |text: *const c_char| (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) });
    let asked = Asked { action, what: text(what), schema: text(schema), inside: text(inside) };
    // SAFETY: what `Confined::new` passes, which outlives the connection.
    let confined = unsafe { &*confined.cast_const().cast::<Confined>() };
    guarded("an authorizer", Code::INTERNAL, || Ok(confined.ask(&asked)), |_| ()).unwrap_or(DENY)
}

/// Whether a statement may go on, for `sqlite3_progress_handler`.
unsafe extern "C" fn go_on(confined: *mut c_void) -> c_int {
    // SAFETY: as in `ask`.
    let confined = unsafe { &*confined.cast_const().cast::<Confined>() };
    c_int::from(guarded("a look", Code::INTERNAL, || confined.go_on(), |_| ()).is_err())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::OpenFlags;
    use crate::linked::host;
    use crate::own::{OwnConnection, Ran, ToBind};
    use core::sync::atomic::{AtomicU64, Ordering};

    /// On each look it is a second later.
    fn clock() -> Duration {
        static LOOKS: AtomicU64 = AtomicU64::new(0);
        Duration::from_secs(LOOKS.fetch_add(1, Ordering::Relaxed))
    }

    fn confined(folder: &tempfile::TempDir, instructions: u64, time: Duration) -> OwnConnection {
        let (host, path) = (host(), folder.path().join("db"));
        let flags = OpenFlags::READWRITE | OpenFlags::CREATE;
        let tables =
            "CREATE TABLE t(id INTEGER PRIMARY KEY, v); CREATE VIRTUAL TABLE ft USING fts5(v)";
        host.run(&path, flags, tables).unwrap();
        let mut db = host.connect(&path, flags, host.name()).unwrap();
        let may = |asked: &Asked<'_>| match asked.action {
            // READ, INSERT, UPDATE, TRANSACTION, SELECT and RECURSIVE.
            20 | 18 | 23 => asked.schema == Some(c"main") && asked.inside.is_none(),
            22 | 21 | 33 => true,
            _ => false,
        };
        db.confine(&Bounds { may, length: 100_000, instructions, time, clock }).unwrap();
        db
    }

    /// SEC S2-1: what an authorizer allows, and nothing else.
    #[test]
    fn a_confined_connection_does_what_is_listed() {
        let folder = tempfile::tempdir().unwrap();
        let mut db = confined(&folder, 1_000_000, Duration::MAX);
        for sql in ["BEGIN", "INSERT INTO t VALUES (1, ?)", "UPDATE t SET v = id + 1 WHERE id = 1"]
        {
            assert_eq!(db.execute(sql.as_bytes(), &[ToBind::Zeros(9)]), Ran::Done, "{sql}");
        }
        let refused = |ran: Ran| match ran {
            Ran::Unprepared(error) | Ran::Failed(error) => error,
            Ran::Done => Error::new(Code::MISUSE, "done"),
        };
        for sql in [
            "ATTACH '/tmp/x' AS x",
            "ATTACH ('/tmp'||'/x') AS x",
            "PRAGMA user_version",
            "DELETE FROM t WHERE id = 1",
            "SAVEPOINT s",
            "CREATE TABLE u(v)",
            "CREATE TEMP TABLE u(v)",
            "DROP TABLE t",
            "SELECT abs(1)",
            "SELECT load_extension('x')",
            "ANALYZE",
        ] {
            let error = refused(db.execute(sql.as_bytes(), &[]));
            assert_eq!(error.code, Code::AUTH, "{sql}: {error}");
            assert!(error.to_string().contains("beyond the list: action"), "{sql}: {error}");
        }
        let beyond = [
            (&b"INSERT INTO ft VALUES (1)"[..], Code::ERROR),
            (b"INSERT INTO t VALUES (2, ?)", Code::TOOBIG),
            (b"UPDATE sqlite_master SET sql = NULL", Code::ERROR),
        ];
        for (sql, code) in beyond {
            let error = refused(db.execute(sql, &[ToBind::Zeros(200_000)]));
            assert_eq!(error.code, code, "{error}");
        }
        db.run("COMMIT").unwrap();
        for sql in ["VACUUM", "VACUUM INTO '/tmp/x'"] {
            assert_eq!(db.run(sql).unwrap_err().code, Code::AUTH);
        }
    }

    /// SEC S2-1: whatever runs there comes to an end.
    #[test]
    fn a_confined_connection_comes_to_an_end() {
        let folder = tempfile::tempdir().unwrap();
        let mut db = confined(&folder, 1_000_000, Duration::MAX);
        let endless = b"WITH RECURSIVE c(x) AS (VALUES (1) UNION ALL SELECT x FROM c) \
            INSERT INTO t SELECT NULL, x FROM c WHERE x > 1";
        for _ in 0..2 {
            let ran = db.execute(endless, &[]);
            assert!(matches!(&ran, Ran::Failed(error) if error.code == Code::INTERRUPT), "{ran:?}");
        }
    }

    /// SEC A10-1: so do statements that take few instructions each, and one whose instructions take
    /// long.
    #[test]
    fn a_confined_connection_has_a_time() {
        let [short, long] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let is_over =
            |ran: &Ran| matches!(ran, Ran::Failed(error) if error.code == Code::INTERRUPT);
        let mut db = confined(&short, 1_000_000, Duration::from_secs(100));
        let insert = b"INSERT INTO t VALUES (NULL, 1)";
        assert_eq!(db.execute(insert, &[]), Ran::Done);
        assert!((0..100).any(|_| is_over(&db.execute(insert, &[]))));
        let mut db = confined(&long, 1_000_000, Duration::from_secs(100));
        let sql = b"WITH RECURSIVE c(x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM c LIMIT 9999) \
            INSERT INTO t SELECT NULL, x FROM c WHERE x = 0";
        assert!(is_over(&db.execute(sql, &[])));
    }
}
