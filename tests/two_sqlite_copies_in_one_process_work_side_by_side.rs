//! Two SQLite libraries in one process that load the same libdash: each gets functions and files of
//! its own copy, both work on one database without falling out of each other's locks (ecosystem 2,
//! 3), in dash's modes and in SQLite's rollback modes.

mod suite;

use std::path::Path;

use dash_testing::roles::{Role, python};
use dash_testing::{Need, skip};
use suite::sql::{at_rest, run};

/// `second` is a library with a copy of SQLite: the one that Python uses under another name, so
/// that the dynamic linker loads it again.
const SCRIPT: &str = r"
import ctypes, shutil, tempfile, threading
maps = [line.split()[-1] for line in __builtins__.open('/proc/self/maps') if 'libsqlite3' in line]
if not maps:
    sys.exit() # it is no library of its own here
folder = tempfile.mkdtemp()
second = shutil.copy(maps[0], folder + '/libsecond.so')
lib = ctypes.CDLL(second)
shutil.rmtree(folder)
lib.sqlite3_errmsg.restype = ctypes.c_char_p
lib.sqlite3_column_text.restype = ctypes.c_char_p

class Second:
    'The least of a driver for the second copy.'
    def __init__(self, name):
        self.db = ctypes.c_void_p()
        self.must(lib.sqlite3_open_v2(name.encode(), ctypes.byref(self.db), 0x46, None))
        lib.sqlite3_busy_timeout(self.db, 30000)
    def must(self, code):
        if code:
            raise RuntimeError('%d: %s' % (code, lib.sqlite3_errmsg(self.db).decode()))
    def execute(self, sql):
        statement, rows = ctypes.c_void_p(), []
        self.must(lib.sqlite3_prepare_v2(self.db, sql.encode(), -1, ctypes.byref(statement), None))
        while (code := lib.sqlite3_step(statement)) == 100:
            rows.append((lib.sqlite3_column_text(statement, 0) or b'').decode())
        lib.sqlite3_finalize(statement)
        self.must(0 if code == 101 else code)
        return rows
    def close(self):
        self.must(lib.sqlite3_close(self.db))

outer = Second(':memory:')
outer.must(lib.sqlite3_enable_load_extension(outer.db, 1))
outer.must(lib.sqlite3_load_extension(outer.db, sys.argv[1].encode(), None, None))
more = '&journal_mode=delete' if ENGINE == 'plain' else ''
uri = 'file:' + sys.argv[2] + '?vfs=dash' + more
first, other = open(sys.argv[2], more), Second(uri)
say('copies', 2)
assert first.execute('SELECT dash_engine()').fetchone() == (ENGINE,)
assert other.execute('SELECT dash_engine()') == [ENGINE]
assert first.execute('SELECT dash_version()').fetchone()[0] == other.execute('SELECT dash_version()')[0]
";

fn played(script: &str, path: &Path) -> bool {
    played_in("shadow", script, path)
}

fn played_in(engine: &str, script: &str, path: &Path) -> bool {
    run(&suite::open(path), "CREATE TABLE t(v); INSERT INTO t VALUES (0)");
    let script = format!("ENGINE = '{engine}'\n{SCRIPT}{script}");
    let Some(mut command) = python(&script, &[path]) else { return false };
    let mut role = Role::spawn(&mut command);
    let both = role.listen("copies").is_some();
    role.finish();
    if !both {
        skip(Need::Libsqlite3, "Python's sqlite3 has its SQLite linked in");
    }
    both
}

#[test]
fn and_write_in_turn() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let script = "
for number in range(30):
    first.execute('UPDATE t SET v = v + 1')
    assert other.execute('SELECT v FROM t') == [str(2 * number + 1)]
    other.execute('UPDATE t SET v = v + 1')
    assert first.execute('SELECT v FROM t').fetchone() == (2 * number + 2,)
third = open(sys.argv[2])
fourth = Second(uri)
for db in (third, other, fourth, first):
    db.execute('UPDATE t SET v = v + 1')
    db.close()
";
    if played(script, &path) {
        assert_eq!(suite::one::<i64>(&at_rest(&path), "SELECT v FROM t"), 64);
    }
}

#[test]
fn and_respect_each_others_locks() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let script = "
first.execute('BEGIN IMMEDIATE')
first.execute('UPDATE t SET v = 5')
lib.sqlite3_busy_timeout(other.db, 0)
try:
    other.execute('UPDATE t SET v = 100')
    sys.exit('the write lock was not respected')
except RuntimeError as error:
    assert error.args[0].startswith('5:'), error
# Closing in one copy takes no lock from the other, also not when that is stock SQLite (no dash) in this process.
other.close()
plain = Second('file:' + sys.argv[2] + '?vfs=unix')
lib.sqlite3_busy_timeout(plain.db, 0)
assert plain.execute('SELECT v FROM t') == ['0']
try:
    plain.execute('UPDATE t SET v = 100')
    sys.exit('stock SQLite wrote')
except RuntimeError as error:
    assert 'locked' in error.args[0] or 'readonly' in error.args[0], error
plain.close()
child = os.fork()
if child == 0:
    mine = open(sys.argv[2])
    mine.execute('PRAGMA busy_timeout = 0')
    try:
        mine.execute('UPDATE t SET v = 100')
    except sqlite3.OperationalError:
        os._exit(0)
    os._exit(1)
assert os.waitpid(child, 0)[1] == 0
first.execute('COMMIT')
first.close()
";
    if played(script, &path) {
        assert_eq!(suite::one::<i64>(&at_rest(&path), "SELECT v FROM t"), 5);
    }
}

#[test]
fn and_count_in_threads() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let script = "
def count(connect):
    db = connect()
    for _ in range(50):
        db.execute('UPDATE t SET v = v + 1')
    db.close()
threads = [threading.Thread(target=count, args=(connect,))
    for connect in (lambda: open(sys.argv[2]), lambda: Second(uri)) for _ in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert other.execute('PRAGMA integrity_check') == ['ok']
assert first.execute('SELECT v FROM t').fetchone() == (200,)
first.close()
other.close()
";
    if played(script, &path) {
        assert_eq!(suite::one::<i64>(&at_rest(&path), "SELECT v FROM t"), 200);
    }
}

/// Its journal is no hot one, though POSIX locks of one process are in nobody's way.
#[test]
fn a_stock_transaction_of_the_second_copy_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let script = "
first.close()
other.close()
stock = Second('file:' + sys.argv[2] + '?vfs=unix')
stock.execute('BEGIN IMMEDIATE')
stock.execute('UPDATE t SET v = 7')
for sql in ('SELECT v FROM t', 'UPDATE t SET v = 9'):
    try:
        open(sys.argv[2]).execute(sql)
        sys.exit('it was taken for one that a crash had left')
    except sqlite3.OperationalError as error:
        assert 'locked' in str(error), error
stock.execute('COMMIT')
stock.close()
";
    if played(script, &path) {
        assert_eq!(suite::one::<i64>(&at_rest(&path), "SELECT v FROM t"), 7);
    }
}

/// A close of the one copy's drops the POSIX locks that the other one has: so none of them may be
/// one.
#[test]
fn and_keep_their_locks_in_rollback_mode() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let script = "
for number in range(20):
    first.execute('UPDATE t SET v = v + 1')
    assert other.execute('SELECT v FROM t') == [str(2 * number + 1)]
    other.execute('UPDATE t SET v = v + 1')
    assert first.execute('SELECT v FROM t').fetchone() == (2 * number + 2,)
def refused(what, script):
    child = '''
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=0)
try:
    db.execute(sys.argv[2])
except sqlite3.OperationalError as error:
    sys.exit('locked' not in str(error))
sys.exit(1)'''
    import subprocess
    subprocess.run([sys.executable, '-c', child, sys.argv[2], script], check=True)
    lib.sqlite3_busy_timeout(what.db, 0)
    try:
        what.execute(script)
        sys.exit('a lock was not respected')
    except RuntimeError as error:
        assert error.args[0].startswith('5:'), error
    lib.sqlite3_busy_timeout(what.db, 30000)
stock = Second('file:' + sys.argv[2] + '?vfs=unix')
first.execute('BEGIN IMMEDIATE')
first.execute('UPDATE t SET v = v + 1')
for connection in (other, stock):
    refused(connection, 'BEGIN IMMEDIATE')
# Both copies open and close it, through dash and without.
for name in (uri, 'file:' + sys.argv[2] + '?vfs=unix'):
    passing = Second(name)
    assert passing.execute('SELECT v FROM t') == ['40']
    passing.close()
passing = sqlite3.connect(sys.argv[2])
assert passing.execute('SELECT v FROM t').fetchone() == (40,)
passing.close()
refused(other, 'BEGIN IMMEDIATE')
other.close()
refused(stock, 'BEGIN IMMEDIATE')
first.execute('COMMIT')
# A stock connection of the second copy keeps its locks whatever dash closes.
stock.execute('BEGIN IMMEDIATE')
stock.execute('UPDATE t SET v = v + 1')
for _ in range(3):
    passing = Second(uri)
    assert passing.execute('SELECT v FROM t') == ['41']
    passing.close()
    open(sys.argv[2], more).close()
other = Second(uri)
refused(other, 'BEGIN IMMEDIATE')
stock.execute('COMMIT')
for db in (first, other, stock):
    db.execute('UPDATE t SET v = v + 1')
    db.close()
";
    if played_in("plain", script, &path) {
        assert_eq!(suite::one::<i64>(&at_rest(&path), "SELECT v FROM t"), 45);
    }
}

#[test]
fn and_lose_no_commit_in_rollback_mode() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let script = "
acknowledged = [0] * 4
def count(place, connect):
    db = connect()
    for _ in range(40):
        db.execute('BEGIN IMMEDIATE')
        db.execute('UPDATE t SET v = v + 1')
        db.execute('COMMIT')
        acknowledged[place] += 1
    db.close()
def come_and_go():
    while any(thread.is_alive() for thread in threads):
        for connect in (lambda: open(sys.argv[2], more), lambda: Second(uri)):
            db = connect()
            db.execute('SELECT v FROM t')
            db.close()
connects = [lambda: open(sys.argv[2], more), lambda: Second(uri)] * 2
threads = [threading.Thread(target=count, args=it) for it in enumerate(connects)]
for thread in threads: thread.start()
come_and_go()
for thread in threads: thread.join()
assert acknowledged == [40] * 4, acknowledged
assert other.execute('PRAGMA integrity_check') == ['ok']
assert first.execute('SELECT v FROM t').fetchone() == (160,)
first.close()
other.close()
";
    if played_in("plain", script, &path) {
        assert_eq!(suite::one::<i64>(&at_rest(&path), "SELECT v FROM t"), 160);
    }
}
