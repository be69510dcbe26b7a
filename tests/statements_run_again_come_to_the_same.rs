//! Random programs, recorded and cut off: what is recovered is what a run without the cut has, and
//! what was recorded comes to the same when it is run again, or there is a reason.
//!
//! With `DASH_LONG=1` there are more of them, with `DASH_PROGRAMS` so many. It says how many there
//! were.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

use std::path::Path;

use dash_testing::extension;
use dash_testing::long::moment;
use rusqlite::Connection;
use rusqlite::types::Value;

const SCHEMA: &str = "
    CREATE TABLE a(id INTEGER PRIMARY KEY, x, y TEXT DEFAULT 'd', z REAL,
        g GENERATED ALWAYS AS (x * 2) STORED, v AS (y || '!'), CHECK (x IS NULL OR x < 900));
    CREATE TABLE b(k TEXT PRIMARY KEY COLLATE NOCASE, n INT NOT NULL DEFAULT 1) WITHOUT ROWID;
    CREATE TABLE c(id INTEGER PRIMARY KEY AUTOINCREMENT, a REFERENCES a(id) ON DELETE CASCADE, u UNIQUE);
    CREATE INDEX ax ON a(x DESC) WHERE x > 10;
    CREATE INDEX ay ON a(lower(y), z);
    CREATE INDEX ag ON a(g);
    CREATE VIEW w AS SELECT id, x FROM a;
    CREATE TRIGGER ai AFTER INSERT ON a BEGIN
        INSERT INTO b VALUES ('k' || (new.id % 7), 1) ON CONFLICT (k) DO UPDATE SET n = n + 1;
    END;
    CREATE TRIGGER au BEFORE UPDATE OF x ON a WHEN new.x > 500 BEGIN
        DELETE FROM c WHERE a = old.id;
    END;
    CREATE TRIGGER wi INSTEAD OF INSERT ON w BEGIN INSERT INTO a(x) VALUES (new.x); END;";

/// Numbers that look random, the same ones for a seed (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[usize::try_from(self.below(all.len() as u64)).unwrap()]
    }

    fn value(&mut self) -> Value {
        match self.below(8) {
            0 => Value::Null,
            1 => Value::Real(0.1 + f64::from(u32::try_from(self.below(1000)).unwrap())),
            2 => Value::Text(format!("it's {}\n", self.below(50))),
            3 => Value::Blob(vec![7; usize::try_from(self.below(900)).unwrap()]),
            4 => Value::Integer(-1),
            _ => Value::Integer(i64::try_from(self.below(1000)).unwrap()),
        }
    }
}

const STATEMENTS: [&str; 26] = [
    "INSERT INTO a(x, y) VALUES (?, ?)",
    "INSERT INTO a(x, y, z) VALUES (?, ?, ?), (?2, ?1, ?3)",
    "INSERT INTO a(id, x) VALUES (?, ?)",
    "INSERT OR REPLACE INTO a(id, x) VALUES (?, ?)",
    "INSERT OR IGNORE INTO c(a, u) VALUES (?, ?)",
    "INSERT OR FAIL INTO c(u) VALUES (?), (?), (?1)",
    "INSERT OR ROLLBACK INTO c(u) VALUES (?), (?2)",
    "INSERT INTO c(a, u) SELECT id, x FROM a WHERE x > ? ORDER BY id LIMIT 5",
    "INSERT INTO w(x) VALUES (?) ",
    "INSERT INTO b VALUES (?, 3) ON CONFLICT DO UPDATE SET n = n + excluded.n",
    "UPDATE a SET x = x-? WHERE id < ?",
    "UPDATE a SET x = :v, y = :v WHERE id % 5 = 2",
    "UPDATE OR IGNORE c SET u = u / 2",
    "UPDATE a SET z = ? WHERE id = (SELECT max(id) FROM a) RETURNING id, x",
    "UPDATE a SET y = b.k FROM b WHERE b.n = a.x",
    "DELETE FROM a WHERE id = ? RETURNING y",
    "DELETE FROM c WHERE u > ?",
    "DELETE FROM a WHERE x BETWEEN ? AND ?",
    "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 9) INSERT INTO a(x) SELECT i * ? FROM n",
    "REPLACE INTO b(k) SELECT y FROM a WHERE y IS NOT NULL LIMIT 3",
    "SELECT count(*) FROM a",
    "ANALYZE",
    "CREATE INDEX IF NOT EXISTS more ON a(y, x)",
    "DROP INDEX IF EXISTS more",
    "CREATE TABLE IF NOT EXISTS d AS SELECT id, x FROM a LIMIT 3",
    "DROP TABLE IF EXISTS d",
];

const AROUND: [&str; 8] = [
    "BEGIN",
    "BEGIN IMMEDIATE",
    "COMMIT",
    "COMMIT",
    "SAVEPOINT s",
    "RELEASE s",
    "ROLLBACK TO s",
    "ROLLBACK",
];

/// A program: statements with values. Those that fail, fail.
fn program(seed: u64) -> Vec<(&'static str, Vec<Value>)> {
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let length = 20 + random.below(40);
    let steps = (0..length).map(|_| match random.below(4) {
        0 => (random.of(&AROUND), Vec::new()),
        _ => (random.of(&STATEMENTS), (0..3).map(|_| random.value()).collect()),
    });
    let mut steps: Vec<_> = steps.collect();
    steps.push(("COMMIT", Vec::new()));
    steps.push(("INSERT INTO b VALUES ('last', 1)", Vec::new()));
    steps
}

fn run(db: &Connection, program: &[(&str, Vec<Value>)]) {
    for (sql, values) in program {
        let done = db.prepare(sql).and_then(|mut statement| {
            for (number, value) in (1..=statement.parameter_count()).zip(values) {
                statement.raw_bind_parameter(number, value)?;
            }
            let mut rows = statement.raw_query();
            while rows.next()?.is_some() {}
            Ok(())
        });
        drop(done);
    }
}

/// Its schema and rows, as text.
fn dump(db: &Connection) -> Vec<String> {
    let text = |sql: &str| -> Vec<String> {
        let mut rows = db.prepare(sql).unwrap();
        let columns = rows.column_count();
        let row = |row: &rusqlite::Row<'_>| -> rusqlite::Result<String> {
            (0..columns).map(|column| Ok(format!("{:?} ", row.get::<_, Value>(column)?))).collect()
        };
        rows.query_map([], row).unwrap().map(Result::unwrap).collect()
    };
    let mut all = text("SELECT type, name, sql FROM sqlite_master ORDER BY 1, 2");
    let names = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1";
    let mut names = db.prepare(names).unwrap();
    let names: Vec<String> =
        names.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    for name in names {
        all.push(name.clone());
        all.extend(text(&format!("SELECT * FROM {name} ORDER BY 1, 2")));
    }
    all
}

/// The file, but for what SQLite counts on page 1.
fn pages(path: &Path) -> Vec<u8> {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[24..28].fill(0);
    bytes[92..100].fill(0);
    bytes
}

fn open(path: &Path, parameters: &str) -> Connection {
    Connection::open(format!("file:{}?vfs=dash&journal_mode=wal{parameters}", path.display()))
        .unwrap()
}

#[derive(Debug, Default)]
struct Told {
    programs: u64,
    run: u64,
    not_run: usize,
    other_pages: u64,
    divergences: usize,
}

/// One program; what became of it.
fn story(seed: u64, told: &mut Told) {
    let folder = tempfile::tempdir().unwrap();
    let (path, program) = (folder.path().join("app.db"), program(seed));
    let text = ["slack", "full"][usize::try_from(seed % 2).unwrap()];
    let db = open(&path, &format!("&dash_statements=on&dash_statement_text={text}"));
    let stock = Connection::open_in_memory().unwrap();
    for db in [&db, &stock] {
        let keys = seed % 3 % 2;
        db.execute_batch(&format!(
            "PRAGMA wal_autocheckpoint=0; PRAGMA foreign_keys={keys}; {SCHEMA}"
        ))
        .unwrap();
        run(db, &program);
    }
    assert_eq!(dump(&db), dump(&stock), "seed {seed}: dash and stock SQLite");
    // Killed here: its files as they are.
    let killed = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let (from, to) =
            (entry.as_ref().unwrap().path(), killed.path().join(entry.unwrap().file_name()));
        match from.is_dir() {
            true => std::fs::create_dir(to).unwrap(),
            false => drop(std::fs::copy(from, to).unwrap()),
        }
    }
    let cut = killed.path().join("app.db");
    let report = dash_replay::replay(&cut, None, false)
        .unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    for it in &report.divergences {
        println!("seed {seed}, frame {}: {}: {}", it.commit.frames.1, it.what, it.reason);
        assert!(!it.reason.starts_with("nothing that is recorded"), "seed {seed}: no reason");
    }
    assert!(report.not_run.iter().all(|it| !it.reason.is_empty()), "seed {seed}");
    drop(db);
    drop(open(&cut, ""));
    assert_eq!(dump(&Connection::open(&cut).unwrap()), dump(&stock), "seed {seed}: after the cut");
    assert!(pages(&cut) == pages(&path), "seed {seed}: pages after the cut");
    told.programs += 1;
    told.run += report.same + report.same_content + report.divergences.len() as u64;
    told.not_run += report.not_run.len();
    told.other_pages += report.same_content;
    told.divergences += report.divergences.len();
}

#[test]
fn random_programs() {
    extension::load();
    let mut told = Told::default();
    let wanted = std::env::var("DASH_PROGRAMS").ok();
    let programs = wanted.map_or(moment(25, 100), |number| number.parse().unwrap());
    // In 295 a statement is prepared again within a transaction.
    for seed in (1..=programs).chain([295]) {
        story(seed, &mut told);
    }
    println!("{told:?}");
    assert!(programs > 25 || told.divergences == 0, "{told:?}: these come to the same");
    assert!(told.run > 4 * told.programs, "{told:?}: hardly any commit was run again");
}
