//! Connections of dash and of stock SQLite to one database, in threads of one process, beside
//! another process: no close of dash's drops a lock that a stock one has, or is about to take. Such
//! a lock was lost where it was taken between the look for it and the close: acknowledged commits
//! went with it, and where `-shm` was cut beneath a mapping, the process.

use std::time::Duration;

use dash_testing::long::moment;
use dash_testing::roles::{Role, python};

const SCRIPT: &str = r#"
import random, subprocess, threading, time
path, mode, until = sys.argv[2], sys.argv[3], time.time() + float(sys.argv[4])
db = open(path, '&journal_mode=' + mode)
db.execute('CREATE TABLE t(id INTEGER PRIMARY KEY, n)')
db.execute('INSERT INTO t VALUES (1, 0), (2, 0)')
db.execute('CREATE TABLE f(id INTEGER PRIMARY KEY, x)')
db.close()
WRITER = '''
import sqlite3, time
def write(path, row, until):
    done, db = 0, None
    while time.time() < until:
        try:
            if db is None:
                db = sqlite3.connect(path, isolation_level=None, timeout=5)
                db.execute('PRAGMA synchronous=0')
                db.execute('PRAGMA wal_autocheckpoint=10')
            db.execute('BEGIN IMMEDIATE')
            db.execute('UPDATE t SET n = n + 1 WHERE id = ?', (row,))
            db.execute('INSERT INTO f(x) VALUES (zeroblob(700))')
            db.execute('DELETE FROM f WHERE id = (SELECT max(id) - 50 FROM f)')
            db.execute('COMMIT')
            done += 1
            if done % 5 == 0:
                db.close()
                db = None
        except sqlite3.OperationalError as error:
            if 'locked' not in str(error): raise
            if db and db.in_transaction: db.execute('ROLLBACK')
            time.sleep(0.002)
    if db: db.close()
    return done
'''
there = WRITER + '''
import sys
print(write(sys.argv[1], 2, float(sys.argv[2])))
'''
other = subprocess.Popen([sys.executable, '-c', there, path, str(until)], stdout=subprocess.PIPE)
exec(WRITER)
done, failed = [0], []
def guarded(work, *arguments):
    try: work(*arguments)
    except Exception as error: failed.append(repr(error))
def here(): done[0] = write(path, 1, until)
def come_and_go(seed):
    draw = random.Random(seed)
    while time.time() < until:
        opened = []
        try:
            for _ in range(draw.choice([1, 1, 5])):
                opened.append(open(path))
                opened[-1].execute('SELECT count(*) FROM t').fetchall()
        except sqlite3.OperationalError as error:
            if 'locked' not in str(error): raise
        for db in opened: db.close()
        time.sleep(draw.random() * 0.004)
threads = [threading.Thread(target=guarded, args=(here,))]
threads += [threading.Thread(target=guarded, args=(come_and_go, seed)) for seed in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
counted = int(other.communicate()[0])
db = sqlite3.connect(path)
found = dict(db.execute('SELECT id, n FROM t'))
say('found', (found, done[0], counted, db.execute('PRAGMA integrity_check').fetchone()[0], failed))
assert found == {1: done[0], 2: counted} and not failed and done[0] > 0 and counted > 0
db.close()
open(path).close()
def link(number):
    try: return os.readlink('/proc/self/fd/' + number)
    except OSError: return ''
say('left', [link(number) for number in os.listdir('/proc/self/fd') if path in link(number)])
"#;

fn beside_dash(mode: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("app.db");
    let seconds = moment(Duration::from_secs(3), Duration::from_secs(6)).as_secs().to_string();
    let arguments = [&path, std::path::Path::new(mode), std::path::Path::new(&seconds)];
    let Some(mut command) = python(SCRIPT, &arguments) else { return };
    let mut role = Role::spawn(&mut command);
    let found = role.hear("found");
    assert!(found.contains("'ok'"), "{found}");
    assert_eq!(role.hear("left"), "[]", "descriptors that are left open");
    role.finish();
}

#[test]
fn beside_those_of_mode_wal() {
    beside_dash("wal");
}

#[test]
fn beside_those_of_mode_shadow() {
    beside_dash("shadow");
}

/// Page 1 was read past the descriptors that dash looks after, and closing dropped the locks: here
/// of a database that is refused for its checksum of `cksumvfs`.
#[test]
fn where_a_database_is_looked_at_before_it_is_put_into_wal_mode() {
    const ASKED: &str = r#"
import io, struct
path = sys.argv[2]
sqlite3.connect(path, isolation_level=None).execute('PRAGMA user_version=1')
page = bytearray(io.open(path, 'rb').read())
page[20], page[105:107] = 8, (4096 - 8).to_bytes(2, 'big')
a = b = 0
for x, y in struct.iter_unpack('<II', page[:-8]):
    a = a + x + b & 0xffffffff
    b = b + y + a & 0xffffffff
page[-8:] = struct.pack('<II', a, b)
io.open(path, 'wb').write(page)
stock = sqlite3.connect(path, isolation_level=None)
stock.execute('BEGIN')
stock.execute('SELECT * FROM sqlite_master').fetchall()
def locks():
    # A set: a line comes twice where others lock and unlock meanwhile.
    with io.open('/proc/locks') as all:
        return {line.split(': ')[1] for line in all if f' {os.getpid()} ' in line and 'POSIX' in line}
own = locks()
assert own
try:
    open(path, '&journal_mode=wal').execute('PRAGMA user_version').fetchall()
    said = None
except sqlite3.OperationalError: said = scratch.execute('SELECT dash_last_error()').fetchone()[0]
assert said and 'cksumvfs' in said, said
assert own <= locks(), (own, locks())
os._exit(0)
"#;
    let folder = tempfile::tempdir().expect("a folder");
    let Some(mut command) = python(ASKED, &[&folder.path().join("app.db")]) else { return };
    Role::spawn(&mut command).finish();
}
