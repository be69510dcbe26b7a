//! Random programs, for tests that cut them off: statements with values, of which some fail, amidst
//! transactions and savepoints.

#![allow(dead_code, reason = "no test uses all of it")]

use std::path::Path;

use dash_testing::long::moment;
use rusqlite::Connection;
use rusqlite::types::Value;

/// What programs are made of.
pub struct Language {
    pub schema: &'static str,
    pub statements: &'static [&'static str],
    /// Statements of which one fails; [`ANY`] is any of the others.
    pub failing: &'static [&'static [&'static str]],
    /// Numbers are below it: the fewer, the more often a key is met.
    pub numbers: u64,
    /// Blobs have fewer bytes. Where they are long, there are many of them.
    pub blobs: u64,
    /// What a connection is set to, by the seed, before there is a table.
    pub settings: fn(u64) -> String,
}

/// All kinds of statements, on tables with all that tables may have.
pub const RICH: Language = Language {
    schema: SCHEMA,
    statements: &STATEMENTS,
    failing: &[],
    numbers: 1000,
    blobs: 900,
    settings: |seed| format!("PRAGMA foreign_keys={}", seed % 3 % 2),
};
/// Most of it can be proved to come to the same again, amidst what can't, whatever a connection is
/// set to.
pub const PLAIN: Language = Language {
    schema: PLAIN_SCHEMA,
    statements: &PLAIN_STATEMENTS,
    failing: &[],
    numbers: 12,
    blobs: 900,
    settings: |seed| {
        let pages = [512, 1024, 4096][usize::try_from(seed % 3).unwrap()];
        let bit = |at: u64| (seed >> at) & 1;
        format!(
            "PRAGMA page_size={pages}; PRAGMA auto_vacuum={}; PRAGMA cache_size={}; PRAGMA foreign_keys={};
             PRAGMA recursive_triggers={}; PRAGMA reverse_unordered_selects={}; PRAGMA ignore_check_constraints={};
             PRAGMA case_sensitive_like={}",
            bit(0), 1 + 100 * bit(1), bit(2), bit(3), bit(2), bit(3), bit(4)
        )
    },
};

/// The same, and statements fail within transactions that go on, by what is not in the database.
pub const FAILING: Language = Language {
    schema: FAILING_SCHEMA,
    failing: &[
        &["PRAGMA query_only=1", ANY, "PRAGMA query_only=0"],
        &["INSERT OR IGNORE INTO g VALUES (1, 2)", "REPLACE INTO f VALUES (1, 2)"],
        &["DELETE FROM 'g' WHERE id = 1"],
        &["DELETE FROM f WHERE r = 1", "DELETE FROM g WHERE id = 1"],
    ],
    ..PLAIN
};

/// Rows that take many pages come and go, also within one transaction.
pub const ROOMY: Language = Language {
    statements: &[
        "REPLACE INTO a(id, z) VALUES (1, ?)",
        "REPLACE INTO a(id, x, z) VALUES (2, 2, ?)",
        "REPLACE INTO a(id, z) VALUES (3, ?)",
        "REPLACE INTO b VALUES (1, 1, ?)",
        "UPDATE a SET z = ? WHERE id = 1",
        "UPDATE b SET v = ? WHERE k = 1 AND n = 1",
        "DELETE FROM a WHERE id = 1",
        "DELETE FROM a WHERE id = 2",
        "DELETE FROM b WHERE k = 1 AND n = 1",
    ],
    numbers: 4,
    blobs: 20_000,
    settings: |seed| {
        let pages = [512, 1024, 4096][usize::try_from(seed % 3).unwrap()];
        format!("PRAGMA page_size={pages}; PRAGMA auto_vacuum={}", seed / 3 % 2)
    },
    ..PLAIN
};

/// Stands for a statement.
const ANY: &str = "";

macro_rules! plain_schema {
    () => {
        "
    CREATE TABLE a(id INTEGER PRIMARY KEY, x UNIQUE, y DEFAULT -1.5e-3, z TEXT);
    CREATE TABLE b(k, n INT NOT NULL DEFAULT 1, v, PRIMARY KEY (k, n)) WITHOUT ROWID;
    CREATE TABLE c(id INTEGER PRIMARY KEY AUTOINCREMENT, u UNIQUE ON CONFLICT REPLACE, w BLOB);
    CREATE TABLE \"d\"(\"the key\" ANY PRIMARY KEY, p ANY, q INT) STRICT;
    CREATE TABLE e(x, y);
    CREATE INDEX ay ON a(y DESC, x);
    CREATE INDEX bv ON b(v);
    CREATE UNIQUE INDEX ez ON e(y, x);"
    };
}

const PLAIN_SCHEMA: &str = plain_schema!();

const FAILING_SCHEMA: &str = concat!(
    plain_schema!(),
    "CREATE TABLE g(id INTEGER PRIMARY KEY, x); CREATE TABLE f(r UNIQUE REFERENCES 'g', n)"
);

const PLAIN_STATEMENTS: [&str; 30] = [
    "INSERT INTO a(x, z) VALUES (?, ?)",
    "INSERT INTO a(id, x, y) VALUES (?, ?, ?);",
    "INSERT OR IGNORE INTO a VALUES (?1, ?2, ?3, ?1 || ?2)",
    "REPLACE INTO a(id, x) VALUES (?, ?) -- a row",
    "INSERT INTO b VALUES (?, ?, ?)",
    "INSERT OR REPLACE INTO b(k, v) VALUES (?, ?)",
    "INSERT INTO c(u, w) VALUES (?, ?)",
    "INSERT INTO main.c(u, w) VALUES ((?) + 0.5, x'0102')",
    "INSERT INTO \"d\"(\"the key\", p) VALUES (?, ?)",
    "INSERT OR FAIL INTO d VALUES (?, 'it''s', ?)",
    "INSERT INTO e VALUES (?, ?)",
    "UPDATE a SET x = x-? WHERE id = ?",
    "UPDATE OR IGNORE a SET id = ?, y = NULL WHERE x = ?",
    "UPDATE OR REPLACE a SET x = ?, z = z || ? WHERE a.id = ?",
    "UPDATE a SET y = ? WHERE (\"id\" = ?) AND (y IS NULL OR y < 7)",
    "UPDATE b SET v = ? WHERE k = ? AND n = ?",
    "UPDATE b SET n = n + 1 WHERE ? = k AND n == 1",
    "UPDATE c SET u = u / 2, w = ? WHERE u = ?",
    "UPDATE d SET q = ? WHERE [the key] = ?",
    "UPDATE e SET x = ? WHERE x = ? AND y = ?",
    "DELETE FROM a WHERE id = ?",
    "DELETE FROM a WHERE rowid = ? AND y > 0",
    "DELETE FROM b WHERE n = ? AND k = ?",
    "DELETE FROM c WHERE u = ?",
    "DELETE FROM e WHERE y = ? AND x = ?",
    "DELETE FROM a WHERE x > ?",
    "UPDATE b SET v = abs(v)",
    "ANALYZE",
    "CREATE INDEX IF NOT EXISTS more ON a(z, x)",
    "DROP INDEX IF EXISTS more",
];

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
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    pub fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[usize::try_from(self.below(all.len() as u64)).unwrap()]
    }

    pub fn value(&mut self, language: &Language) -> Value {
        let numbers = language.numbers;
        match self.below(8) {
            0 => Value::Null,
            1 => Value::Real(0.1 + f64::from(u32::try_from(self.below(numbers)).unwrap())),
            2 => Value::Text(format!("it's {}\n", self.below(50))),
            3 => Value::Blob(vec![7; usize::try_from(self.below(language.blobs)).unwrap()]),
            4 => Value::Integer(-1),
            5 | 6 if language.blobs > 900 => {
                Value::Blob(vec![1; usize::try_from(self.below(language.blobs)).unwrap()])
            }
            _ => Value::Integer(i64::try_from(self.below(numbers)).unwrap()),
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

/// A statement with its values.
type Step = (&'static str, Vec<Value>);

/// A program: statements with values. Those that fail, fail.
pub fn program(seed: u64, language: &Language) -> Vec<Step> {
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let length = 20 + random.below(40);
    let mut steps = Vec::new();
    for _ in 0..length {
        match random.below(4) {
            0 => steps.push((random.of(&AROUND), Vec::new())),
            1 if !language.failing.is_empty() => failing(&mut random, language, &mut steps),
            _ => steps.push(statement(&mut random, language)),
        }
    }
    steps.push(("COMMIT", Vec::new()));
    steps.push(("INSERT INTO b(k, n) VALUES ('last', 1)", Vec::new()));
    steps
}

fn statement(random: &mut Random, language: &Language) -> Step {
    let values = |random: &mut Random| (0..3).map(|_| random.value(language)).collect();
    (random.of(language.statements), values(random))
}

/// A transaction in which a statement fails, and others do not.
fn failing(random: &mut Random, language: &Language, steps: &mut Vec<Step>) {
    let any = [ANY];
    let others = [&["BEGIN"][..], &any, random.of(language.failing), &any, &["COMMIT"]];
    for sql in others.into_iter().flatten() {
        steps.push(match *sql {
            ANY => statement(random, language),
            sql => (sql, Vec::new()),
        });
    }
}

pub fn run(db: &Connection, program: &[(&str, Vec<Value>)]) {
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
pub fn dump(db: &Connection) -> Vec<String> {
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
pub fn pages(path: &Path) -> Vec<u8> {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[24..28].fill(0);
    bytes[92..100].fill(0);
    bytes
}

/// The files of a database as they are now.
pub fn as_killed(folder: &Path) -> tempfile::TempDir {
    let killed = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let (from, to) = (entry.path(), killed.path().join(entry.file_name()));
        match from.is_dir() {
            true => std::fs::create_dir(to).unwrap(),
            false => drop(std::fs::copy(from, to).unwrap()),
        }
    }
    killed
}

pub fn programs() -> u64 {
    let wanted = std::env::var("DASH_PROGRAMS").ok();
    wanted.map_or(moment(25, 40), |number| number.parse().unwrap())
}
