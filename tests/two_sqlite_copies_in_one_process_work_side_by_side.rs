//! Two SQLite libraries in one process that load the same libdash: each gets functions and files of
//! its own copy, both work on one database without falling out of each other's locks (ecosystem 2,
//! 3).

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
uri = 'file:' + sys.argv[2] + '?vfs=dash'
first, other = open(sys.argv[2]), Second(uri)
say('copies', 2)
assert first.execute('SELECT dash_engine()').fetchone() == ('shadow',)
assert other.execute('SELECT dash_engine()') == ['shadow']
assert first.execute('SELECT dash_version()').fetchone()[0] == other.execute('SELECT dash_version()')[0]
";

fn played(script: &str, path: &Path) -> bool {
    run(&suite::open(path), "CREATE TABLE t(v); INSERT INTO t VALUES (0)");
    let Some(mut command) = python(&format!("{SCRIPT}{script}"), &[path]) else { return false };
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
