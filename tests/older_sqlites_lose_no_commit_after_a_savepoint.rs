//! Older versions of SQLite (Debian's 3.40 among them) leave frames without salts and checksum in
//! `-wal` where a savepoint, or a failed statement, is rolled back after its pages were spilled. By
//! themselves they lose that commit and all later ones with the next crash (WAL-19).

use std::path::Path;

use dash_testing::roles::{Role, python};

/// After each commit the files as a crash would leave them are opened by stock SQLite, and by dash.
const SCRIPT: &str = "
import shutil
path, more = sys.argv[2:4]
made, turn = 0, 0
def rows(database):
    return database.execute('SELECT count(*) FROM t').fetchone()[0]
for level, locking in (('FULL', 'NORMAL'), ('NORMAL', 'NORMAL'), ('FULL', 'EXCLUSIVE'), ('NORMAL', 'EXCLUSIVE')):
    db = open(path, '&journal_mode=wal' + more)
    db.execute('PRAGMA synchronous=' + level)
    db.execute('PRAGMA cache_size=10')
    db.execute('PRAGMA wal_autocheckpoint=0')
    db.execute('CREATE TABLE IF NOT EXISTS t(v)')
    db.execute('PRAGMA locking_mode=' + locking)
    insert = 'WITH c(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM c WHERE i < %d) INSERT INTO t SELECT randomblob(1000) FROM c'
    for before, undone, after in ((0, 300, 1), (50, 300, 1), (1, 300, 200), (200, 3, 200), (0, 2000, 1500)):
        db.execute('BEGIN')
        if before: db.execute(insert % before)
        db.execute('SAVEPOINT a')
        db.execute(insert % undone)
        db.execute('ROLLBACK TO a')
        db.execute(insert % after)
        db.execute('COMMIT')
        db.execute('INSERT INTO t VALUES (1)')
        made, turn = made + before + after + 1, turn + 1
        crashed = path + '-%d.db' % turn
        for end in ('', '-wal'):
            shutil.copyfile(path + end, crashed + end)
        stock = sqlite3.connect(crashed)
        assert rows(stock) == made, (level, locking, before, undone, after, rows(stock), made)
        assert stock.execute('PRAGMA integrity_check').fetchone() == ('ok',)
        stock.close()
    if locking == 'NORMAL':
        last = sqlite3.connect(path)
        assert rows(last) == made
        last.close()
    db.close()
say('commits', made)
";

fn files_are_whole(parameters: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("app.db");
    let Some(mut command) = python(SCRIPT, &[Path::new(&path), Path::new(parameters)]) else {
        return;
    };
    let mut role = Role::spawn(&mut command);
    assert_eq!(role.hear("commits"), "8632");
}

#[test]
fn in_its_files_nor_in_ours() {
    files_are_whole("");
}

/// Behind a commit SQLite writes its last frame again then, up to a sector's end, and asks for the
/// flush in the middle of that.
#[test]
fn nor_where_commits_are_padded() {
    files_are_whole("&psow=0");
}
