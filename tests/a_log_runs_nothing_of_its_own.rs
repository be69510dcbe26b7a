//! A log that somebody has forged runs no SQL of his where the database is opened: its statements
//! are judged, savepoints are made of their names, and behind that SQLite itself asks about all
//! that a statement does. Each text is put into each kind of step of a log of protocol `paper`,
//! with its checksum mended, and the database is opened without the frames that it carries.
//! `STATEMENT-6`, SEC S2-1, S2-6, S2-7, A10-1, A10-6.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

mod suite;

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};

use dash_statement::{Control, Event, Sql, Statement, Transaction, Value, decode, encode};
use dash_testing::names::{beside, uri};
use rusqlite::Connection;

/// Of a record (FORMAT.md of `dash-log`).
const MAGIC: &[u8] = b"\xFF\xFF\xFF\xFFDSHL";
const BLOCK: usize = 4096;
const START: usize = 56;
const CARRYING: u16 = 32;
/// Of what a record says of a transaction, before its statements (`dash-wal`, `annotation.rs`).
const SAID: usize = 1 + 25;

/// A set of files as a kill leaves them: one row is in frames, two are carried by statements.
struct Set(tempfile::TempDir);

impl Set {
    fn new() -> Self {
        Self::of_pages(4096)
    }

    fn of_pages(size: u32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let db = folder.path().join("app.db");
        suite::load();
        let made = format!("PRAGMA page_size={size}; VACUUM");
        Connection::open(&db).unwrap().execute_batch(&made).unwrap();
        let paper = "&journal_mode=statement&dash_commit=paper&dash_rest=off";
        let session = Connection::open(uri(&db, paper)).unwrap();
        let tables = "PRAGMA synchronous=FULL; BEGIN; CREATE TABLE t(k INTEGER PRIMARY KEY, v);
            CREATE TABLE o(a); INSERT INTO o VALUES (1); COMMIT";
        session.execute_batch(tables).unwrap();
        for number in 0..2 {
            session.execute("INSERT INTO t VALUES (?, 0)", [number]).unwrap();
        }
        let set = Self(tempfile::tempdir().unwrap());
        for ending in ["", "-wal", "-dashlog"] {
            fs::copy(beside(&db, ending), beside(&set.db(), ending)).unwrap();
        }
        fs::create_dir(beside(&set.db(), "-journal")).unwrap();
        set
    }

    fn db(&self) -> PathBuf {
        self.0.path().join("app.db")
    }

    /// A copy in which the first carried commit ran what `change` makes of it, and is the last one;
    /// `-wal` ends before it.
    fn forged(&self, change: impl FnOnce(&mut Transaction)) -> tempfile::TempDir {
        self.forged_often(1, change)
    }

    /// The same, where that record is of so many commits that ran the same.
    fn forged_often(
        &self,
        commits: usize,
        change: impl FnOnce(&mut Transaction),
    ) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let db = folder.path().join("app.db");
        fs::copy(self.db(), &db).unwrap();
        fs::create_dir(beside(&db, "-journal")).unwrap();
        let mut log = fs::read(beside(&self.db(), "-dashlog")).unwrap();
        let short = |log: &[u8], at: usize| u16::from_le_bytes([log[at], log[at + 1]]);
        let number = |log: &[u8], at: usize| {
            u32::from_le_bytes(log[at..at + 4].try_into().unwrap()) as usize
        };
        let is_record = |log: &[u8], at: &usize| log[*at..].starts_with(MAGIC);
        let all = (BLOCK..log.len()).step_by(512).filter(|at| is_record(&log, at));
        let mut carrying = all.filter(|at| short(&log, at + 40) & CARRYING != 0);
        let at = carrying.next().unwrap();
        let (len, context) = (number(&log, at + 32), usize::from(short(&log, at + 52)));
        let first = number(&log, at + START + 8) as u64;
        let said = at + START + context;
        let mut ran = decode(&log[said + SAID + 4..at + len]).unwrap();
        change(&mut ran);
        let statements = encode(&ran);
        let mut record = log[at..=said].to_vec();
        for _ in 0..commits {
            record.extend(&log[said + 1..said + SAID]);
            record.extend(u32::try_from(statements.len()).unwrap().to_le_bytes());
            record.extend(&statements);
        }
        let annotation = u16::try_from(record.len() - (said - at)).unwrap();
        record[54..56].copy_from_slice(&annotation.to_le_bytes());
        let padded = record.len().next_multiple_of(BLOCK);
        for (place, value) in [(32, record.len()), (36, padded), (12, 0)] {
            record[place..place + 4].copy_from_slice(&u32::try_from(value).unwrap().to_le_bytes());
        }
        let sum = crc32fast::hash(&record);
        record[12..16].copy_from_slice(&sum.to_le_bytes());
        log[at..].fill(0);
        log[at..at + record.len()].copy_from_slice(&record);
        fs::write(beside(&db, "-dashlog"), log).unwrap();
        let wal = beside(&db, "-wal");
        fs::copy(beside(&self.db(), "-wal"), &wal).unwrap();
        let page =
            fs::read(&wal).unwrap()[8..12].iter().fold(0, |sum, it| sum << 8 | u64::from(*it));
        let wal = OpenOptions::new().write(true).open(wal).unwrap();
        wal.set_len(32 + (first - 1) * (24 + page)).unwrap();
        folder
    }
}

/// What opening such a set answers, by the rows of `t`, or dash's reason.
fn opened(folder: &Path) -> Result<i64, String> {
    let count = |db: Connection| db.query_row("SELECT count(*) FROM t", [], |row| row.get(0));
    let result = Connection::open(uri(folder.join("app.db"), "")).and_then(count);
    result
        .map_err(|_| suite::one(&Connection::open_in_memory().unwrap(), "SELECT dash_last_error()"))
}

fn statement(sql: &str, values: Vec<Value>) -> Event {
    let sql = Sql::from(sql.as_bytes());
    Event::Statement(Statement { sql, values: Some(values), clock: None, nested: 0 })
}

/// In each of its places, with other steps before and behind it.
fn steps(sql: &str) -> Vec<Vec<Event>> {
    let text = || Sql::from(sql.as_bytes());
    let control = |kind| Event::Control(kind, text());
    vec![
        vec![statement(sql, Vec::new())],
        vec![control(Control::Savepoint)],
        vec![control(Control::Release)],
        vec![control(Control::RollbackTo)],
        vec![
            Event::Control(Control::Savepoint, Sql::from(&b"SAVEPOINT s"[..])),
            control(Control::Release),
        ],
    ]
}

#[test]
fn no_text_in_no_step_does_more_than_rows() {
    let set = Set::new();
    assert_eq!(opened(set.forged(|_| ()).path()), Ok(1), "an honest one is carried");
    let victims = tempfile::tempdir().unwrap();
    let victim = victims.path().join("victim.db");
    Connection::open(&victim).unwrap().execute_batch("CREATE TABLE m(v)").unwrap();
    let before = fs::read(&victim).unwrap();
    let folder = victims.path().display();
    for sql in [
        format!("VACUUM INTO '{folder}/new'"),
        format!("ATTACH '{folder}/new' AS p"),
        format!("ATTACH ('{folder}/'||'new') AS p"),
        format!("SELECT dash_backup('{folder}/new')"),
        format!("SELECT dash_backup('{folder}/victim.db', 'main', 'replace')"),
        format!("INSERT INTO t VALUES (7, dash_backup('{folder}/new'))"),
        format!("SAVEPOINT s; VACUUM INTO '{folder}/new'"),
        format!("RELEASE s; ATTACH '{folder}/new' AS p"),
        format!("SAVEPOINT s\0; VACUUM INTO '{folder}/new'"),
        "COMMIT".into(),
        "ROLLBACK".into(),
        "BEGIN".into(),
        "PRAGMA writable_schema=ON".into(),
        "PRAGMA journal_mode=DELETE".into(),
        "CREATE TABLE main.stolen AS SELECT * FROM t".into(),
        "CREATE TRIGGER g AFTER INSERT ON t BEGIN DELETE FROM o; END".into(),
        "DROP TABLE o".into(),
        "ALTER TABLE t ADD COLUMN w".into(),
        "SELECT load_extension('x')".into(),
        "INSERT INTO t SELECT a, 1 FROM o".into(),
        "INSERT INTO t VALUES (7, (SELECT a FROM o))".into(),
        "INSERT INTO t VALUES (7, zeroblob(9))".into(),
        "INSERT INTO t VALUES (7, 8) RETURNING zeroblob(9)".into(),
        "INSERT INTO sqlite_schema VALUES (1, 2, 3, 4, 5)".into(),
        "UPDATE sqlite_master SET sql = 1 WHERE rowid = 1".into(),
        "DELETE FROM t".into(),
        "WITH RECURSIVE c(x) AS (VALUES (1) UNION ALL SELECT x FROM c) SELECT count(*) FROM c"
            .into(),
        ".shell touch new".into(),
        "not SQL".into(),
    ] {
        for events in steps(&sql) {
            let forged = set.forged(|ran| ran.events = events.clone());
            let why = opened(forged.path()).unwrap_err();
            assert!(why.contains("app.db-dashlog"), "{events:?}: {why}");
            assert!(why.contains("none that dash writes"), "{events:?}: {why}");
            let names: Vec<_> = fs::read_dir(victims.path()).unwrap().collect();
            assert_eq!(names.len(), 1, "{events:?}");
            assert_eq!(fs::read(&victim).unwrap(), before, "{events:?}");
        }
    }
}

#[test]
fn a_savepoint_is_made_of_its_name() {
    let set = Set::new();
    let control = |kind, sql: &str| Event::Control(kind, Sql::from(sql.as_bytes()));
    let forged = set.forged(|ran| {
        ran.events.insert(0, control(Control::Savepoint, "SAVEPOINT \"a;b\" -- one"));
        ran.events.push(control(Control::Release, "RELEASE SAVEPOINT 'A;b';"));
    });
    assert_eq!(opened(forged.path()), Ok(1));
}

/// SEC S2-6: on a thread whose stack is as small as those of the JVM.
#[test]
fn no_text_is_too_deep() {
    let set = Set::new();
    let forged = set.forged(|ran| {
        let sql = format!("DELETE FROM t WHERE {}k=1{}", "k=?and(".repeat(8000), ")".repeat(8000));
        ran.events = vec![statement(&sql, vec![Value::Null])];
    });
    let path = forged.path().to_owned();
    let small = std::thread::Builder::new().stack_size(1 << 20).spawn(move || opened(&path));
    let why = small.unwrap().join().unwrap().unwrap_err();
    assert!(why.contains("too large"), "{why}");
}

/// SEC S2-7: a few bytes stand for as many zeros as they say.
#[test]
fn no_value_is_larger_than_what_a_commit_writes() {
    let set = Set::new();
    let insert = |zeros| statement("INSERT INTO t VALUES (NULL, ?)", vec![Value::Zeroblob(zeros)]);
    let many = |count: usize, zeros| set.forged(|ran| ran.events = vec![insert(zeros); count]);
    for forged in [many(1, 500 << 20), many(1, u64::MAX), many(1000, 100 << 10)] {
        let why = opened(forged.path()).unwrap_err();
        assert!(why.contains("too large"), "{why}");
        let len = fs::metadata(beside(&forged.path().join("app.db"), "-wal")).unwrap().len();
        assert!(len < 1 << 20, "{len} bytes were written");
    }
}

/// SEC A10-1: a value may be as long as the database, and a savepoint keeps what pages held.
#[test]
fn no_commit_takes_more_memory_than_its_database_tells() {
    let set = Set::new();
    let copies = set.forged(|ran| {
        let sql = format!("UPDATE t SET v = ({}v) ISNULL WHERE k = 0", "v||".repeat(300));
        ran.events = vec![statement(&sql, Vec::new()); 1000];
    });
    let why = opened(copies.path()).unwrap_err();
    assert!(why.contains("too large") && why.contains("none that dash writes"), "{why}");
    let savepoints = set.forged(|ran| {
        let update = |to: &str| format!("UPDATE t SET v = {to} WHERE k = 0");
        let savepoint = Event::Control(Control::Savepoint, Sql::from(&b"SAVEPOINT s"[..]));
        ran.events = vec![statement(&update("?"), vec![Value::Zeroblob(1 << 20)])];
        for _ in 0..100 {
            ran.events.extend([savepoint.clone(), statement(&update("'x' || v"), Vec::new())]);
        }
        ran.events.push(statement(&update("NULL"), Vec::new()));
    });
    let before = most_memory();
    drop(opened(savepoints.path()));
    let more = most_memory().saturating_sub(before);
    assert!(more < 50 << 10, "{more} KiB");
}

/// SEC A10-1: what commits write is no more than the record says, in memory and on the disk, and
/// stays on neither.
#[test]
fn no_commit_writes_more_than_its_record_names() {
    let set = Set::of_pages(65_536);
    let update = || statement("UPDATE t SET v=v||v||v WHERE k=0", Vec::new());
    let insert = |k: i64| {
        let values = vec![Value::Integer(k), Value::Blob(vec![1; 40])];
        statement("INSERT INTO t VALUES (?, ?)", values)
    };
    let rows = set.forged(|ran| {
        let again = |k: i64| {
            let sql = "UPDATE t SET v=v||v||v WHERE k=?";
            (0..9).map(move |_| statement(sql, vec![Value::Integer(k)]))
        };
        ran.events = (9..159).flat_map(|k| [insert(k)].into_iter().chain(again(k))).collect();
    });
    let often = set.forged_often(80, |ran| {
        let replace = statement("REPLACE INTO t VALUES (0, ?)", vec![Value::Blob(vec![1; 40])]);
        ran.events = [replace].into_iter().chain((0..10).map(|_| update())).collect();
    });
    for forged in [rows, often] {
        let wal = beside(&forged.path().join("app.db"), "-wal");
        let len = || fs::metadata(&wal).unwrap().len();
        let (before, memory) = (len(), most_memory());
        let why = opened(forged.path()).unwrap_err();
        let ways = ["write more pages", "come to something else"];
        assert!(ways.iter().any(|way| why.contains(way)), "{why}");
        assert_eq!(len(), before, "it is left in -wal");
        let more = most_memory().saturating_sub(memory);
        assert!(more < 90 << 10, "{more} KiB");
    }
}

/// What this process has had at most, in KiB.
fn most_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// SEC A10-6: it is no fault of the program's.
#[test]
fn a_text_that_sqlite_cant_parse_is_called_forged() {
    let set = Set::new();
    for sql in [
        "INSERT INTO t VALUES (7, ?999999999)",
        "INSERT INTO t VALUES (7)",
        "UPDATE t SET v = 1 2 WHERE k = 1",
    ] {
        let forged = set.forged(|ran| ran.events = vec![statement(sql, Vec::new())]);
        let why = opened(forged.path()).unwrap_err();
        assert!(why.contains("none that dash writes"), "{sql}: {why}");
    }
}
