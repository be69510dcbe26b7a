//! A process that may write small files only (`ulimit -f`) is not ended because dash's log would be
//! longer than that: commits become durable without it, and those that `-wal` has no room for fail.
//! Nor does it end because it reads a database in mode shadow, whose shared memory takes more: then
//! it reads as one that may only read.

use dash_testing::roles::{Role, python};
use tempfile::TempDir;

const SCRIPT: &str = "
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_DFL) # as in any other program
resource.setrlimit(resource.RLIMIT_FSIZE, (200000, 200000))
db = open(sys.argv[2], '&journal_mode=wal')
db.execute('PRAGMA synchronous=FULL')
db.execute('CREATE TABLE t(v)')
for i in range(12): db.execute('INSERT INTO t VALUES (1)')
say('rows', db.execute('SELECT count(*) FROM t').fetchone()[0])
db.close()
say('closed')
";

/// A process that runs a script, and the folder that its database is in.
fn host(script: &str) -> Option<(Role, TempDir)> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("app.db");
    Some((Role::spawn(&mut python(script, &[&path])?), folder))
}

#[test]
fn that_uses_mode_wal() {
    let Some((mut role, _folder)) = host(SCRIPT) else { return };
    assert_eq!(role.hear("rows"), "12");
    role.hear("closed");
}

const IN_MEMORY: &str = "
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_FSIZE, (200000, 200000))
db = open(sys.argv[2], '&journal_mode=wal&dash_wal=memory')
db.execute('PRAGMA synchronous=FULL')
db.execute('CREATE TABLE t(v)')
rows = 0
try:
    for i in range(100):
        db.execute('INSERT INTO t VALUES (randomblob(3000))')
        rows += 1
except Exception as error: say('refused', error)
assert db.execute('SELECT count(*) FROM t').fetchone()[0] == rows
db.execute('PRAGMA wal_checkpoint(TRUNCATE)')
db.execute('INSERT INTO t VALUES (1)')
say('goes', 'on')
db.close()
say('closed')
";

/// The transaction that has no room fails, and not the flush that would make it durable: nothing is
/// in doubt, and the connection goes on.
#[test]
fn that_has_the_log_of_sqlite_in_memory() {
    let Some((mut role, _folder)) = host(IN_MEMORY) else { return };
    role.hear("refused");
    role.hear("goes");
    role.hear("closed");
}

const READS: &str = "
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
db = open(sys.argv[2])
db.execute('CREATE TABLE t(v)')
db.execute('INSERT INTO t VALUES (1)')
db.close()
resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))
db = open(sys.argv[2])
for i in range(2):
    say('rows', db.execute('SELECT count(*) FROM t').fetchone()[0])
    try: db.execute('INSERT INTO t VALUES (2)')
    except Exception as error: say('refused', error)
db.close()
say('closed')
";

#[test]
fn that_reads_in_mode_shadow() {
    let Some((mut role, _folder)) = host(READS) else { return };
    for _ in 0..2 {
        assert_eq!(role.hear("rows"), "1");
        role.hear("refused");
    }
    role.hear("closed");
}

const SHADOW: &str = "
import resource, signal
db = sqlite3.connect(sys.argv[2])
db.execute('CREATE TABLE t(x)')
db.executemany('INSERT INTO t VALUES (?)', ((b'a' * 3000,) for _ in range(1000)))
db.commit()
db.close()
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
limit = os.stat(sys.argv[2]).st_size + int(sys.argv[3])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
db = open(sys.argv[2])
try:
    db.execute('UPDATE t SET x = ? WHERE rowid < 3', (b'c' * 3000,))
    say('committed')
except Exception as error: say('refused', error)
db.execute('SELECT count(*) FROM t').fetchone()
db.close()
say('closed')
";

/// Its second copy takes some more than the database, and is made longer than that where it may be.
#[test]
fn that_uses_mode_shadow() {
    for (more, answer) in [("500000", "committed"), ("0", "refused")] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("app.db");
        let Some(mut command) = python(SHADOW, &[&path]) else { return };
        command.arg(more);
        let mut role = Role::spawn(&mut command);
        role.hear(answer);
        role.hear("closed");
    }
}
