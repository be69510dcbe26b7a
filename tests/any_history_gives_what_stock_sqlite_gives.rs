//! Random histories of statements and settings over two connections, against the same on a stock
//! database in memory. A failure names its seed; `DASH_SUITE_SEED=n` runs that one alone, and more
//! histories than usual are run with `DASH_SUITE_HISTORIES=n`.

mod suite;

use std::path::Path;

use dash_testing::random::Random;
use rusqlite::Connection;
use suite::sql::{at_rest, content, run};

const ROWS: &str = "SELECT * FROM t ORDER BY id";
const STEPS: usize = 120;
/// Histories that are run when nothing else is asked for.
const HISTORIES: u64 = 12;

/// A statement that changes rows, without randomness of SQLite's own.
fn change(random: &mut Random) -> String {
    let (a, b, c) = (random.below(400), 2 + random.below(30), random.below(3000));
    match random.below(9) {
        0 | 1 => format!("INSERT INTO t(v, data) VALUES ({a}, printf('%0{c}d', {b}))"),
        2 => format!("UPDATE t SET data = printf('%0{c}d', id) WHERE id % {b} = 1"),
        3 => format!("UPDATE t SET v = v + {a} WHERE id % {b} = 0"),
        4 => format!("DELETE FROM t WHERE id % {b} = {}", a % b),
        5 => format!(
            "INSERT INTO t(v, data) SELECT v + {a}, data FROM t WHERE id % {b} = 0 LIMIT 200"
        ),
        6 => format!("REPLACE INTO t VALUES ({a}, {b}, zeroblob({} * {}))", c, 1 + a / 40),
        7 => format!(
            "DROP TABLE IF EXISTS u; CREATE TABLE u(x); INSERT INTO u VALUES (zeroblob({} * {c}))",
            1 + b
        ),
        _ => format!("DELETE FROM t WHERE id > {}; DROP TABLE IF EXISTS u", 300 + c),
    }
}

/// A setting of dash's connection only.
fn setting(random: &mut Random) -> &'static str {
    random.one_of(&[
        "PRAGMA cache_size = 5",
        "PRAGMA cache_size = -2000",
        "PRAGMA mmap_size = 100000000",
        "PRAGMA mmap_size = 0",
        "PRAGMA synchronous = OFF",
        "PRAGMA synchronous = EXTRA",
        "PRAGMA dash_commit = paper",
        "PRAGMA dash_commit = exclusive",
        "PRAGMA dash_commit = single",
        "PRAGMA cache_spill = 1",
        "PRAGMA secure_delete = 1",
        "PRAGMA journal_mode = shadow",
        "PRAGMA incremental_vacuum(5)",
        "PRAGMA shrink_memory",
    ])
}

/// Something that needs the database outside of a transaction.
fn upheaval(random: &mut Random) -> String {
    match random.below(4) {
        0 => "VACUUM".to_owned(),
        1 => format!("PRAGMA page_size = {}; VACUUM", 512 << random.below(8)),
        2 => format!("PRAGMA auto_vacuum = {}; VACUUM", random.below(3)),
        _ => "ANALYZE; REINDEX".to_owned(),
    }
}

/// A session without locks in between, which the other connection can only read.
fn exclusive_session(
    random: &mut Random,
    [db, other]: [&Connection; 2],
    model: &Connection,
    context: &str,
) {
    run(db, "PRAGMA locking_mode = exclusive");
    for _ in 0..1 + random.below(4) {
        let sql = change(random);
        run(db, &sql);
        run(model, &sql);
        assert_eq!(content(other, ROWS), content(model, ROWS), "{context}, exclusive");
    }
    run(db, "PRAGMA locking_mode = normal; SELECT count(*) FROM t");
}

/// A transaction that is rolled back, in which one part was before.
fn rolled_back(random: &mut Random, db: &Connection) {
    let sql = change(random);
    run(db, &format!("BEGIN; {sql}"));
    if random.below(2) == 0 {
        let (undone, kept) = (change(random), change(random));
        run(db, &format!("SAVEPOINT s; {undone}; ROLLBACK TO s; {kept}"));
    }
    run(db, "ROLLBACK");
}

/// A transaction of several statements and savepoints, on both.
fn transaction(random: &mut Random, both: [&Connection; 2]) {
    let mut statements = vec!["BEGIN".to_owned()];
    for _ in 0..1 + random.below(4) {
        statements.push(change(random));
        if random.below(3) == 0 {
            statements.push(format!("SAVEPOINT s; {}", change(random)));
            statements.push(random.one_of(&["ROLLBACK TO s", "RELEASE s"]).to_owned());
        }
    }
    statements.push("COMMIT".to_owned());
    for sql in &statements {
        both.into_iter().for_each(|db| run(db, sql));
    }
}

fn history(seed: u64, path: &Path) {
    let mut random = Random(seed);
    let model = Connection::open_in_memory().expect("opens");
    let mut connections = [suite::open(path), suite::open(path)];
    let start = "CREATE TABLE t(id INTEGER PRIMARY KEY, v, data); CREATE INDEX t_v ON t(v, id)";
    run(&connections[0], start);
    run(&model, start);
    let mut committed = content(&model, ROWS);
    for step in 0..STEPS {
        let which = random.below(2);
        let db = &connections[which];
        let context = format!("seed {seed}, step {step}");
        match random.below(12) {
            0 => run(db, setting(&mut random)),
            1 => {
                let sql = upheaval(&mut random);
                run(db, &sql);
            }
            2 => connections[which] = suite::open(path),
            6 => exclusive_session(&mut random, [db, &connections[1 - which]], &model, &context),
            3 => rolled_back(&mut random, db),
            4 | 5 => transaction(&mut random, [db, &model]),
            _ => {
                let sql = change(&mut random);
                run(db, &sql);
                run(&model, &sql);
            }
        }
        committed = content(&model, ROWS);
        for db in &connections {
            assert_eq!(content(db, ROWS), committed, "{context}");
        }
        if step % 10 == 0 {
            suite::check(&connections[1 - which]);
        }
    }
    drop(connections);
    assert_eq!(content(&at_rest(path), ROWS), committed, "seed {seed}, at rest");
}

#[test]
fn whatever_is_done_in_whatever_order() {
    let number = |name| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let seeds = match number("DASH_SUITE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("DASH_SUITE_HISTORIES").unwrap_or(HISTORIES),
    };
    for seed in seeds {
        let folder = tempfile::tempdir().expect("a folder");
        println!("seed {seed}");
        history(seed, &folder.path().join("app.db"));
    }
}
