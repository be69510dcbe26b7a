//! Random programs under protocol `paper`, cut off by a power loss that takes frames which only
//! their statements can bring back: what is recovered is what a run without the cut has, row by row
//! and page by page (`WAL-32`, `WAL-34`, `STATEMENT-6`).
//!
//! A power loss is made of the files of a moment: `-wal` is cut anywhere behind what a flush had
//! made durable there, which is what comes before the log's window.
//!
//! With `DASH_LONG=1` there are more of them, with `DASH_PROGRAMS` so many. It says how many there
//! were.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

use std::fs::OpenOptions;
use std::path::Path;

use dash_storage::real::Real;
use dash_testing::extension;
use dash_wal::history::{History, checkpointed};
use rusqlite::Connection;

mod programs;

use programs::{
    FAILING, Language, PLAIN, RICH, ROOMY, Random, as_killed, dump, pages, program, programs, run,
};

const PAPER: &str = "&journal_mode=statement&dash_commit=paper&dash_rest=off";

fn open(path: &Path, parameters: &str) -> Connection {
    let opened = Connection::open(format!("file:{}?vfs=dash{parameters}", path.display()));
    opened.unwrap_or_else(|error| {
        let memory = Connection::open_in_memory().unwrap();
        let why = memory.query_row("SELECT dash_last_error()", [], |row| row.get(0));
        panic!("{error}: {}", why.unwrap_or_else(|_| String::new()))
    })
}

#[derive(Debug, Default)]
struct Told {
    programs: u64,
    commits: u64,
    carried: u64,
    /// Commits that were carried, and whose frames were cut off.
    run_again: u64,
    checkpoints: u64,
    /// Programs with a transaction whose statements did not all change a row.
    unconfirmed: u64,
}

fn stat(db: &Connection, name: &str) -> u64 {
    let sql = format!("SELECT value FROM dash_stats WHERE name = '{name}'");
    let value: i64 = db.query_row(&sql, [], |row| row.get(0)).unwrap();
    u64::try_from(value).unwrap()
}

/// Cuts `-wal` off behind a frame that a flush had made durable, or any later one; how many carried
/// commits lose frames by that.
fn cut_off(path: &Path, random: &mut Random) -> u64 {
    let Some(history) = History::read(&Real, path).unwrap() else { return 0 };
    let Some((salts, page, first)) = history.window() else { return 0 };
    let wal = path.with_file_name("app.db-wal");
    let len = std::fs::metadata(&wal).unwrap().len();
    let frame = u64::from(page) + 24;
    let frames = (len - 32) / frame;
    // A checkpoint flushes it, and ends the window; until the next record the log says what was.
    let copied = checkpointed(&Real, path).unwrap().filter(|it| it.salts == salts);
    let durable = match copied.is_some_and(|copied| copied.frame >= first) {
        true => frames,
        false => u64::from(first) - 1,
    };
    let keep = match random.below(3) {
        0 => durable,
        _ => durable + random.below(frames - durable + 1),
    };
    // A part of the next one may be there.
    let part = if random.below(2) == 0 { 0 } else { random.below(frame) };
    let wal = OpenOptions::new().write(true).open(wal).unwrap();
    wal.set_len((32 + keep * frame + part).min(len)).unwrap();
    let lost = history.commits().unwrap();
    let lost = lost.iter().filter(|it| it.carried && u64::from(it.frames.1) > keep);
    lost.count() as u64
}

/// Cuts `-wal` off behind what a flush had made durable there.
fn cut_off_the_window(path: &Path) {
    let history = History::read(&Real, path).unwrap().unwrap();
    let (_, page, first) = history.window().unwrap();
    let wal = OpenOptions::new().write(true).open(path.with_file_name("app.db-wal")).unwrap();
    wal.set_len(32 + u64::from(first - 1) * (u64::from(page) + 24)).unwrap();
}

/// One program; what became of it.
fn story(seed: u64, language: &Language, told: &mut Told) {
    let folder = tempfile::tempdir().unwrap();
    let (path, program) = (folder.path().join("app.db"), program(seed, language));
    let db = open(&path, PAPER);
    let stock = Connection::open_in_memory().unwrap();
    let checkpoint = [0, 0, 5][usize::try_from(seed % 3).unwrap()];
    for db in [&db, &stock] {
        let settings = (language.settings)(seed);
        db.execute_batch(&format!(
            "PRAGMA wal_autocheckpoint={checkpoint}; {settings}; {}",
            language.schema
        ))
        .unwrap();
        run(db, &program);
    }
    assert_eq!(dump(&db), dump(&stock), "seed {seed}: dash and stock SQLite");
    let killed = as_killed(folder.path());
    let cut = killed.path().join("app.db");
    if seed.is_multiple_of(2) {
        // It did not survive the power loss.
        drop(std::fs::remove_file(killed.path().join("app.db-dash")));
    }
    told.programs += 1;
    told.commits += stat(&db, "commits");
    told.carried += stat(&db, "carried");
    told.checkpoints += stat(&db, "checkpoints");
    let unconfirmed = "SELECT value GLOB '*unconfirmed*' FROM dash_stats WHERE name='not_carried'";
    told.unconfirmed +=
        u64::from(db.query_row(unconfirmed, [], |row| row.get::<_, bool>(0)).unwrap());
    told.run_again += cut_off(&cut, &mut Random(seed.wrapping_mul(77) | 1));
    drop(db);
    drop(open(&cut, "&journal_mode=wal"));
    assert_eq!(dump(&Connection::open(&cut).unwrap()), dump(&stock), "seed {seed}: after the cut");
    same_pages(&cut, &path, seed);
}

/// Page by page, but for what SQLite counts on page 1.
fn same_pages(one: &Path, other: &Path, seed: u64) {
    let (mine, theirs) = (pages(one), pages(other));
    let size = usize::from(u16::from_be_bytes([mine[16], mine[17]]));
    assert_eq!(mine.len(), theirs.len(), "seed {seed}: pages of the database after the cut");
    let differ = |number: &usize| {
        let place = (number - 1) * size..number * size;
        mine[place.clone()] != theirs[place]
    };
    let differ: Vec<_> = (1..=mine.len() / size).filter(differ).collect();
    assert!(differ.is_empty(), "seed {seed}: pages {differ:?} after the cut");
}

#[test]
fn random_programs_of_which_most_is_carried() {
    extension::load();
    let (mut told, programs) = (Told::default(), programs());
    (1..=programs).for_each(|seed| story(seed, &PLAIN, &mut told));
    println!("{told:?}");
    assert!(3 * told.carried > told.commits, "{told:?}: hardly any commit was carried");
    assert!(told.run_again > told.programs, "{told:?}: hardly any commit was run again");
    assert!(told.checkpoints > 0, "{told:?}");
}

/// Nothing is in the way of a statement that is run again.
#[test]
fn random_programs_whose_statements_fail_by_what_is_not_in_the_database() {
    extension::load();
    let (mut told, programs) = (Told::default(), programs());
    (1..=programs).for_each(|seed| story(seed, &FAILING, &mut told));
    println!("{told:?}");
    assert!(5 * told.carried > told.commits, "{told:?}: hardly any commit was carried");
    assert!(told.run_again > told.programs / 2, "{told:?}: hardly any commit was run again");
    assert!(4 * told.unconfirmed > told.programs, "{told:?}: hardly any statement failed");
}

/// What was changed and then freed is in frames, too.
#[test]
fn random_programs_of_rows_that_take_many_pages() {
    extension::load();
    let (mut told, programs) = (Told::default(), programs());
    (1..=programs).for_each(|seed| story(seed, &ROOMY, &mut told));
    println!("{told:?}");
    assert!(3 * told.carried > told.commits, "{told:?}: hardly any commit was carried");
    assert!(told.run_again > told.programs, "{told:?}: hardly any commit was run again");
}

/// As many commits as statements carry before `-wal` is flushed. How long it takes to run them
/// again is printed, and depends on the machine.
#[test]
fn as_many_as_statements_carry_at_once() {
    extension::load();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let db = open(&path, &format!("{PAPER}&dash_durability=none"));
    db.execute_batch(
        "PRAGMA wal_autocheckpoint=0; CREATE TABLE t(id INTEGER PRIMARY KEY, v TEXT); CREATE INDEX i ON t(v)",
    )
    .unwrap();
    let mut insert = db.prepare("INSERT INTO t(v) VALUES (?)").unwrap();
    let mut insert = |number: u64| {
        insert.execute([format!("a text of some length, with the number {number}")]).unwrap();
    };
    let wanted = 10_000;
    (0..wanted).for_each(&mut insert);
    assert_eq!(stat(&db, "carried"), wanted);
    let killed = as_killed(folder.path());
    let flushes = stat(&db, "wal_flushes");
    insert(wanted);
    assert_eq!((stat(&db, "carried"), stat(&db, "wal_flushes")), (wanted, flushes + 1));
    let cut = killed.path().join("app.db");
    cut_off_the_window(&cut);
    let begun = std::time::Instant::now();
    let recovered = open(&cut, "&journal_mode=wal");
    let time = begun.elapsed();
    let rows: i64 = recovered.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap();
    println!("{rows} commits were run again in {time:?}");
    assert_eq!(u64::try_from(rows), Ok(wanted));
}

/// SQLite leaves out of a rollback mode's writes what it throws away (`sqlite3PagerDontWrite`), and
/// WAL mode has that in frames: pages that a transaction has changed, and then freed.
#[test]
fn pages_that_a_transaction_has_changed_and_freed() {
    extension::load();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let db = open(&path, PAPER);
    db.execute_batch("CREATE TABLE t(id INTEGER PRIMARY KEY, v)").unwrap();
    let insert = |id: u32, size: u32| {
        db.execute("INSERT INTO t VALUES (?, ?)", (id, "x".repeat(size as usize))).unwrap();
    };
    [(0, 4000), (7, 20_000), (4, 5000)].into_iter().for_each(|(id, size)| insert(id, size));
    db.execute_batch("BEGIN; DELETE FROM t WHERE id = 0; DELETE FROM t WHERE id = 4; COMMIT")
        .unwrap();
    // New ones, too.
    db.execute_batch("BEGIN").unwrap();
    insert(5, 9000);
    db.execute_batch("UPDATE t SET v = 1 WHERE id = 5; COMMIT").unwrap();
    assert_eq!(stat(&db, "carried"), 5);
    let killed = as_killed(folder.path());
    let cut = killed.path().join("app.db");
    cut_off_the_window(&cut);
    drop(open(&cut, "&journal_mode=wal"));
    let found = dump(&Connection::open(&cut).unwrap());
    assert_eq!(found, dump(&db));
    drop(db);
    same_pages(&cut, &path, 0);
}

/// A database on which `work` runs after `schema`; it is there again when `-wal` is cut off. How
/// many commits were carried.
fn recovered(schema: &str, work: impl Fn(&Connection)) -> u64 {
    extension::load();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    Connection::open(&path).unwrap().execute_batch(schema).unwrap();
    let db = open(&path, &format!("{PAPER}&dash_durability=none"));
    db.execute_batch(
        "PRAGMA wal_autocheckpoint=0; CREATE TABLE first(k INTEGER PRIMARY KEY, v); INSERT INTO first VALUES (1, 1)",
    )
    .unwrap();
    // A session begins with commits that no log has.
    for k in 2..20 {
        db.execute("INSERT INTO first VALUES (?, 1)", [k]).unwrap();
    }
    let before = stat(&db, "carried");
    work(&db);
    let carried = stat(&db, "carried") - before;
    let killed = as_killed(folder.path());
    let cut = killed.path().join("app.db");
    cut_off_the_window(&cut);
    drop(open(&cut, "&journal_mode=wal"));
    assert_eq!(dump(&Connection::open(&cut).unwrap()), dump(&db));
    carried
}

const ROWS: &str = "CREATE TABLE t(k INTEGER PRIMARY KEY, n INT, v)";

/// `STATEMENT-6`, `WAL-34`: what is joined is longer than the database.
#[test]
fn long_values_that_a_condition_joins() {
    let schema = format!("{ROWS}; INSERT INTO t VALUES (1, 2, zeroblob(3000000))");
    let carried = recovered(&schema, |db| {
        for n in 3..9 {
            let sql = "UPDATE t SET n = ? WHERE k = 1 AND (v||v||v||v||n) NOTNULL";
            assert_eq!(db.execute(sql, [n]).unwrap(), 1);
        }
    });
    assert!(carried > 3, "{carried}");
}

/// The same: SQLite looks through a table that was small when it was analyzed, and does so within
/// the time and the instructions that running it again may take.
#[test]
fn a_table_that_is_looked_through() {
    let schema = "CREATE TABLE t(a, b, c, d, v, PRIMARY KEY (a, b, c, d));
        INSERT INTO t VALUES (0, 0, 0, 0, 0); ANALYZE;
        WITH RECURSIVE c(x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM c LIMIT 40000)
        INSERT INTO t SELECT x, 1, 2, 3, 'abc' FROM c";
    let carried = recovered(schema, |db| {
        for number in 1..1000 {
            let sql = "UPDATE t SET v = 1 WHERE a = ? AND b = 1 AND c = 2 AND d = 3";
            assert_eq!(db.execute(sql, [number]).unwrap(), 1);
        }
    });
    assert!(carried > 900, "{carried}");
}

/// The same: pages that a commit cuts off are in no frames, and as many as a cache holds.
#[test]
fn pages_that_a_commit_cuts_off() {
    let schema = format!("PRAGMA page_size=512; PRAGMA auto_vacuum=FULL; {ROWS}");
    let carried = recovered(&schema, |db| {
        db.execute_batch("PRAGMA cache_size=-200000").unwrap();
        for k in 0..6 {
            db.execute_batch("BEGIN; INSERT INTO t VALUES (9, 9, '0123456789')").unwrap();
            for _ in 0..12 {
                db.execute("UPDATE t SET v=v||v||v WHERE k=9", []).unwrap();
            }
            db.execute_batch("DELETE FROM t WHERE k=9; COMMIT").unwrap();
            db.execute("INSERT INTO t VALUES (?, 1, 1)", [k]).unwrap();
        }
    });
    assert!((1..=6).contains(&carried), "{carried}: one statement is carried, several are not");
}

/// Of all kinds of statements hardly any is carried. They are amidst those that are.
#[test]
fn random_programs_of_all_kinds() {
    extension::load();
    let (mut told, programs) = (Told::default(), programs());
    (1..=programs).for_each(|seed| story(seed, &RICH, &mut told));
    println!("{told:?}");
}
