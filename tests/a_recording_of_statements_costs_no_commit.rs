//! Recording what commits ran depends on the host: on its SQLite, on its own trace hook, on when it
//! loads the extension. Whatever it does, commits are as they were, and the record says what it
//! lacks.

use std::path::Path;
use std::process::Command;

use dash_testing::extension::library;
use dash_testing::roles::{LOADS_EXTENSIONS, Role, python, python_that_runs};

fn run(command: &mut Command) {
    let mut role = Role::spawn(command);
    assert_eq!(role.hear("done"), "1");
}

/// Python's own hook shows each statement with its values.
const TAKEN: &str = "
path = sys.argv[2]
db = open(path, '&journal_mode=wal&dash_statements=on')
db.execute('CREATE TABLE t(a, b)')
def newest(columns):
    return db.execute('SELECT ' + columns + ' FROM dash_statements WHERE commit_number = (SELECT max(commit_number) FROM dash_statements)').fetchall()
db.execute('INSERT INTO t VALUES (?, ?)', (0.1 + 0.2, -5))
assert newest('sql, parameters, reason') == [('INSERT INTO t VALUES (?, ?)', '3.0000000000000004e-1, -5', None)], newest('*')
seen = []
db.set_trace_callback(seen.append)
db.execute('INSERT INTO t VALUES (?, ?)', (1, 2))
db.enable_load_extension(True)
db.load_extension(sys.argv[1]) # once more: the hook stays the host's
db.execute('BEGIN')
db.execute('UPDATE t SET b = b - ?', (1,))
db.execute('COMMIT')
db.set_trace_callback(None)
db.execute('DELETE FROM t WHERE a = ?', (7,))
db.execute('INSERT INTO t VALUES (3, 4)')
assert any(text.startswith('UPDATE t') for text in seen), seen
assert newest('sql, reason') == [(None, 'the host has taken the trace hook, by which statements are seen')], newest('*')
assert not any('SELECT ?1' in text for text in seen), seen
db.close()
stock = sqlite3.connect(path)
assert stock.execute('SELECT * FROM t').fetchall() == [(0.1 + 0.2, -6), (1, 1), (3, 4)]
say('done', 1)
";

#[test]
fn where_the_host_takes_the_trace_hook() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(mut command) = python(TAKEN, &[&folder.path().join("app.db")]) else { return };
    run(&mut command);
}

/// The extension is loaded on the connection that attaches the database, and that has a hook.
const BEFORE: &str = "
import sqlite3, sys
db = sqlite3.connect(sys.argv[2], isolation_level=None, uri=True)
seen = []
db.set_trace_callback(seen.append)
db.enable_load_extension(True)
db.load_extension(sys.argv[1])
db.execute('ATTACH ? AS a', ('file:' + sys.argv[3] + '?vfs=dash&journal_mode=wal&dash_statements=on',))
db.execute('CREATE TABLE a.t(x)')
db.execute('INSERT INTO a.t VALUES (?)', (1,))
assert any(text.startswith('INSERT INTO a.t') for text in seen), seen
found = db.execute(\"SELECT DISTINCT connection, sql, reason FROM dash_statements('a')\").fetchall()
(connection, sql, reason), = found
assert (connection, sql) == (None, None) and 'opened before the extension was loaded' in reason, found
assert db.execute('SELECT count(*) FROM a.t').fetchone() == (1,)
print('done: 1', flush=True)
";

#[test]
fn where_the_connection_was_there_before_the_extension() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(python) = python_that_runs(LOADS_EXTENSIONS) else { return };
    let path = |name: &str| folder.path().join(name);
    let mut command = Command::new(python);
    command.arg("-c").arg(BEFORE).arg(library()).args([path("stock.db"), path("app.db")]);
    run(&mut command);
}

/// A connection that is inherited records in the child, too, each process for itself.
const FORKED: &str = "
db = open(sys.argv[2], '&journal_mode=wal&dash_statements=on')
db.execute('CREATE TABLE t(a)')
newest = 'SELECT sql, parameters, reason FROM dash_statements LIMIT 1'
def insert(value):
    db.execute('INSERT INTO t VALUES (?)', (value,))
    found = db.execute(newest).fetchone()
    assert found == ('INSERT INTO t VALUES (?)', str(value), None), found
insert(1)
child = os.fork()
if child == 0:
    insert(2)
    insert(3)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
found = db.execute(newest).fetchone()
assert found[1] == '1', found
insert(4)
assert db.execute('SELECT count(*) FROM t').fetchone() == (4,)
say('done', 1)
";

#[test]
fn where_the_host_forks() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(mut command) = python(FORKED, &[&folder.path().join("app.db")]) else { return };
    run(&mut command);
}

/// The same statements with and without a record, by the SQLite of this Python: same content.
const SAME: &str = "
import random
path = sys.argv[2]
def fill(name, more):
    db = open(path + name, '&journal_mode=wal' + more)
    db.executescript('CREATE TABLE t(id INTEGER PRIMARY KEY, a, b UNIQUE); CREATE INDEX i ON t(a); CREATE TABLE log(x); CREATE VIRTUAL TABLE f USING fts5(x); CREATE TRIGGER g AFTER UPDATE ON t BEGIN INSERT INTO log VALUES (old.a); END; CREATE TABLE s(x)')
    chance = random.Random(7)
    failed = 0
    for turn in range(400):
        number, word = chance.randrange(60), chance.choice(['ab', 'abc%', 'x', 'y' * 3000])
        statements = [
            ('INSERT INTO t(a, b) VALUES (?, ?)', (word, number)),
            ('INSERT OR REPLACE INTO t(a, b) VALUES (?, ?)', (number / 7, number)),
            ('UPDATE t SET a = a || ? WHERE a LIKE ?', (word, 'ab%')),
            ('INSERT INTO t(a) SELECT b FROM t WHERE b < ? ORDER BY id LIMIT ?', (number, 3)),
            ('DELETE FROM t WHERE id IN (SELECT id FROM t LIMIT ?)', (number % 3,)),
            ('INSERT INTO f VALUES (?)', (word,)),
            ('INSERT INTO t(a, b) VALUES (?, ?) RETURNING id', (word, number + 100)),
            ('CREATE TABLE IF NOT EXISTS v%d(x)' % (number % 5), ()),
            ('DROP TABLE IF EXISTS v%d' % (number % 5), ()),
        ]
        many = chance.randrange(1, 5)
        chosen = [chance.choice(statements) for _ in range(many)]
        grouped, undone = chance.random() < 0.5, chance.random() < 0.3
        if grouped: db.execute('BEGIN')
        if grouped and undone: db.execute('SAVEPOINT a')
        for sql, values in chosen:
            try:
                cursor = db.execute(sql, values)
                if 'RETURNING' in sql: cursor.fetchone()
                cursor.close()
            except sqlite3.IntegrityError:
                failed += 1
        if grouped and undone: db.execute('ROLLBACK TO a')
        if grouped: db.execute('COMMIT')
    found = list(db.iterdump())
    recorded = db.execute('SELECT count(*) FROM dash_statements').fetchone()[0]
    lost = db.execute(\"SELECT count(*) FROM dash_statements WHERE reason LIKE '%hook%' OR reason LIKE '%no statement%'\").fetchone()[0]
    doubted = db.execute(\"SELECT count(DISTINCT commit_number) FROM dash_statements WHERE reason LIKE '%blob handle%'\").fetchone()[0]
    commits = db.execute('SELECT max(commit_number) - min(commit_number) FROM dash_statements').fetchone()[0]
    db.close()
    assert failed > 10, failed
    assert more == '' or doubted * 50 < commits, (doubted, commits)
    return found, recorded, lost
without, none, _ = fill('without.db', '')
recorded, all, lost = fill('recorded.db', '&dash_statements=on')
assert without == recorded
assert none == 0 and all > 500, (none, all)
say('lost', lost)
say('done', 1)
";

#[test]
fn whatever_the_statements_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("");
    let Some(mut command) = python(SAME, &[Path::new(&path)]) else { return };
    let mut role = Role::spawn(&mut command);
    assert_eq!(role.hear("lost"), "0", "nothing but statements wrote");
    assert_eq!(role.hear("done"), "1");
}
