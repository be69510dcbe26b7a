//! The same steps through stock SQLite and through dash: what each answers, and what it leaves.

use std::ffi::{CString, c_int};
use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use rusqlite::fallible_iterator::FallibleIterator as _;
use rusqlite::types::Value;
use rusqlite::{Batch, ffi};

use crate::common::*;

/// What is in a database at rest.
#[derive(Debug, PartialEq)]
struct Left {
    name: String,
    beside: Vec<String>,
    sizes: [Option<u64>; 2],
    /// Of a file in WAL mode: dash's other modes have counters of their own in it.
    bytes: Option<u64>,
    says: String,
}

/// One of the two: databases in a folder of its own, `app.db` among them.
pub struct Side {
    pub folder: Folder,
    vfs: &'static str,
    /// Databases that are opened by stock SQLite on either side.
    stock: &'static [&'static str],
}

impl Side {
    fn new(vfs: &'static str, stock: &'static [&'static str]) -> Self {
        let side = Self { folder: Folder::new(), vfs, stock };
        side.make("app.db", "");
        side
    }

    pub fn is_dash(&self) -> bool {
        self.vfs == "dash"
    }

    /// Has stock SQLite make a database in WAL mode, with a table, after other statements.
    pub fn make(&self, name: &str, first: &str) {
        let db = self.folder.stock(name);
        db.execute_batch(&format!("{first}; PRAGMA journal_mode=WAL; CREATE TABLE t(x)"))
            .expect("stock makes it");
    }

    pub fn uri(&self, name: &str, parameters: &str) -> String {
        let vfs = if self.stock.contains(&name) { "unix" } else { self.vfs };
        uri(&self.folder.path(name), vfs, parameters)
    }

    /// Opens a database. Nobody waits for a lock.
    pub fn try_open(&self, name: &str, parameters: &str) -> Result<Connection> {
        let db = Connection::open(self.uri(name, parameters))?;
        db.busy_timeout(Duration::ZERO)?;
        Ok(db)
    }

    pub fn open(&self, name: &str) -> Connection {
        let db = self.try_open(name, "").expect("opens");
        let engine = match self.is_dash() && !self.stock.contains(&name) {
            true => "wal",
            false => "none",
        };
        assert_eq!(text(&db, "SELECT dash_engine()"), engine);
        db
    }

    /// Bytes of the database and of `-wal`.
    pub fn sizes(&self, name: &str) -> [Option<u64>; 2] {
        ["", "-wal"].map(|suffix| {
            let path = self.folder.path(&format!("{name}{suffix}"));
            path.metadata().ok().map(|found| found.len())
        })
    }

    fn left(&self) -> Vec<Left> {
        let names = std::fs::read_dir(self.folder.path(".")).expect("a folder");
        let names = names.map(|name| name.expect("a name").file_name().into_string());
        let mut names: Vec<_> = names.map(|name| name.expect("text")).collect();
        names.sort();
        let databases = names.iter().filter(|name| name.ends_with(".db"));
        databases.map(|name| self.left_of(name, &names)).collect()
    }

    /// Looks first, and then has stock SQLite open it, which may change it.
    fn left_of(&self, name: &str, names: &[String]) -> Left {
        let own = ["-dashlog", "-shadow"].map(|suffix| format!("{name}{suffix}"));
        let is_beside =
            |found: &&String| found.starts_with(name) && *found != name && !own.contains(found);
        let beside: Vec<_> = names.iter().filter(is_beside).cloned().collect();
        let sizes = self.sizes(name);
        let bytes = std::fs::read(self.folder.path(name)).expect("reads");
        let is_wal = bytes.get(18..20) == Some(&[2, 2]);
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        let db = self.folder.stock(name);
        let sql = "PRAGMA integrity_check; PRAGMA journal_mode; PRAGMA page_size; \
                   PRAGMA page_count; SELECT name FROM sqlite_schema; SELECT count(*) FROM t; \
                   SELECT x FROM t";
        let says = say(&db, sql);
        assert!(says.starts_with("ok"), "{name}: {says}");
        Left {
            name: name.into(),
            beside,
            sizes: if is_wal { sizes } else { [None; 2] },
            bytes: is_wal.then(|| hasher.finish()),
            says,
        }
    }
}

/// Takes the steps on either side. What they answer is compared, and what is at rest after them,
/// as stock SQLite reads it. Databases named in `stock` are not opened through dash at all.
pub fn same<T: Debug + PartialEq>(stock: &'static [&'static str], steps: impl Fn(&Side) -> T) -> T {
    let [expected, found] = ["unix", "dash"].map(|vfs| {
        let side = Side::new(vfs, stock);
        let said = steps(&side);
        (said, side.left())
    });
    let [shown, wanted] = [&found, &expected].map(|found| format!("{found:#?}"));
    let lines = shown.lines().zip(wanted.lines()).enumerate();
    if let Some((line, (shown, wanted))) = lines.into_iter().find(|(_, (a, b))| a != b) {
        panic!("line {line}: dash {shown}, stock SQLite {wanted}, in {found:#?}");
    }
    assert_eq!(found, expected, "dash, and stock SQLite");
    found.0
}

fn shown(value: Value) -> String {
    match value {
        Value::Null => "NULL".into(),
        Value::Integer(number) => number.to_string(),
        Value::Real(number) => number.to_string(),
        Value::Text(text) => text,
        Value::Blob(bytes) => format!("{} bytes", bytes.len()),
    }
}

/// The extended code of an error.
pub fn error_of(error: &rusqlite::Error) -> String {
    match error {
        rusqlite::Error::SqliteFailure(error, _) | rusqlite::Error::SqlInputError { error, .. } => {
            format!("error {}", error.extended_code)
        }
        other => panic!("{other}"),
    }
}

/// What statements answer: their rows, and the code of the error at which they end.
pub fn say(db: &Connection, sql: &str) -> String {
    let mut said = Vec::new();
    let ended = (|| {
        let mut batch = Batch::new(db, sql);
        while let Some(mut statement) = batch.next()? {
            let columns = statement.column_count();
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let row = (0..columns).map(|column| row.get(column).map(shown));
                said.push(row.collect::<Result<Vec<_>>>()?.join("|"));
            }
        }
        Ok(())
    })();
    if let Err(error) = ended {
        said.push(error_of(&error));
    }
    said.join(" ")
}

/// `sqlite3_file_control` of `main`, with a number: the code, and the number after it.
#[expect(unsafe_code, reason = "calls SQLite's C interface")]
pub fn control(db: &Connection, op: c_int, mut value: i64) -> (c_int, i64) {
    // SAFETY: an open connection; each control of these tests takes a place for an i32 or an i64.
    let code = unsafe {
        let place = (&raw mut value).cast();
        ffi::sqlite3_file_control(db.handle(), std::ptr::null(), op, place)
    };
    (code, value)
}

/// The ways to checkpoint.
pub const KINDS: [(&str, c_int); 5] = [
    ("PASSIVE", ffi::SQLITE_CHECKPOINT_PASSIVE),
    ("FULL", ffi::SQLITE_CHECKPOINT_FULL),
    ("RESTART", ffi::SQLITE_CHECKPOINT_RESTART),
    ("TRUNCATE", ffi::SQLITE_CHECKPOINT_TRUNCATE),
    ("NOOP", ffi::SQLITE_CHECKPOINT_NOOP),
];

/// `sqlite3_wal_checkpoint_v2`: the code, frames in the log, frames copied.
#[expect(unsafe_code, reason = "calls SQLite's C interface")]
pub fn checkpoint(db: &Connection, schema: Option<&str>, kind: c_int) -> [c_int; 3] {
    let schema = schema.map(|schema| CString::new(schema).expect("a name"));
    let name = schema.as_ref().map_or(std::ptr::null(), |name| name.as_ptr());
    let (mut log, mut copied) = (-7, -7);
    // SAFETY: an open connection, a name or null, and two places for numbers.
    let code = unsafe {
        ffi::sqlite3_wal_checkpoint_v2(db.handle(), name, kind, &raw mut log, &raw mut copied)
    };
    [code, log, copied]
}
