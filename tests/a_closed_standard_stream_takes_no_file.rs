//! A process that has closed its standard streams, as daemons do, gives none of their numbers to a
//! file of a database: what a library prints would go there.

use std::path::Path;

use dash_testing::roles::python;

const SCRIPT: &str = r#"
import subprocess
path, mode, closed = sys.argv[2], sys.argv[3], sys.argv[4]
for number in closed: os.close(int(number))
db = open(path, '&journal_mode=' + mode)
db.execute('CREATE TABLE t(x)')
def print_all():
    for number in closed:
        try: os.write(int(number), b'a line that a library prints\n' * 200)
        except OSError: pass
for x in range(9):
    db.execute('INSERT INTO t VALUES (?)', (x,))
    print_all()
if os.fork() == 0:
    try:
        db.execute('SELECT count(*) FROM t').fetchall()
        print_all()
    finally: os._exit(0)
os.wait()
db.execute('INSERT INTO t VALUES (9)')
print_all()
db.close()
db = sqlite3.connect(path)
found = db.execute('SELECT count(*) FROM t').fetchone() + db.execute('PRAGMA integrity_check').fetchone()
os._exit(0 if found == (10, 'ok') else 3)
"#;

#[test]
fn whatever_was_closed_before() {
    for mode in ["wal", "shadow", "statement"] {
        for closed in ["0", "2", "12", "012"] {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("app.db");
            let arguments = [&path, Path::new(mode), Path::new(closed)];
            let Some(mut command) = python(SCRIPT, &arguments) else { return };
            let status = command.status().expect("starts");
            assert!(status.success(), "mode {mode}, {closed} closed: {status}");
        }
    }
}

/// A daemon closes them once it has opened what it needs. What a transaction may have to undo then
/// moves to a temporary file: rows that were rolled back were committed.
#[test]
fn and_what_is_closed_later() {
    const SCRIPT: &str = r#"
path = sys.argv[2]
db = sqlite3.connect(path)
db.execute('CREATE TABLE t(i INTEGER PRIMARY KEY, x)')
db.executemany('INSERT INTO t VALUES (?, ?)', ((i, b'a' * 3000) for i in range(3000)))
db.commit()
db.close()
db = open(path)
db.execute('PRAGMA cache_size = 20')
for i in (1, 2, 3): db.execute('UPDATE t SET x = x WHERE i = ?', (i,))
os.close(1)
db.execute('BEGIN')
db.execute('SAVEPOINT s')
db.execute('UPDATE t SET x = ?', (b'b' * 3000,))
try:
    os.write(1, b'a line that a library prints\n' * 3000)
    os._exit(4)
except OSError: pass
for sql in ['ROLLBACK TO s', 'RELEASE s', 'COMMIT']: db.execute(sql)
db.close()
db = sqlite3.connect(path)
found = db.execute("SELECT count(*) FROM t WHERE substr(x, 1, 1) = x'61'").fetchone()
os._exit(0 if found + db.execute('PRAGMA integrity_check').fetchone() == (3000, 'ok') else 3)
"#;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("app.db");
    let Some(mut command) = python(SCRIPT, &[&path]) else { return };
    let status = command.status().expect("starts");
    assert!(status.success(), "{status}");
}
