//! A handler of a signal that calls `exit` does so in the middle of anything, such as `malloc`:
//! what is brought to rest at the end of the process needs the lock that has been interrupted
//! there, and the process hung for ever.

mod suite;

use dash_testing::roles::{Role, python};

/// The C library holds the lock of its memory nearly all of the time while it gives free memory
/// back. `mode` is what the database is opened with.
fn a_process_ends(mode: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("app.db");
    let script = "
import ctypes, signal, time
def interrupted():
    db = open(sys.argv[2])
    db.execute(sys.argv[3]).fetchall()
    db.execute('CREATE TABLE IF NOT EXISTS t(v)')
    for _ in range(5):
        db.execute('INSERT INTO t VALUES (zeroblob(3000))')
        db.commit()
    c = ctypes.CDLL(None)
    c.malloc.restype, c.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    blocks = [c.malloc(9000) for _ in range(20000)]
    for block in blocks[::2]:
        c.free(block)
    c.signal.argtypes = [ctypes.c_int, ctypes.c_void_p]
    c.signal(signal.SIGALRM, ctypes.cast(c.exit, ctypes.c_void_p))
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    while True:
        c.malloc_trim(0)
ended = 0
for _ in range(5):
    child = os.fork()
    if child == 0:
        interrupted()
    deadline = time.time() + 60
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.time() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            break
        time.sleep(0.001)
    else:
        ended += 1
        continue
    break
say('ended', ended)
";
    let Some(mut command) = python(script, &[&path]) else { return };
    command.arg(mode);
    let mut parent = Role::spawn(&mut command);
    assert_eq!(parent.hear("ended"), "5");
    parent.finish();
    suite::check(&suite::open(&path));
}

#[test]
fn in_mode_shadow() {
    a_process_ends("PRAGMA user_version");
}

#[test]
fn in_mode_wal() {
    a_process_ends("PRAGMA journal_mode=WAL");
}

/// A program whose threads all end, the main one before others, ends with the last: a thread of
/// dash that waited for work for good kept it there.
#[test]
fn nor_one_that_ends_with_its_last_thread() {
    for mode in ["PRAGMA user_version", "PRAGMA journal_mode=WAL"] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("app.db");
        let script = "
import ctypes, signal, time
child = os.fork()
if child == 0:
    db = open(sys.argv[2], '&dash_rest=10')
    db.execute(sys.argv[3]).fetchall()
    db.execute('CREATE TABLE IF NOT EXISTS t(v)')
    db.commit()
    ctypes.CDLL(None).pthread_exit(None)
deadline = time.time() + 60
while os.waitpid(child, os.WNOHANG) == (0, 0):
    if time.time() > deadline:
        os.kill(child, signal.SIGKILL)
        break
    time.sleep(0.001)
say('in time', time.time() < deadline)
";
        let Some(mut command) = python(script, &[&path]) else { return };
        command.arg(mode);
        let mut parent = Role::spawn(&mut command);
        assert_eq!(parent.hear("in time"), "True", "{mode}");
        parent.finish();
        suite::check(&suite::open(&path));
    }
}
