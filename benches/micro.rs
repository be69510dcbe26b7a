//! The paths a commit and a read take, by criterion: `cargo bench --bench micro`.
//!
//! In memory where there is such a folder: a disk would hide what is looked for, processor time.
//! What a disk costs is `sqlite-dash bench`'s affair.
#![allow(missing_docs, reason = "criterion's macros make public items without documentation")]

use std::path::Path;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use dash_terminal::extension::{Extension, escape};
use rusqlite::Connection;

/// Rows to read and update.
const ROWS: i64 = 10_000;

/// Name, whether it goes through dash, what follows the open.
const SIDES: [(&str, bool, &str); 3] = [
    ("dash single", true, "PRAGMA synchronous=FULL"),
    ("stock WAL", false, "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL"),
    ("stock DELETE", false, "PRAGMA journal_mode=DELETE; PRAGMA synchronous=FULL"),
];

fn open(folder: &Path, (name, dash, settings): (&str, bool, &str)) -> Connection {
    let path = folder.join(name.replace(' ', "-"));
    let uri = format!("file:{}{}", escape(&path), if dash { "?vfs=dash" } else { "" });
    let db = Connection::open(uri).expect("opens");
    db.execute_batch(settings).expect("settings");
    db
}

fn fill(db: &Connection) {
    db.execute_batch(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, body TEXT NOT NULL);
         CREATE TABLE log (id INTEGER PRIMARY KEY, body TEXT NOT NULL)",
    )
    .expect("tables");
    let sql = "INSERT INTO t SELECT value, printf('%0100d', value) FROM (WITH RECURSIVE n(value) AS
               (VALUES(1) UNION ALL SELECT value + 1 FROM n WHERE value < ?1) SELECT value FROM n)";
    db.execute(sql, [ROWS]).expect("rows");
}

fn folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    made.expect("a folder")
}

fn commits(criterion: &mut Criterion) {
    let _extension = Extension::load().expect("libdash.so: cargo build --release");
    let folder = folder();
    let mut group = criterion.benchmark_group("in memory");
    for side in SIDES {
        let db = open(folder.path(), side);
        fill(&db);
        let mut insert = db.prepare("INSERT INTO log (body) VALUES (?1)").expect("prepares");
        let body = "x".repeat(100);
        group.bench_function(format!("insert, {}", side.0), |bencher| {
            bencher.iter(|| insert.execute([&body]).expect("inserts"));
        });
        let mut update = db.prepare("UPDATE t SET body = ?1 WHERE id = ?2").expect("prepares");
        let mut turn = 0;
        group.bench_function(format!("update, {}", side.0), |bencher| {
            bencher.iter(|| {
                turn += 1;
                update.execute((format!("{turn:0100}"), turn * 6_181 % ROWS + 1)).expect("updates")
            });
        });
        let mut read = db.prepare("SELECT body FROM t WHERE id = ?1").expect("prepares");
        group.bench_function(format!("point read, {}", side.0), |bencher| {
            bencher.iter(|| {
                turn += 1;
                let length = read.query_row([turn * 6_181 % ROWS + 1], |row| {
                    Ok(row.get_ref(0)?.as_str()?.len())
                });
                length.expect("reads")
            });
        });
        group.bench_function(format!("open, read the schema, close; {}", side.0), |bencher| {
            bencher.iter(|| {
                let db = open(folder.path(), (side.0, side.1, ""));
                let tables: i64 = db
                    .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
                    .expect("reads");
                tables
            });
        });
    }
    group.finish();
}

criterion_group! {
    name = micro;
    config = Criterion::default()
        .sample_size(30)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(2))
        .without_plots();
    targets = commits
}
criterion_main!(micro);
