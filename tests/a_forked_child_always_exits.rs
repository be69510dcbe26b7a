//! SEC5: where a thread of dash closed databases, one of sixty forked children hung in `exit()` for
//! ever, at a lock that another thread of the parent held at the fork.

mod suite;

use dash_testing::roles::{Role, python};
use suite::sql::run;

#[test]
fn a_forked_child_always_exits() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("app.db");
    run(&suite::open(&path), "CREATE TABLE t(v); INSERT INTO t VALUES (0)");
    let script = "
import signal, threading, time
stop = False
def come_and_go(file):
    while not stop:
        db = open(file, '&dash_rest=20')
        db.execute('UPDATE t SET v = v + 1')
        db.commit()
        db.close()
threads = [threading.Thread(target=come_and_go, args=(sys.argv[2],)) for _ in range(3)]
for thread in threads:
    thread.start()
time.sleep(0.1)
hung = 0
for _ in range(400):
    child = os.fork()
    if child == 0:
        # As `sys.exit` in a child does in the end, with the C library's handlers.
        import ctypes
        ctypes.CDLL(None).exit(0)
    deadline = time.time() + 20
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.time() > deadline:
            hung += 1
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            break
        time.sleep(0.0005)
    if hung:
        break
stop = True
for thread in threads:
    thread.join()
say('hung', hung)
";
    let Some(mut command) = python(script, &[&path]) else { return };
    let mut parent = Role::spawn(&mut command);
    assert_eq!(parent.hear("hung"), "0");
    parent.finish();
}
