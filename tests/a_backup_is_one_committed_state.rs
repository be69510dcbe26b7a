//! `dash_backup()` copies one committed state while others commit without a pause, and nobody of
//! these is refused; in a read transaction it copies what that sees; the copy is a plain file with
//! nothing beside it.

mod suite;

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};

use dash_testing::long::{is_long, moment};
use dash_testing::machine::has_sqlite3;
use dash_testing::names::{names, uri};
use dash_testing::roles::python;
use dash_testing::{Need, extension, skip};
use rusqlite::Connection;
use suite::one;
use suite::sql::{content, run};

const WRITERS: i64 = 8;
const BACKUPS: usize = 20;
const ROWS: &str = "SELECT * FROM t ORDER BY 1";

fn back_up(db: &Connection, to: &Path) -> i64 {
    try_back_up(db, to).expect("backs up")
}

fn try_back_up(db: &Connection, to: &Path) -> rusqlite::Result<i64> {
    let sql = "SELECT dash_backup(?1)";
    db.query_row(sql, [to.to_str().expect("text")], |row| row.get(0))
}

/// The copy, whole and by itself.
fn copy(path: &Path) -> Connection {
    let folder = path.parent().expect("a folder");
    let name = path.file_name().and_then(|name| name.to_str()).expect("text");
    let beside: Vec<_> =
        names(folder).into_iter().filter(|found| found.starts_with(name)).collect();
    assert_eq!(beside, [name]);
    let db = suite::stock(path);
    suite::check(&db);
    assert_eq!(one::<String>(&db, "PRAGMA journal_mode"), "delete");
    db
}

/// What the writers are told, and tell.
#[derive(Default)]
struct Work {
    done: AtomicI64,
    stop: AtomicBool,
    /// Backups are being made.
    backups: AtomicBool,
}

/// Counts in a row of its own and in one of all. How long its longest transaction took before the
/// backups, and beside them.
fn write(path: &Path, writer: i64, work: &Work) -> [Duration; 2] {
    let db = suite::open(path);
    db.busy_timeout(Duration::from_secs(60)).expect("sets");
    let sql = format!(
        "BEGIN IMMEDIATE;
         UPDATE total SET n = n + 1;
         UPDATE counter SET n = n + 1 WHERE id = {writer};
         UPDATE filler SET data = randomblob(1000) WHERE id = abs(random()) % 4000;
         COMMIT"
    );
    let mut longest = [Duration::ZERO; 2];
    while !work.stop.load(Ordering::SeqCst) {
        let begun = Instant::now();
        run(&db, &sql);
        let longest = &mut longest[usize::from(work.backups.load(Ordering::SeqCst))];
        *longest = begun.elapsed().max(*longest);
        work.done.fetch_add(1, Ordering::SeqCst);
    }
    longest
}

fn beside_writers(mode: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("app.db");
    let db = suite::open(&path);
    assert_eq!(one::<String>(&db, &format!("PRAGMA journal_mode = {mode}")), mode);
    run(
        &db,
        "CREATE TABLE total(n); INSERT INTO total VALUES (0);
         CREATE TABLE counter(id INTEGER PRIMARY KEY, n);
         CREATE TABLE filler(id INTEGER PRIMARY KEY, data);
         WITH n(i) AS (VALUES (0) UNION ALL SELECT i + 1 FROM n WHERE i < 7) INSERT INTO counter SELECT i, 0 FROM n;
         WITH n(i) AS (VALUES (0) UNION ALL SELECT i + 1 FROM n WHERE i < 4000) INSERT INTO filler SELECT i, randomblob(1000) FROM n",
    );
    let work = Work::default();
    std::thread::scope(|scope| {
        let (path, work) = (&path, &work);
        let writers: Vec<_> =
            (0..WRITERS).map(|writer| scope.spawn(move || write(path, writer, work))).collect();
        std::thread::sleep(Duration::from_secs(1));
        work.backups.store(true, Ordering::SeqCst);
        let begun = (Instant::now(), work.done.load(Ordering::SeqCst));
        let mut committed_meanwhile = 0;
        for number in 0..moment(BACKUPS, 3 * BACKUPS) {
            let to = folder.path().join(format!("copy-{number}.db"));
            let before = work.done.load(Ordering::SeqCst);
            back_up(&db, &to);
            let after = work.done.load(Ordering::SeqCst);
            let copy = copy(&to);
            let total: i64 = one(&copy, "SELECT n FROM total");
            assert_eq!(one::<i64>(&copy, "SELECT sum(n) FROM counter"), total, "{mode} {number}");
            // What a writer has committed and not yet counted may be in it, too.
            assert!((before..=after + WRITERS).contains(&total), "{total}: {before} to {after}");
            committed_meanwhile += after - before;
            drop(copy);
            std::fs::remove_file(&to).expect("removes");
        }
        let beside = (begun.0.elapsed(), work.done.load(Ordering::SeqCst) - begun.1);
        work.stop.store(true, Ordering::SeqCst);
        let longest: Vec<_> =
            writers.into_iter().map(|writer| writer.join().expect("no writer fails")).collect();
        let longest = [0, 1].map(|phase| longest.iter().map(|of| of[phase]).max());
        println!(
            "mode {mode}: {} commits in 1 s alone, then {beside:?}; longest transactions {longest:?}",
            begun.1
        );
        assert!(committed_meanwhile > 0, "{mode}: nobody could write");
    });
}

#[test]
fn beside_eight_writers_in_mode_wal() {
    beside_writers("wal");
}

#[test]
fn beside_eight_writers_in_mode_shadow() {
    beside_writers("shadow");
}

#[test]
fn that_of_the_read_transaction_it_is_called_in() {
    for mode in ["wal", "shadow"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.db");
        let (db, other) = (suite::open(&path), suite::open(&path));
        run(&db, &format!("PRAGMA journal_mode = {mode}"));
        run(&db, "CREATE TABLE t(x); INSERT INTO t VALUES (1); BEGIN; SELECT * FROM t");
        let seen = content(&db, ROWS);
        run(&other, "INSERT INTO t VALUES (2)");
        let (old, new) = (folder.path().join("old.db"), folder.path().join("new.db"));
        back_up(&db, &old);
        assert_eq!(content(&copy(&old), ROWS), seen, "{mode}");
        run(&db, "COMMIT");
        back_up(&db, &new);
        assert_eq!(content(&copy(&new), ROWS), content(&other, ROWS), "{mode}");
    }
}

/// Step by step, SQLite's own backup would begin again with such a commit, and have it.
#[test]
fn that_was_there_when_its_file_was_made() {
    for mode in ["wal", "shadow"] {
        let folder = tempfile::tempdir().unwrap();
        let (path, to) = (folder.path().join("app.db"), folder.path().join("copy.db"));
        let (db, other) = (suite::open(&path), suite::open(&path));
        run(&db, &format!("PRAGMA journal_mode = {mode}; CREATE TABLE t(x)"));
        run(&db, "INSERT INTO t VALUES (zeroblob(60000000))");
        let unfinished = folder.path().join("copy.db.dash-backup-unfinished");
        std::thread::scope(|scope| {
            scope.spawn(move || {
                while !unfinished.exists() {
                    std::hint::spin_loop();
                }
                run(&other, "INSERT INTO t VALUES (1)");
            });
            back_up(&db, &to);
        });
        assert_eq!(one::<i64>(&copy(&to), "SELECT count(*) FROM t"), 1, "{mode}");
        assert_eq!(one::<i64>(&db, "SELECT count(*) FROM t"), 2, "{mode}");
    }
}

/// The same pages, at every page size, of every mode, and of a schema by its name. Only where the
/// header says how the source is kept do they differ.
#[test]
fn page_by_page_of_any_database() {
    for mode in ["wal", "shadow", "delete"] {
        for page_size in [512, 1024, 4096, 16384, 65536] {
            let folder = tempfile::tempdir().unwrap();
            let (path, to) = (folder.path().join("app.db"), folder.path().join("copy.db"));
            let db = suite::open(&path);
            run(&db, &format!("PRAGMA page_size = {page_size}; PRAGMA journal_mode = {mode}"));
            run(&db, "CREATE TABLE t(x); INSERT INTO t VALUES (randomblob(300000)); DELETE FROM t");
            run(&db, "INSERT INTO t VALUES (1); PRAGMA user_version = 7");
            let other = suite::stock(Path::new(":memory:"));
            run(&other, &format!("ATTACH '{}' AS aux", uri(&path, "")));
            let pages: i64 = other
                .query_row("SELECT dash_backup(?1, 'aux')", [to.to_str()], |row| row.get(0))
                .expect("backs up");
            assert_eq!(pages, one::<i64>(&db, "PRAGMA page_count"), "{mode} {page_size}");
            let copied = copy(&to);
            assert_eq!(one::<i64>(&copied, "PRAGMA page_size"), page_size, "{mode}");
            for pragma in ["PRAGMA user_version", "PRAGMA schema_version", "PRAGMA freelist_count"]
            {
                assert_eq!(one::<i64>(&copied, pragma), one::<i64>(&db, pragma), "{mode} {pragma}");
            }
            assert_eq!(content(&copied, ROWS), content(&db, ROWS), "{mode} {page_size}");
            drop((copied, other, db));
            // At rest the source is a plain file, too: the rest of it is the same, byte by byte.
            let page = usize::try_from(page_size).expect("fits");
            let (source, copied) = (std::fs::read(&path).unwrap(), std::fs::read(&to).unwrap());
            let end = copied.len();
            assert!(
                source.len() >= end && source[page..end] == copied[page..],
                "{mode} {page_size}"
            );
        }
    }
}

#[test]
fn of_what_is_empty_or_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let (empty, memory) = (folder.path().join("empty.db"), folder.path().join("memory.db"));
    let leave = uri(folder.path().join("leave.db"), "&dash_backup=on");
    let db = suite::open(&folder.path().join("app.db"));
    assert_eq!(back_up(&db, &empty), 1);
    assert_eq!(one::<i64>(&copy(&empty), "SELECT count(*) FROM sqlite_master"), 0);
    // A database in memory has no folder of its own, and no URI that SQLite keeps.
    let db = suite::stock(Path::new(&leave));
    run(&db, "ATTACH ':memory:' AS inside; CREATE TABLE inside.t(x); INSERT INTO t VALUES (5)");
    let sql = "SELECT dash_backup(?1, 'inside')";
    db.query_row(sql, [memory.to_str()], |_| Ok(())).expect("backs up");
    assert_eq!(one::<i64>(&copy(&memory), "SELECT x FROM t"), 5);
}

/// SQLite leaves out the page at 1 GiB, where its lock bytes are. It takes as much disk.
#[test]
fn across_the_lock_bytes() {
    if !is_long() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (path, to) = (folder.path().join("app.db"), folder.path().join("copy.db"));
    let db = suite::open(&path);
    run(&db, "PRAGMA journal_mode = wal; PRAGMA synchronous = OFF; CREATE TABLE t(x)");
    for _ in 0..11 {
        run(&db, "INSERT INTO t VALUES (zeroblob(100000000))");
    }
    back_up(&db, &to);
    assert_eq!(one::<i64>(&copy(&to), "SELECT sum(length(x)) FROM t"), 1_100_000_000);
}

/// The copy lets in nobody whom the database keeps out.
#[test]
fn with_the_access_rights_of_the_database() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let db = suite::open(&path);
    run(&db, "CREATE TABLE t(x)");
    drop(db);
    for mode in [0o600, 0o640, 0o664] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        let to = folder.path().join(format!("copy-{mode:o}.db"));
        back_up(&suite::open(&path), &to);
        assert_eq!(to.metadata().unwrap().permissions().mode() & 0o777, mode);
    }
    let path = folder.path().join("plain.db");
    run(&suite::stock(&path), "CREATE TABLE t(x)");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    for (db, name) in [(suite::open(&path), "one.db"), (suite::stock(&path), "two.db")] {
        let to = folder.path().join(name);
        back_up(&db, &to);
        assert_eq!(to.metadata().unwrap().permissions().mode() & 0o777, 0o640, "{name}");
    }
}

/// Whoever might rename in its folder put a file of his there, and the copy became as open as that.
/// Without the program's leave there is none, as nothing tells that the folder is the database's.
#[test]
fn nor_whom_a_file_lets_in_that_has_its_name_by_now() {
    use std::os::unix::fs::PermissionsExt;
    let allow = |path: &Path, bits| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(bits)).unwrap();
    };
    for mode in ["shadow", "wal", "delete", "stock"] {
        let folder = tempfile::tempdir().unwrap();
        let [path, to, other] = ["app.db", "copy.db", "other"].map(|name| folder.path().join(name));
        let db = suite::open(&path);
        let begin = if mode == "stock" { "delete" } else { mode };
        one::<String>(&db, &format!("PRAGMA journal_mode = {begin}"));
        run(&db, "CREATE TABLE t(x)");
        drop(db);
        allow(&path, 0o600);
        let db = if mode == "stock" { suite::stock(&path) } else { suite::open(&path) };
        run(&db, "BEGIN; SELECT * FROM t");
        std::fs::write(&other, "").unwrap();
        allow(&other, 0o666);
        std::fs::rename(&path, folder.path().join("aside")).unwrap();
        std::fs::rename(&other, &path).unwrap();
        let refused = try_back_up(&db, &to).expect_err(mode).to_string();
        assert!(refused.contains("is not the folder of the database"), "{mode}: {refused}");
        assert!(!to.exists(), "{mode}");
    }
}

#[test]
fn from_the_sqlite3_command_line() {
    if !has_sqlite3() {
        return skip(Need::Sqlite3, "sqlite3 is not installed");
    }
    let folder = tempfile::tempdir().unwrap();
    let (path, to) = (folder.path().join("app.db"), folder.path().join("copy.db"));
    let script = format!(
        ".load {}\n.open {}\nPRAGMA journal_mode=WAL;\nCREATE TABLE t(x); INSERT INTO t VALUES (1),(2);\nSELECT dash_backup('{}');\n",
        extension::library().display(),
        uri(&path, ""),
        to.display()
    );
    let file = folder.path().join("script");
    std::fs::write(&file, script).unwrap();
    let output = Command::new("sqlite3")
        .arg(":memory:")
        .stdin(std::fs::File::open(&file).unwrap())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said.trim(), "wal\n2", "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(one::<i64>(&copy(&to), "SELECT sum(x) FROM t"), 3);
}

#[test]
fn from_python() {
    let folder = tempfile::tempdir().unwrap();
    let (path, to) = (folder.path().join("app.db"), folder.path().join("copy.db"));
    let script = "
db = open(sys.argv[2])
db.execute('PRAGMA journal_mode=WAL')
db.executescript('CREATE TABLE t(x); INSERT INTO t VALUES (1),(2)')
assert db.execute('SELECT dash_backup(?)', (sys.argv[3],)).fetchone() == (2,)
try:
    db.execute('SELECT dash_backup(?)', (sys.argv[3],)).fetchone()
    sys.exit('it was overwritten')
except sqlite3.OperationalError as error:
    assert 'exists' in str(error), error
";
    let Some(mut command) = python(script, &[&path, &to]) else { return };
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(one::<i64>(&copy(&to), "SELECT sum(x) FROM t"), 3);
}
