//! FT17: a transaction that is under way at `fork()` is the parent's. In the child it fails until
//! it is ended there, and nothing is wrong with the database: it must not be called malformed, as
//! some hosts delete a database that is. After that the connection works.

mod suite;

use std::path::Path;

use dash_testing::roles::python;
use suite::sql::{at_rest, run};

const SCRIPT: &str = "
path, more = sys.argv[2], sys.argv[3]
db = open(path, more)
db.execute('PRAGMA cache_size = 5')
list(db.execute('SELECT count(*) FROM t'))

def in_child(what, *statements, after=lambda: None):
    child = os.fork()
    if child == 0:
        try:
            for statement in statements:
                statement()
            say('wrong', what + ' worked')
        except sqlite3.Error as error:
            last = scratch.execute('SELECT dash_last_error()').fetchone()[0]
            good = str(last).endswith('app.db was opened before fork(); open it again in this process')
            plain = str(error) in ('unable to open database file', last)
            say('right' if good and plain else 'wrong', what + ': ' + str(error) + '; ' + str(last))
        try:
            after()
        except BaseException as error:
            say('wrong', what + ', afterwards: ' + repr(error))
        db.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, what

def run(sql):
    return lambda: db.execute(sql).fetchall()

def count():
    return db.execute('SELECT count(*) FROM t').fetchone()[0]

def works(rows, writes=True):
    def check():
        if db.in_transaction:
            db.execute('ROLLBACK')
        assert count() == rows, count()
        assert db.execute('PRAGMA integrity_check').fetchone() == ('ok',)
        if writes and not more:
            db.execute('BEGIN')
            db.execute('INSERT INTO t VALUES (9, 9)')
            db.execute('DELETE FROM t WHERE v = 9')
            db.execute('COMMIT')
    return check

cursor = db.execute('SELECT * FROM t')
cursor.fetchone()
in_child('reading on', cursor.fetchall, after=lambda: (cursor.close(), works(2000)()))
in_child('reading while reading', run('SELECT sum(v) FROM t'), after=lambda: (cursor.close(), works(2000)()))
in_child('leaving while reading', run('PRAGMA journal_mode=delete'))
assert len(cursor.fetchall()) == 1999
if not more:
    db.execute('BEGIN')
    db.execute('INSERT INTO t VALUES (3, 0)')
    in_child('committing', run('COMMIT'), after=works(2000, False))
    in_child('writing on', run('INSERT INTO t SELECT 5, hex(zeroblob(300)) FROM t'), run('COMMIT'), after=works(2000, False))
    db.execute('COMMIT')
    db.execute('BEGIN IMMEDIATE')
    db.execute('DELETE FROM t WHERE v = 3')
    in_child('rolling back', run('SELECT count(*) FROM t'), run('INSERT INTO t VALUES (4, 0)'), run('COMMIT'))
    db.execute('ROLLBACK')
    db.execute('PRAGMA locking_mode=EXCLUSIVE')
    db.execute('UPDATE t SET w = w WHERE v = 3')
    in_child('a lock that is kept', run('SELECT max(w) FROM t'))
    db.execute('PRAGMA locking_mode=NORMAL')
    assert count() == 2001
# Who opens it again has everything.
child = os.fork()
if child == 0:
    mine = open(path, more)
    assert mine.execute('PRAGMA integrity_check').fetchone() == ('ok',)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
db.execute('SELECT count(*) FROM t').fetchall()
db.close()
say('done', 1)
";

fn forked(mode: &str, more: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("app.db");
    let db = suite::open(&path);
    assert_eq!(suite::one::<String>(&db, &format!("PRAGMA journal_mode={mode}")), mode);
    run(
        &db,
        "CREATE TABLE t(v, w); WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 2000) \
         INSERT INTO t SELECT 1, hex(randomblob(100)) FROM c",
    );
    drop(db);
    let Some(mut command) = python(SCRIPT, &[&path, Path::new(more)]) else { return };
    let output = command.output().expect("starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("done: 1") && !said.contains("wrong: "), "{said}");
    let stock = if mode == "wal" { suite::stock(&path) } else { at_rest(&path) };
    let rows = if more.is_empty() { 2001 } else { 2000 };
    assert_eq!(suite::one::<i64>(&stock, "SELECT count(*) FROM t"), rows);
}

#[test]
fn in_mode_shadow() {
    forked("shadow", "");
}

#[test]
fn also_on_a_connection_for_reading_only() {
    forked("shadow", "&mode=ro");
}

#[test]
fn and_in_mode_wal() {
    forked("wal", "");
}
