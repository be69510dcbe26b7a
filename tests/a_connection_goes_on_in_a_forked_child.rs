//! A connection that was open at `fork()` works in the child as it does with stock SQLite: the
//! engine opens the database again, under the same connection. So do programs that open it once
//! and fork their workers (gunicorn's `--preload`, `multiprocessing`).

mod suite;

use std::path::Path;

use dash_testing::roles::{Role, python};
use suite::sql::run;

/// What the stories have in common. `forked(tell, act)` acts in a child, which has to succeed.
const HEAD: &str = "
import json, select, signal, time
path, mode = sys.argv[2], sys.argv[3]
def one(db, sql, *values):
    return db.execute(sql, values).fetchone()[0]
def begin(act):
    child = os.fork()
    if child == 0:
        code = 1
        try:
            act()
            code = 0
        except BaseException as error:
            last = scratch.execute('SELECT dash_last_error()').fetchone()[0]
            print('in the child:', repr(error), last, file=sys.stderr, flush=True)
        os._exit(code)
    return child
def end(child):
    assert os.waitpid(child, 0)[1] == 0
def forked(act):
    end(begin(act))
def refused(act):
    try:
        act()
    except sqlite3.Error as error:
        last = one(scratch, 'SELECT dash_last_error()')
        assert last.endswith('app.db was opened before fork(); open it again in this process'), last
        return
    raise AssertionError('it worked')
def ours(*names):
    'The files of the database that this process has open.'
    links = [os.readlink('/proc/self/fd/' + fd) for fd in os.listdir('/proc/self/fd') if os.path.exists('/proc/self/fd/' + fd)]
    return [link for link in links if link.startswith(path)]
def check(rows):
    with_stock = sqlite3.connect(path)
    assert one(with_stock, 'PRAGMA integrity_check') == 'ok'
    assert one(with_stock, 'SELECT count(*) FROM t') == rows, one(with_stock, 'SELECT count(*) FROM t')
db = open(path)
";

fn told(mode: &str, story: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("app.db");
    let db = suite::open(&path);
    assert_eq!(suite::one::<String>(&db, &format!("PRAGMA journal_mode={mode}")), mode);
    run(&db, "CREATE TABLE t(v, w); INSERT INTO t VALUES (0, 'first')");
    drop(db);
    let script = format!("{HEAD}{story}");
    let Some(mut command) = python(&script, &[&path, Path::new(mode)]) else { return };
    Role::spawn(&mut command).finish();
}

fn in_both_modes(story: &str) {
    told("shadow", story);
    told("wal", story);
}

#[test]
fn it_reads_and_writes_as_its_parent_does() {
    in_both_modes(
        "
def add():
    assert one(db, 'SELECT dash_engine()') == mode
    for i in range(20):
        db.execute('INSERT INTO t VALUES (?, ?)', (i, os.getpid()))
forked(add)
add()
assert one(db, 'SELECT count(*) FROM t') == 41
children = [begin(add) for _ in range(4)]
add()
for child in children:
    end(child)
def look():
    assert one(db, 'SELECT count(*) FROM t') == 141
    assert one(db, 'PRAGMA integrity_check') == 'ok'
forked(look)
db.close()
check(141)
",
    );
}

/// Also where the parent has only looked, or has done nothing at all; and statistics are asked for
/// before anything is read.
#[test]
fn whatever_the_parent_had_done_with_it() {
    in_both_modes(
        "
def ask():
    assert len(db.execute('SELECT * FROM dash_stats').fetchall()) > 3
    assert one(db, 'SELECT count(*) FROM t') == 1
forked(ask)
one(db, 'SELECT count(*) FROM t')
forked(ask)
def checkpoint():
    db.execute('PRAGMA wal_checkpoint(TRUNCATE)')
    one(db, 'SELECT count(*) FROM t')
forked(checkpoint)
db.execute('INSERT INTO t VALUES (1, 1)')
def again():
    checkpoint()
    db.execute('INSERT INTO t VALUES (2, 2)')
    assert one(db, 'SELECT count(*) FROM t') == 3
forked(again)
assert one(db, 'SELECT count(*) FROM t') == 3
db.close()
check(3)
",
    );
}

#[test]
fn a_new_database_whose_mode_nobody_has_said_is_made_in_the_child() {
    in_both_modes(
        "
new = path + '-new'
db = open(new)
def make():
    if mode == 'wal':
        db.execute('PRAGMA journal_mode=WAL')
    db.execute('CREATE TABLE t(v)')
    db.execute('INSERT INTO t VALUES (1)')
    assert one(db, 'SELECT dash_engine()') == mode
forked(make)
db.execute('INSERT INTO t VALUES (2)')
assert one(db, 'SELECT dash_engine()') == mode
assert one(db, 'SELECT count(*) FROM t') == 2
",
    );
}

#[test]
fn one_for_reading_only_reads() {
    in_both_modes(
        "
db.execute('INSERT INTO t VALUES (1, 1)')
reader = open(path, '&mode=ro')
assert one(reader, 'SELECT count(*) FROM t') == 2
def read():
    assert one(reader, 'SELECT count(*) FROM t') == 3
    try:
        reader.execute('INSERT INTO t VALUES (9, 9)')
    except sqlite3.OperationalError as error:
        assert 'readonly' in str(error), error
    else:
        raise AssertionError('it wrote')
db.execute('INSERT INTO t VALUES (2, 2)')
forked(read)
",
    );
}

#[test]
fn children_of_children_and_several_connections_go_on() {
    in_both_modes(
        "
other = open(path)
one(other, 'SELECT count(*) FROM t')
def add():
    for connection in (db, other):
        connection.execute('INSERT INTO t VALUES (1, 1)')
def generation(left):
    def act():
        if left % 2:
            add()
        if left:
            forked(generation(left - 1))
        add()
        assert one(db, 'SELECT count(*) FROM t') == one(other, 'SELECT count(*) FROM t')
    return act
forked(generation(4))
add()
assert one(db, 'SELECT count(*) FROM t') == 1 + 2 * (2 + 5 + 1)
db.close()
other.close()
check(17)
",
    );
}

#[test]
fn statements_and_blob_handles_of_before_go_on() {
    in_both_modes(
        "
db.execute('UPDATE t SET w = zeroblob(100000)')
db.execute('SELECT v FROM t WHERE v = ?', (0,)).fetchall()
blobs = hasattr(db, 'blobopen')
def act():
    # The statement is in Python's cache, and was prepared by the parent.
    assert db.execute('SELECT v FROM t WHERE v = ?', (0,)).fetchall() == [(0,)]
    if blobs:
        with db.blobopen('t', 'w', 1) as blob:
            blob[50000] = 7
forked(act)
if blobs:
    assert one(db, 'SELECT hex(substr(w, 50001, 1)) FROM t') == '07'
",
    );
}

#[test]
fn what_was_set_stays_set() {
    in_both_modes(
        "
if mode == 'wal':
    settings = [('dash_durability', 'none'), ('dash_barrier', 'wal'), ('dash_read', 'durable')]
else:
    settings = [('dash_commit', 'paper')]
settings += [('dash_time_reads', 'on'), ('mmap_size', 65536), ('synchronous', 1)]
for name, value in settings:
    db.execute(f'PRAGMA {name}={value}').fetchall()
one(db, 'SELECT count(*) FROM t')
def look():
    one(db, 'SELECT count(*) FROM t')
    for name, value in settings:
        assert one(db, f'PRAGMA {name}') == value, (name, one(db, f'PRAGMA {name}'))
    forked(lambda: one(db, 'SELECT sum(length(w)) FROM t'))
forked(look)
",
    );
}

/// What it does there is its own: its end, and closing what it never used, changes nothing here.
#[test]
fn a_child_that_does_not_use_it_opens_nothing() {
    in_both_modes(
        "
db.execute('INSERT INTO t VALUES (1, 1)')
def close():
    db.close()
    assert ours() == [], ours()
forked(close)
def leave():
    assert ours() == [], ours()
    one(db, 'SELECT count(*) FROM t')
    assert len(ours()) > 2, ours()
    db.close()
    assert ours() == [], ours()
forked(leave)
db.execute('BEGIN IMMEDIATE')
forked(close)
db.execute('INSERT INTO t VALUES (2, 2)')
db.execute('COMMIT')
assert one(db, 'SELECT count(*) FROM t') == 3
",
    );
}

/// The log and its index are gone by then, or are made anew, by the child or by others (WAL-21).
#[test]
fn it_goes_on_when_the_parent_has_closed_the_database() {
    in_both_modes(
        "
for write in (False, True):
    for others in (False, True):
        rows = one(db, 'SELECT count(*) FROM t')
        # Everything is in the child's cache.
        db.execute('SELECT * FROM t').fetchall()
        asks, tells = os.pipe()
        def act():
            os.read(asks, 1)
            assert one(db, 'SELECT count(*) FROM t') == rows + 1, one(db, 'SELECT count(*) FROM t')
            db.execute('INSERT INTO t VALUES (3, 3)')
            assert one(db, 'PRAGMA integrity_check') == 'ok'
            db.close()
        if write:
            db.execute('UPDATE t SET w = w')
        child = begin(act)
        db.execute('INSERT INTO t VALUES (2, 2)')
        db.close()
        if others:
            # They find the database at rest, and an index that is as it was at the very beginning.
            db = open(path)
            one(db, 'SELECT count(*) FROM t')
        os.write(tells, b'.')
        end(child)
        # At rest, so that the next one begins with an index in which nothing was written, either.
        db.close()
        db = open(path)
assert one(db, 'PRAGMA integrity_check') == 'ok'
",
    );
}

/// The first time SQLite looks at the log it wants the writer's lock, and does without (WAL-21).
#[test]
fn it_reads_while_somebody_writes() {
    told(
        "wal",
        "
one(db, 'SELECT count(*) FROM t')
for rows in (1, 2):
    asks, tells = os.pipe()
    def act():
        os.read(asks, 1)
        begun = time.time()
        assert one(db, 'SELECT count(*) FROM t') == rows
        assert time.time() - begun < 5
    child = begin(act)
    writer = open(path)
    writer.execute('BEGIN IMMEDIATE')
    writer.execute('INSERT INTO t VALUES (1, 1)')
    os.write(tells, b'.')
    end(child)
    writer.execute('COMMIT')
    writer.close()
",
    );
}

#[test]
fn it_goes_on_when_the_parent_was_killed() {
    in_both_modes(
        "
asks, tells = os.pipe()
def parent():
    db = open(path)
    db.execute('INSERT INTO t VALUES (1, 1)')
    db.execute('SELECT * FROM t').fetchall()
    def act():
        os.read(asks, 1)
        assert one(db, 'SELECT count(*) FROM t') == 3
        db.execute('INSERT INTO t VALUES (3, 3)')
        assert one(db, 'PRAGMA integrity_check') == 'ok'
        db.close()
        os.kill(os.getppid(), 0)
        os.write(said, b'.')
    begin(act)
    db.execute('INSERT INTO t VALUES (2, 2)')
    os.kill(os.getpid(), signal.SIGKILL)
hears, said = os.pipe()
db.close()
child = os.fork()
if child == 0:
    parent()
os.waitpid(child, 0)
os.write(tells, b'.')
assert select.select([hears], [], [], 60)[0] and os.read(hears, 1) == b'.'
db = open(path)
assert one(db, 'SELECT count(*) FROM t') == 4
",
    );
}

#[test]
fn what_lies_there_instead_is_refused() {
    in_both_modes(
        "
one(db, 'SELECT count(*) FROM t')
children = []
for _ in range(2):
    asks, tells = os.pipe()
    def act():
        os.read(asks, 1)
        refused(lambda: one(db, 'SELECT count(*) FROM t'))
        refused(lambda: db.execute('INSERT INTO t VALUES (1, 1)'))
    children.append((begin(act), tells))
def go_on():
    child, tells = children.pop()
    os.write(tells, b'.')
    end(child)
if mode == 'wal':
    # Another mode.
    assert one(db, 'PRAGMA journal_mode=delete') == 'delete'
    db.close()
    go_on()
else:
    db.close()
# Another database.
for more in ('', '-wal', '-shm', '-shadow'):
    if os.path.exists(path + more):
        os.rename(path + more, path + '-away' + more)
db = open(path)
db.execute('PRAGMA journal_mode=' + mode)
db.execute('CREATE TABLE t(v, w)')
while children:
    go_on()
assert one(db, 'SELECT count(*) FROM t') == 0
",
    );
}
