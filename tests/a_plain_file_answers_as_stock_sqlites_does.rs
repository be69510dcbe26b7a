//! In SQLite's own rollback modes dash keeps the database's file by itself, for locks that no other
//! copy of SQLite in the process drops. What SQLite and programs ask of that file has the answers
//! of SQLite's own, and costs no descriptor more.

#![expect(unsafe_code, reason = "rusqlite has no file controls, nor the methods of a file")]
#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

mod suite;

use std::ffi::c_int;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dash_testing::roles::{Role, python};
use rusqlite::{Connection, ffi};
use suite::peers::{Part, Session, last_error};
use suite::sql::{at_rest, refused, run};

const PLAIN: &str = "&journal_mode=delete";

fn plain(path: &Path) -> Connection {
    suite::open_dash(path.as_os_str(), PLAIN).unwrap()
}

/// A control of the main database, by what it answers.
fn ask<T>(db: &Connection, number: c_int, mut argument: T) -> (c_int, T) {
    // SAFETY: an open connection, and an argument of the type that the control takes.
    let code = unsafe {
        let argument = (&raw mut argument).cast();
        ffi::sqlite3_file_control(db.handle(), c"main".as_ptr(), number, argument)
    };
    (code, argument)
}

/// What the file says of the device.
fn device(db: &Connection) -> (c_int, c_int) {
    let file: *mut ffi::sqlite3_file = std::ptr::null_mut();
    let (_, file) = ask(db, ffi::SQLITE_FCNTL_FILE_POINTER, file);
    // SAFETY: the file of an open connection, which is used by nobody else meanwhile.
    unsafe {
        let methods = *(*file).pMethods;
        (methods.xSectorSize.unwrap()(file), methods.xDeviceCharacteristics.unwrap()(file))
    }
}

/// What a connection says, and what it leaves, step by step.
fn answers(db: &Connection, path: &Path) -> Vec<String> {
    let mut said = vec![format!("{:?}", device(db))];
    let level = |said: &mut Vec<String>, sql: &str| {
        let result = db.execute_batch(sql).map_err(|error| error.to_string());
        let level = ask(db, ffi::SQLITE_FCNTL_LOCKSTATE, 9 as c_int);
        let moved = ask(db, ffi::SQLITE_FCNTL_HAS_MOVED, 9 as c_int);
        let len = path.metadata().map(|found| found.len()).ok();
        said.push(format!("{sql}: {result:?} {level:?} {moved:?} {len:?}"));
    };
    for sql in [
        "CREATE TABLE t(x)",
        "BEGIN",
        "SELECT count(*) FROM t",
        "INSERT INTO t VALUES (zeroblob(9000))",
        "PRAGMA cache_spill = 1",
        "COMMIT",
        "BEGIN EXCLUSIVE",
        "ROLLBACK",
        "PRAGMA locking_mode = EXCLUSIVE; INSERT INTO t VALUES (2)",
        "PRAGMA locking_mode = NORMAL; SELECT count(*) FROM t",
        "PRAGMA journal_mode = TRUNCATE; INSERT INTO t VALUES (3)",
        "PRAGMA journal_mode = PERSIST; INSERT INTO t VALUES (3)",
        "PRAGMA journal_mode = MEMORY; INSERT INTO t VALUES (3)",
        "PRAGMA journal_mode = OFF; INSERT INTO t VALUES (3)",
        "PRAGMA journal_mode = DELETE; DELETE FROM t; VACUUM",
    ] {
        level(&mut said, sql);
    }
    for setting in [-1, 1, -1, 0, -1 as c_int] {
        said.push(format!("{:?}", ask(db, ffi::SQLITE_FCNTL_PERSIST_WAL, setting)));
        said.push(format!("{:?}", ask(db, ffi::SQLITE_FCNTL_POWERSAFE_OVERWRITE, setting)));
    }
    for size in [-1, 100_000, -1, 0, -1_i64] {
        said.push(format!("{:?}", ask(db, ffi::SQLITE_FCNTL_MMAP_SIZE, size)));
    }
    for number in [ffi::SQLITE_FCNTL_LAST_ERRNO, ffi::SQLITE_FCNTL_OVERWRITE, 4711] {
        said.push(format!("{number}: {:?}", ask(db, number, 0 as c_int)));
    }
    said.push(format!("{:?}", ask(db, ffi::SQLITE_FCNTL_CHUNK_SIZE, 50_000 as c_int)));
    said.push(format!("{:?}", ask(db, ffi::SQLITE_FCNTL_SIZE_HINT, 60_000_i64)));
    level(&mut said, "INSERT INTO t VALUES (zeroblob(99000))");
    level(&mut said, "DELETE FROM t; VACUUM");
    std::fs::rename(path, path.with_extension("away")).unwrap();
    level(&mut said, "PRAGMA user_version");
    std::fs::rename(path.with_extension("away"), path).unwrap();
    level(&mut said, "PRAGMA integrity_check");
    said
}

#[test]
fn step_by_step() {
    suite::load();
    let folder = tempfile::tempdir().unwrap();
    for more in ["", "&psow=0"] {
        let named = |name: &str| folder.path().join(format!("{name}{}", more.len()));
        let (path, model) = (named("app.db"), named("stock.db"));
        let db = suite::open_dash(path.as_os_str(), &format!("{PLAIN}{more}")).unwrap();
        let stock = Connection::open(format!("file:{}?vfs=unix{more}", model.display())).unwrap();
        assert_eq!(suite::one::<String>(&db, "SELECT dash_engine()"), "plain");
        let (ours, theirs) = (answers(&db, &path), answers(&stock, &model));
        for (ours, theirs) in ours.iter().zip(&theirs) {
            // What dash says of a file that was moved is SQLite's own message.
            assert_eq!(ours, theirs, "{more}");
        }
    }
}

/// Mapped pages are what is read otherwise, whoever writes, and however much is cut off.
#[test]
fn in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let db = plain(&path);
    run(&db, "PRAGMA mmap_size = 100000000; PRAGMA cache_size = 5; CREATE TABLE t(x, y)");
    let mut other = Session::stock(&path);
    for round in 1..6 {
        other.must(&format!(
            "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 3000) \
             INSERT INTO t SELECT i, hex(randomblob(50)) || {round} FROM c"
        ));
        let rows: i64 = suite::one(&db, "SELECT count(*) FROM t WHERE length(y) = 101");
        assert_eq!(rows, 3000, "{round}");
        run(&db, "UPDATE t SET y = y || 'more'; DELETE FROM t WHERE x % 2");
        assert_eq!(other.must("SELECT count(*), max(length(y)) FROM t"), "1500,105", "{round}");
        suite::check(&db);
        other.must("DELETE FROM t");
        other.must("VACUUM");
        assert_eq!(suite::one::<i64>(&db, "SELECT count(*) FROM t"), 0, "{round}");
    }
}

/// The descriptors of this process on a file.
fn descriptors(path: &Path) -> usize {
    let links = std::fs::read_dir("/proc/self/fd").unwrap();
    let links = links.filter_map(|link| std::fs::read_link(link.unwrap().path()).ok());
    links.filter(|link| link == path).count()
}

#[test]
fn by_one_descriptor_a_connection() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let mut all: Vec<_> = (0..8).map(|_| plain(&path)).collect();
    run(&all[0], "CREATE TABLE t(x)");
    for db in &all {
        run(db, "INSERT INTO t VALUES (1)");
    }
    // And one by which the file was looked at, which waits for the next one to be closed.
    assert!((8..=9).contains(&descriptors(&path)), "{}", descriptors(&path));
    // A stock connection has POSIX locks, which a close would drop: it waits, and is taken over.
    let stock = suite::stock(&path);
    run(&stock, "BEGIN IMMEDIATE; INSERT INTO t VALUES (2)");
    all.clear();
    let again = plain(&path);
    assert_eq!(refused(&again, "INSERT INTO t VALUES (3)").0, ffi::SQLITE_BUSY);
    let mut elsewhere = Session::stock(&path);
    assert!(elsewhere.sql("BEGIN IMMEDIATE").unwrap_err().contains("locked"));
    run(&stock, "COMMIT");
    drop(stock);
    drop(again);
    elsewhere.close();
    assert_eq!(descriptors(&path), 0);
}

/// Where another process has it open by the rules of that mode it follows, and nothing is lost.
#[test]
fn until_the_mode_is_another_one() {
    let folder = tempfile::tempdir().unwrap();
    let path: PathBuf = folder.path().join("app.db");
    let db = plain(&path);
    run(&db, "CREATE TABLE t(x)");
    let mut other = Session::dash(&path, Part { parameters: PLAIN, ..Part::default() }).unwrap();
    let mut sum = 0;
    let mut both = |db: &Connection, engines: [&str; 2]| {
        run(db, "INSERT INTO t VALUES (1)");
        other.must("INSERT INTO t VALUES (1)");
        sum += 2;
        assert_eq!(other.must("SELECT sum(x) FROM t"), sum.to_string(), "{engines:?}");
        assert_eq!(suite::one::<i64>(db, "SELECT sum(x) FROM t"), sum, "{engines:?}");
        assert_eq!(suite::one::<String>(db, "SELECT dash_engine()"), engines[0]);
        assert_eq!(other.must("SELECT dash_engine()"), engines[1]);
    };
    both(&db, ["plain"; 2]);
    assert_eq!(suite::one::<String>(&db, "PRAGMA journal_mode=WAL"), "wal");
    both(&db, ["wal"; 2]);
    drop(db);
    other.close();
    let db = suite::open(&path);
    assert_eq!(suite::one::<String>(&db, "PRAGMA journal_mode=DELETE"), "delete");
    run(&db, "INSERT INTO t VALUES (1)");
    assert_eq!(suite::one::<String>(&db, "PRAGMA journal_mode=shadow"), "shadow");
    run(&db, "INSERT INTO t VALUES (1)");
    assert_eq!(suite::one::<String>(&db, "PRAGMA journal_mode=DELETE"), "delete");
    run(&db, "INSERT INTO t VALUES (1)");
    assert_eq!(descriptors(&path), 1);
    drop(db);
    assert_eq!(suite::one::<i64>(&at_rest(&path), "SELECT sum(x) FROM t"), sum + 3);
}

/// Both have the lock from descriptions of their own, and `dash_last_error()` tells whose it is.
#[test]
fn but_says_who_of_this_process_is_in_the_way() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let (db, other) = (plain(&path), plain(&path));
    db.busy_timeout(Duration::ZERO).unwrap();
    run(&db, "CREATE TABLE t(x)");
    let add = "INSERT INTO t VALUES (1)";
    let own = format!("another connection of this process, {}", std::process::id());
    for (sql, does) in [
        ("BEGIN IMMEDIATE", "on dash, has been writing"),
        ("COMMIT; BEGIN; SELECT count(*) FROM t", "on dash, has been reading"),
    ] {
        run(&other, sql);
        assert_eq!(refused(&db, add).0, ffi::SQLITE_BUSY);
        let said = last_error();
        assert!(said.contains(&own) && said.contains(does), "{said}");
    }
    run(&other, "COMMIT");
    run(&db, add);
}

const FORKS: &str = "
path, more = sys.argv[2], '&journal_mode=delete'
def one(db, sql):
    return db.execute(sql).fetchone()[0]
def begin(act):
    child = os.fork()
    if child == 0:
        code = 1
        try:
            act()
            code = 0
        except BaseException as error:
            last = one(scratch, 'SELECT dash_last_error()')
            print('in the child:', repr(error), last, file=sys.stderr, flush=True)
        os._exit(code)
    return child
def end(child):
    assert os.waitpid(child, 0)[1] == 0
def refused(act, why):
    try:
        act()
    except sqlite3.OperationalError as error:
        assert why in str(error), error
        return
    raise AssertionError('it worked')
db = open(path, more)
db.execute('CREATE TABLE t(v)')
db.execute('PRAGMA mmap_size = 1000000')
def add(db=db):
    assert one(db, 'SELECT dash_engine()') == 'plain'
    for number in range(10):
        db.execute('INSERT INTO t VALUES (1)')
    assert one(db, 'PRAGMA integrity_check') == 'ok'
end(begin(add))
add()
children = [begin(add) for _ in range(3)]
add()
for child in children:
    end(child)
assert one(db, 'SELECT count(*) FROM t') == 60
# A new one, of which nobody has said the mode, and one that is only read.
new, reads = open(path + '-new'), open(path, more + '&mode=ro')
def act():
    new.execute('PRAGMA journal_mode=delete')
    new.execute('CREATE TABLE t(v)')
    add(new)
    assert one(reads, 'SELECT count(*) FROM t') == 60
end(begin(act))
assert one(new, 'SELECT count(*) FROM t') == 10
# A child can't end its parent's transaction.
def act():
    if commits:
        refused(lambda: db.execute('COMMIT'), 'unable to open database file')
    db.close()
    other = open(path, more)
    other.execute('PRAGMA busy_timeout = 0')
    assert one(other, 'SELECT count(*) FROM t') >= 60
    refused(lambda: other.execute('BEGIN IMMEDIATE'), 'locked')
    other.close()
for mode, commits in [(mode, commits) for mode in ('DELETE', 'TRUNCATE', 'PERSIST', 'MEMORY') for commits in (False, True)]:
    assert one(db, 'PRAGMA journal_mode=' + mode) == mode.lower()
    db.execute('BEGIN IMMEDIATE')
    db.execute('INSERT INTO t VALUES (1)')
    def journal():
        return open_file(path + '-journal') if mode != 'MEMORY' else b''
    before = journal()
    end(begin(act))
    assert journal() == before
    db.execute('COMMIT')
assert one(db, 'SELECT count(*) FROM t') == 68
db.close()
";

/// Locks of open file descriptions are a child's, too, and so are the journal's bytes.
#[test]
fn and_in_a_forked_child_leaves_its_parent_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let read = "import pathlib\ndef open_file(name):\n    return pathlib.Path(name).read_bytes()\n";
    let Some(mut command) = python(&format!("{read}{FORKS}"), &[&path]) else { return };
    Role::spawn(&mut command).finish();
    let db = at_rest(&path);
    assert_eq!(suite::one::<i64>(&db, "SELECT count(*) FROM t"), 68);
    suite::check(&db);
}

/// What a connection reads itself is not named as being in its way.
#[test]
fn a_stock_reader_in_the_same_process_is_named_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let db = suite::open_dash(path.as_os_str(), "&journal_mode=delete").unwrap();
    db.execute_batch("CREATE TABLE t(x); PRAGMA busy_timeout=0").unwrap();
    let reader = rusqlite::Connection::open(&path).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM t").unwrap();
    db.execute_batch("INSERT INTO t VALUES (1)").unwrap_err();
    let said = suite::parts::last_error();
    assert!(said.contains("this process") && said.contains("stock SQLite, has been"), "{said}");
    assert!(!said.contains("on dash"), "{said}");
}
