//! A reader that finds the wal-index unreadable for a moment, as in a forked child, asks for the
//! writer's lock, tries again without it, and sleeps in between: no call of the program's fails,
//! and the error log hears nothing.

mod suite;

use std::path::Path;

use dash_testing::roles::{Role, python};

const SCRIPT: &str = "
db = open(sys.argv[2])
db.execute('PRAGMA journal_mode=' + sys.argv[3]).fetchall()
db.execute('CREATE TABLE t(v)')
for _ in range(10):
    children = []
    for _ in range(4):
        children.append(os.fork())
        if children[-1] == 0:
            try:
                for _ in range(20):
                    db.execute('BEGIN IMMEDIATE')
                    db.execute('INSERT INTO t VALUES (1)')
                    db.execute('COMMIT')
            except BaseException as error:
                say('failed', error)
                os._exit(1)
            os._exit(0)
    for child in children:
        assert os.waitpid(child, 0)[1] == 0
say('rows', db.execute('SELECT count(*) FROM t').fetchone()[0])
";

#[test]
fn nobody_is_told_of_a_lock_that_was_waited_for() {
    for mode in ["wal", "shadow"] {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, heard) = (folder.path().join("app.db"), folder.path().join("heard"));
        let Some(mut command) = python(SCRIPT, &[&path, Path::new(mode)]) else { return };
        let mut role = Role::spawn(command.env("DASH_ERRORS", &heard));
        assert_eq!(role.hear("rows"), "800");
        role.finish();
        let heard = std::fs::read_to_string(heard).unwrap_or_default();
        assert_eq!(heard, "", "in mode {mode}");
        suite::check(&suite::open(&path));
    }
}
