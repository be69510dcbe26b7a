//! `sqlite-dash log --sql`, read by the `sqlite3` shell, makes the same database again: random
//! values, and texts of SQL as nobody writes them (`STATEMENT-5`).
#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]
#![allow(unsafe_code, reason = "SQL that is no UTF-8 goes by SQLite's C interface")]

use std::ffi::CString;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::ptr::null_mut;

use super::common::Home;
use dash_testing::long::moment;
use dash_testing::random::Random;
use dash_testing::{Need, extension, skip};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ToSql, ffi, params_from_iter};

/// A value of which a text need not be UTF-8.
#[derive(Debug, Clone)]
enum Value {
    Null,
    Integer(i64),
    Real(f64),
    Text(Vec<u8>),
    Blob(Vec<u8>),
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Integer(value) => ValueRef::Integer(*value),
            Self::Real(value) => ValueRef::Real(*value),
            Self::Text(text) => ValueRef::Text(text),
            Self::Blob(blob) => ValueRef::Blob(blob),
        }))
    }
}

/// What a text is made of.
const PIECES: [&str; 29] = [
    "\r\n",
    "\r",
    "\n",
    "\0",
    "'",
    "''",
    "\\r",
    "\\1r",
    "\\",
    "r",
    "\\z",
    "z",
    "\n/\n",
    "\r\n/\r\n",
    "\ngo\r\n",
    ";\n",
    "--",
    "/*",
    "\n.quit\n",
    "é",
    "\u{feff}",
    "😀",
    "\u{1b}[2J",
    "\u{7}",
    "\u{7f}",
    "\u{9b}31m",
    "\u{202e}",
    "\\{1b}",
    "\\1{1b}",
];

/// What stands between two words of SQL.
const BETWEEN: [&str; 10] = [
    " ",
    "\n",
    "\r\n",
    "\t",
    " /* c */ ",
    "/*\r\n.quit\n/\n*/",
    " -- c ?\n",
    " -- '\r\n",
    "\n\r\r\n",
    "\u{c}",
];

const ENDS: [&str; 8] = ["", ";", " ;", "\r\n", "\r\n;", " -- open; '", " /* open ;\r\n'", "--\r"];

/// Statements, and how many parameters they have. `go` is a table.
const STATEMENTS: [(&str, usize); 13] = [
    ("INSERT INTO t (a, b) VALUES ( ? , ? )", 2),
    ("INSERT INTO t (a, b) VALUES ( :a , :a )", 1),
    ("INSERT INTO t (a, b) VALUES ( @b , ?1 )", 1),
    ("INSERT INTO t (a) SELECT ? FROM go", 1),
    ("INSERT INTO t (a) SELECT go.x FROM go ORDER BY ?", 1),
    ("INSERT INTO t (a, b) SELECT max(id), count(*) FROM t GROUP BY ?", 1),
    ("UPDATE t SET b = ? WHERE id = ( SELECT max(id) FROM t ) / 1", 1),
    ("UPDATE t SET a = id / 2 , b = a- ? WHERE id % 5 = 3", 1),
    ("INSERT INTO t (a, b) SELECT a , ? FROM t WHERE a = ? LIMIT 2", 2),
    ("INSERT INTO t (a, b) VALUES ( 'it''s\r\n/\r\n' , '?' )", 0),
    ("INSERT INTO t (a, b) VALUES ( 'e\u{1b}[2J''\r\u{202e}' , 'a\u{7}' LIKE '%\u{7}' )", 0),
    ("INSERT INTO t (a) SELECT id FROM t WHERE a < ? ORDER BY id LIMIT 3", 1),
    ("DELETE FROM t WHERE id = ( SELECT min(id) FROM t ) AND 'go\r\n' <> ?", 1),
];

const SCHEMA: [&str; 4] = [
    "CREATE TABLE \"n %\r\n\" ( a TEXT DEFAULT 'x\r\n' , b )",
    "CREATE TABLE \"w %\" ( a PRIMARY KEY ) WITHOUT ROWID",
    "CREATE INDEX \"i %\" ON t ( a , b )",
    "CREATE VIEW \"v %\" AS SELECT a , '\r\n/\r\n' AS b FROM t",
];

struct Story {
    random: Random,
    is_utf8: bool,
}

impl Story {
    fn bits(&mut self) -> u64 {
        (0..4).fold(0, |bits, _| bits << 16 | u64::try_from(self.random.below(1 << 16)).unwrap())
    }

    fn real(&mut self) -> f64 {
        let whole = f64::from(u32::try_from(self.random.below(1 << 30)).unwrap());
        let places = i32::try_from(self.random.below(18)).unwrap();
        match self.random.below(8) {
            0 => [-0.0, 0.0, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, 5e-324, 0.1 + 0.2]
                [places as usize % 7],
            1 => f64::from_bits(self.bits() >> 12),
            2 | 3 => whole / 10_f64.powi(places),
            4 => whole * 10_f64.powi(places),
            _ => Some(f64::from_bits(self.bits())).filter(|it| !it.is_nan()).unwrap_or(0.5),
        }
    }

    fn text(&mut self) -> Vec<u8> {
        let count = self.random.below(7);
        let mut text =
            (0..count).map(|_| self.random.one_of(&PIECES)).collect::<String>().into_bytes();
        if self.is_utf8 && self.random.below(6) == 0 {
            text.insert(0, 0xff);
        }
        text
    }

    fn value(&mut self) -> Value {
        match self.random.below(8) {
            0 => Value::Null,
            1 => Value::Integer(i64::from_ne_bytes(self.bits().to_ne_bytes())),
            2 => Value::Integer([1, 2, -1, i64::MIN, i64::MAX][self.random.below(5)]),
            3 => Value::Real(self.real()),
            4 => Value::Blob(vec![0; self.random.below(40)]),
            5 => Value::Blob(self.text()),
            _ => Value::Text(self.text()),
        }
    }

    /// A statement, written in whatever way.
    fn written(&mut self, sql: &str, ends: &[&str]) -> String {
        let mut written = String::new();
        for word in sql.split(' ') {
            if !written.is_empty() {
                written.push_str(self.random.one_of(&BETWEEN));
            }
            written.push_str(word);
        }
        written + self.random.one_of(ends)
    }

    fn step(&mut self, db: &Connection, number: usize) {
        if self.random.below(12) == 0 {
            // No UTF-8: a name, and a text.
            let sql = b"INSERT INTO t (a, b) SELECT x AS \xfe, '\xff' FROM go ORDER BY \xfe";
            return exec(db, sql);
        }
        if self.random.below(12) == 0 {
            let sql = self.random.one_of(&SCHEMA).replace(" %", &format!("{number}"));
            let sql = self.written(&sql, &ENDS[..5]);
            return db.execute_batch(&sql).unwrap_or_else(|error| panic!("{sql:?}: {error}"));
        }
        let (sql, count) = STATEMENTS[self.random.below(STATEMENTS.len())];
        let sql = self.written(sql, &ENDS);
        let values: Vec<_> = (0..count).map(|_| self.value()).collect();
        // Some fail, as `a` can't be less than what a `-` makes of a text, and the like.
        drop(db.execute(&sql, params_from_iter(values)));
    }
}

/// Runs SQL of any bytes.
fn exec(db: &Connection, sql: &[u8]) {
    let sql = CString::new(sql).unwrap();
    // SAFETY: an open connection and a C string.
    let code =
        unsafe { ffi::sqlite3_exec(db.handle(), sql.as_ptr(), None, null_mut(), null_mut()) };
    assert_eq!(code, ffi::SQLITE_OK, "{sql:?}");
}

/// Everything in a database, to the last bit.
fn content(path: &Path) -> Vec<String> {
    let db = Connection::open(path).unwrap();
    let mut all = Vec::new();
    for query in [
        // Between words a terminal's page break is written as a blank.
        "SELECT type, name, replace(sql, char(12), ' ') FROM sqlite_schema ORDER BY rowid",
        "SELECT id, a, b FROM t ORDER BY id",
        "SELECT rowid, a FROM real ORDER BY rowid",
        "SELECT count(*) FROM go",
    ] {
        let mut prepared = db.prepare(query).unwrap();
        let columns = prepared.column_count();
        let mut rows = prepared.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let of = |column| match row.get_ref(column).unwrap() {
                ValueRef::Real(value) => format!("real {:x}", value.to_bits()),
                other => format!("{other:?}"),
            };
            all.push((0..columns).map(of).collect::<Vec<_>>().join(" | "));
        }
    }
    all
}

fn story(seed: u64, encoding: &str) {
    let home = Home::new();
    let base = home.file("base.db");
    let stock = Connection::open(&base).unwrap();
    stock
        .execute_batch(&format!(
            "PRAGMA encoding='{encoding}'; CREATE TABLE t(id INTEGER PRIMARY KEY, a, b); CREATE TABLE real(a);
             CREATE TABLE go(x); CREATE TABLE first(x); INSERT INTO go VALUES (2), (1), (3)"
        ))
        .unwrap();
    drop(stock);
    std::fs::copy(&base, home.db()).unwrap();
    extension::load();
    let uri = format!(
        "file:{}?vfs=dash&journal_mode=wal&dash_statements=on&dash_statement_text=full",
        home.db().display()
    );
    let db = Connection::open(uri).unwrap();
    // The first commit of a session is not in the log.
    db.execute_batch("PRAGMA wal_autocheckpoint=0; INSERT INTO first VALUES (1)").unwrap();
    let mut story = Story { random: Random(seed), is_utf8: encoding == "UTF-8" };
    for number in 0..100 {
        let steps = 1 + story.random.below(4);
        if steps > 1 {
            db.execute_batch("BEGIN").unwrap();
        }
        (0..steps).for_each(|step| story.step(&db, number * 10 + step));
        if steps > 1 {
            db.execute_batch("COMMIT").unwrap();
        }
        let reals: Vec<_> = (0..40).map(|_| Value::Real(story.real())).collect();
        let places = ["(?)"; 40].join(",");
        db.execute(&format!("INSERT INTO real VALUES {places}"), params_from_iter(reals)).unwrap();
    }
    let sql = home.dash(&["log", "app.db", "--sql"]).is(0).0.stdout;
    let mut chars = sql.utf8_chunks().flat_map(|chunk| chunk.valid().chars());
    // One at the end of a line is only doubled.
    assert!(!chars.any(|c| c != '\r' && dash_statement::is_obeyed(c)), "a terminal obeys it");
    drop(db);
    let mut shell = Command::new("sqlite3")
        .arg(&base)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    shell.stdin.take().unwrap().write_all(&sql).unwrap();
    shell.wait().unwrap();
    let (mine, theirs) = (content(&home.db()), content(&base));
    for (mine, theirs) in mine.iter().zip(&theirs) {
        assert_eq!(mine, theirs, "seed {seed}, {encoding}");
    }
    assert_eq!(mine.len(), theirs.len(), "seed {seed}, {encoding}");
    assert!(mine.len() > 4000, "{}", mine.len());
}

/// `STATEMENT-5`
#[test]
fn what_it_prints_makes_the_same_database_again() {
    if Command::new("sqlite3").arg("--version").stdout(Stdio::null()).status().is_err() {
        return skip(Need::Sqlite3, "there is no sqlite3");
    }
    for seed in 0..moment(2, 12) {
        story(seed, "UTF-8");
        story(seed, "UTF-16le");
    }
}
