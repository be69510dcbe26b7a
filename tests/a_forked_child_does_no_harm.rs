//! Python's `os.fork` with an open connection: SQLite forbids its use in the child, and programs do
//! it all the same. Parent and children that open their own connections go on, and what the child
//! drops or ends with releases no lock of the parent's; nor does a child that lives on keep the
//! locks of a parent that was killed (F16).

mod suite;

use std::path::Path;

use dash_testing::roles::{Role, python};
use suite::sql::{at_rest, run};

fn played(script: &str, path: &Path) -> bool {
    let Some(mut command) = python(script, &[path]) else { return false };
    Role::spawn(&mut command).finish();
    true
}

fn made(path: &Path) {
    run(&suite::open(path), "CREATE TABLE t(v); INSERT INTO t VALUES (0)");
}

#[test]
fn when_each_child_opens_a_connection_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    made(&path);
    let script = "
db = open(sys.argv[2])
def count(db):
    for _ in range(40):
        db.execute('UPDATE t SET v = v + 1')
count(db)
children = []
for _ in range(3):
    child = os.fork()
    if child == 0:
        count(open(sys.argv[2]))
        os._exit(0)
    children.append(child)
count(db)
assert all(os.waitpid(child, 0)[1] == 0 for child in children)
count(db)
assert db.execute('SELECT v FROM t').fetchone() == (240,)
assert db.execute('PRAGMA integrity_check').fetchone() == ('ok',)
";
    if played(script, &path) {
        assert_eq!(suite::one::<i64>(&at_rest(&path), "SELECT v FROM t"), 240);
    }
}

#[test]
fn when_a_child_goes_on_in_mode_statement() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    made(&path);
    let script = "
db = open(sys.argv[2])
assert db.execute('PRAGMA journal_mode=statement').fetchone() == ('statement',)
def count():
    db.execute('UPDATE t SET v = v + 1')
    assert db.execute('SELECT dash_engine()').fetchone() == ('statement',)
count()
child = os.fork()
if child == 0:
    count()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
count()
db.close()
";
    if played(script, &path) {
        assert_eq!(suite::one::<i64>(&suite::open(&path), "SELECT v FROM t"), 3);
    }
}

#[test]
fn when_a_child_changes_the_mode_of_a_plain_file_it_inherited() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    made(&path);
    let script = "
db = open(sys.argv[2])
db.execute('PRAGMA journal_mode=delete')
db.execute('UPDATE t SET v = v + 1')
child = os.fork()
if child == 0:
    assert db.execute('PRAGMA journal_mode=shadow').fetchone() == ('shadow',)
    db.execute('UPDATE t SET v = v + 1')
    db.execute('UPDATE t SET v = v + 1')
    db.close()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
db.execute('UPDATE t SET v = v + 1')
db.close()
";
    if played(script, &path) {
        assert_eq!(suite::one::<i64>(&at_rest(&path), "SELECT v FROM t"), 4);
    }
}

/// Whatever starts a program has such a child for an instant, and keeps a host's files open by it
/// that the host has closed: the last connection to close must not take it for a stock process.
#[test]
fn when_a_child_is_on_its_way_to_another_program() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    made(&path);
    let script = "
import time
connections = [open(sys.argv[2]) for _ in range(2)]
for db in connections * 2:
    db.execute('UPDATE t SET v = v + 1')
child = os.fork()
if child == 0:
    time.sleep(0.02)
    os.execv('/bin/true', ['true'])
for db in connections:
    db.close()
assert os.waitpid(child, 0)[1] == 0
";
    if played(script, &path) {
        assert_eq!(suite::one::<i64>(&at_rest(&path), "SELECT v FROM t"), 4);
    }
}

/// The child inherits descriptors, and with them open-file-description locks: its end, and its
/// closing of the connection, must not take them from the parent.
/// `gunicorn --preload`: it was told to open it again in this process, as it closed it.
#[test]
fn and_nothing_is_said_where_a_child_only_closes() {
    for mode in ["wal", "shadow"] {
        let folder = tempfile::tempdir().unwrap();
        let (path, log) = (folder.path().join("app.db"), folder.path().join("errors"));
        made(&path);
        run(&suite::open(&path), &format!("PRAGMA journal_mode={mode}"));
        let script = "
db = open(sys.argv[2])
db.execute('UPDATE t SET v = v + 1')
child = os.fork()
if child == 0:
    db.close()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
";
        let Some(mut command) = python(script, &[&path]) else { return };
        Role::spawn(command.env("DASH_ERRORS", &log)).finish();
        assert_eq!(std::fs::read_to_string(&log).unwrap_or_default(), "", "{mode}");
    }
}

#[test]
fn when_a_child_closes_the_connection_it_inherited() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    made(&path);
    let script = "
db = open(sys.argv[2])
db.execute('UPDATE t SET v = v + 1')
db.execute('BEGIN IMMEDIATE')
db.execute('UPDATE t SET v = v + 1')
for way in ['close', 'exit', 'use']:
    child = os.fork()
    if child == 0:
        try:
            if way == 'close':
                db.rollback()
                db.close()
            if way == 'use':
                db.execute('UPDATE t SET v = 1000')
                db.commit()
        except sqlite3.Error as error:
            say('child', error)
        os._exit(0)
    os.waitpid(child, 0)
    # Still ours: nobody else gets the write lock.
    other = os.fork()
    if other == 0:
        mine = open(sys.argv[2])
        mine.execute('PRAGMA busy_timeout = 0')
        try:
            mine.execute('UPDATE t SET v = 2000')
        except sqlite3.OperationalError as error:
            os._exit(0 if 'locked' in str(error) else 2)
        os._exit(1)
    assert os.waitpid(other, 0)[1] == 0, way
db.execute('COMMIT')
assert db.execute('SELECT v FROM t').fetchone() == (2,), db.execute('SELECT v FROM t').fetchone()
db.execute('UPDATE t SET v = v + 1')
assert db.execute('PRAGMA integrity_check').fetchone() == ('ok',)
db.close()
";
    if played(script, &path) {
        assert_eq!(suite::one::<i64>(&at_rest(&path), "SELECT v FROM t"), 3);
    }
}

/// As `multiprocessing` does: a pool is forked from a process that has a snapshot open.
#[test]
fn when_the_parent_reads() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    made(&path);
    let script = "
db = open(sys.argv[2])
db.execute('BEGIN')
assert db.execute('SELECT v FROM t').fetchone() == (0,)
for _ in range(4):
    child = os.fork()
    if child == 0:
        mine = open(sys.argv[2])
        for _ in range(10):
            mine.execute('UPDATE t SET v = v + 1')
        mine.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert db.execute('SELECT v FROM t').fetchone() == (0,)
db.execute('COMMIT')
assert db.execute('SELECT v FROM t').fetchone() == (40,)
db.execute('UPDATE t SET v = v + 1')
db.close()
";
    if played(script, &path) {
        assert_eq!(suite::one::<i64>(&at_rest(&path), "SELECT v FROM t"), 41);
    }
}

/// F16: the child shares the parent's file descriptions; it must not keep the locks on them for a
/// parent that dies.
#[test]
fn when_the_parent_is_killed_in_a_transaction_and_a_child_lives_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    made(&path);
    let script = "
import signal, time
db = open(sys.argv[2])
db.execute('UPDATE t SET v = 7')
db.execute('BEGIN IMMEDIATE')
db.execute('UPDATE t SET v = 1000')
child = os.fork()
if child == 0:
    time.sleep(600)
    os._exit(0)
say('child', child)
os.kill(os.getpid(), signal.SIGKILL)
";
    let Some(mut command) = python(script, &[&path]) else { return };
    let mut parent = Role::spawn(&mut command);
    let child = nix::unistd::Pid::from_raw(parent.hear("child").parse().unwrap());
    parent.kill();
    let db = suite::open(&path);
    db.busy_timeout(std::time::Duration::from_secs(5)).unwrap();
    assert_eq!(suite::one::<i64>(&db, "SELECT v FROM t"), 7);
    let written = db.execute("UPDATE t SET v = v + 1", []);
    drop(db);
    nix::sys::signal::kill(child, nix::sys::signal::Signal::SIGKILL).unwrap();
    assert_eq!(written, Ok(1));
    assert_eq!(suite::one::<i64>(&at_rest(&path), "SELECT v FROM t"), 8);
}
