//! A server opens its database, reads and writes, and forks its workers, which go on with that
//! connection while the server writes, too. Some are killed. Nothing that was acknowledged is lost.

mod suite;

use std::path::Path;

use dash_testing::roles::{Role, python};
use suite::sql::run;

/// A child says each row that was committed; the parent reads what it said, also of one that was
/// killed.
const SCRIPT: &str = "
import random, signal, threading, time
path, mode, rounds = sys.argv[2], sys.argv[3], int(sys.argv[4])
WORKERS, ROWS = 8, 200
db = sqlite3.connect('file:' + path + '?vfs=dash', uri=True, isolation_level=None, timeout=60, check_same_thread=False)
db.execute('SELECT count(*) FROM t').fetchone()
acknowledged = []
# Held by a thread that is inside SQLite, whose own locks are no other at a fork: it must not have
# one there. Those of dash's threads are dash's business.
stop, calm = False, threading.Lock()
def work(number):
    mine = None
    row = 0
    while not stop:
        row += 1
        with calm:
            mine = mine or open(path)
            mine.execute('INSERT INTO t VALUES (?, ?)', (-number, row))
            acknowledged.append((-number, row))
        with calm:
            mine.execute('SELECT max(row) FROM t').fetchone()
            if number % 10 == 1:
                mine.close()
                mine = None
        time.sleep(0.002)
def worker(number, said):
    for row in range(ROWS):
        db.execute('INSERT INTO t VALUES (?, ?)', (number, row))
        os.write(said, row.to_bytes(2, 'big'))
        if row % 20 == 0:
            assert db.execute('SELECT count(*) FROM t WHERE worker = ?', (number,)).fetchone()[0] == row + 1
    assert db.execute('PRAGMA quick_check').fetchone() == ('ok',)
    db.close()
number = 0
for turn in range(rounds):
    stop = False
    threads = [threading.Thread(target=work, args=(10 * turn + i + 1,)) for i in range(3)]
    for thread in threads:
        thread.start()
    time.sleep(0.05)
    workers = []
    for _ in range(WORKERS):
        number += 1
        hears, said = os.pipe()
        with calm:
            child = os.fork()
        if child == 0:
            os.close(hears)
            try:
                worker(number, said)
            except BaseException as error:
                last = scratch.execute('SELECT dash_last_error()').fetchone()[0]
                print('worker', number, repr(error), last, file=sys.stderr, flush=True)
                os._exit(1)
            os._exit(0)
        os.close(said)
        workers.append((number, child, hears))
    for row in range(100):
        db.execute('INSERT INTO t VALUES (?, ?)', (0, turn * 100 + row))
        acknowledged.append((0, turn * 100 + row))
    killed = {child for _, child, _ in workers[:3]}
    for child in killed:
        time.sleep(random.random() * 0.05)
        os.kill(child, signal.SIGKILL)
    for worked, child, hears in workers:
        heard = b''
        while part := os.read(hears, 65536):
            heard += part
        os.close(hears)
        status = os.waitpid(child, 0)[1]
        assert status == 0 or child in killed and status == signal.SIGKILL, (worked, status)
        assert status or len(heard) == 2 * ROWS
        acknowledged += [(worked, int.from_bytes(heard[at:at + 2], 'big')) for at in range(0, len(heard), 2)]
    stop = True
    for thread in threads:
        thread.join()
    there = set(db.execute('SELECT worker, row FROM t'))
    missing = set(acknowledged) - there
    assert not missing, sorted(missing)[:10]
    # One more of each that was killed may be there, committed and not yet said; and the first row.
    assert len(there) <= len(acknowledged) + 3 * (turn + 1) + 1, (len(there), len(acknowledged))
    assert db.execute('SELECT count(*) FROM t').fetchone()[0] == len(there)
    assert db.execute('PRAGMA integrity_check').fetchone() == ('ok',)
db.close()
stock = sqlite3.connect(path)
assert stock.execute('PRAGMA integrity_check').fetchone() == ('ok',)
assert set(stock.execute('SELECT worker, row FROM t')) == there
";

fn preloaded(mode: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("app.db");
    let db = suite::open(&path);
    assert_eq!(suite::one::<String>(&db, &format!("PRAGMA journal_mode={mode}")), mode);
    run(&db, "CREATE TABLE t(worker, row); INSERT INTO t VALUES (0, -1)");
    drop(db);
    let rounds = dash_testing::long::moment("2", "8");
    let arguments = [&path, Path::new(mode), Path::new(rounds)];
    let Some(mut command) = python(SCRIPT, &arguments) else { return };
    Role::spawn(&mut command).finish();
}

#[test]
fn in_mode_shadow() {
    preloaded("shadow");
}

#[test]
fn in_mode_wal() {
    preloaded("wal");
}
