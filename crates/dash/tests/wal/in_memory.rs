//! `dash_wal=memory`: `-wal` and the wal-index are one process's, and the log has its commits.
//! WAL-35 to WAL-38.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use dash_testing::names::wait_until_gone;
use dash_testing::roles::{self, Role, python, role, say};

use crate::common::*;
use crate::processes::kill_after;
use crate::{at_rest, create};

const IN_MEMORY: &str = "&journal_mode=wal&dash_wal=memory";
const ROLE: &str = "in_memory::a_process_with_wal_in_memory";

fn in_memory(folder: &Folder) -> Connection {
    let db = folder.try_open("app.db", IN_MEMORY).expect("opens");
    assert_eq!(text(&db, "PRAGMA dash_wal"), "memory");
    db
}

fn put(db: &Connection, rows: i64) {
    for _ in 0..rows {
        db.execute_batch("INSERT INTO t VALUES (1)").expect("commits");
    }
}

fn count(db: &Connection) -> i64 {
    number(db, "SELECT count(*) FROM t")
}

fn database() -> Folder {
    let folder = Folder::new();
    create(&folder, "app.db").execute_batch("CREATE TABLE t(x)").expect("makes");
    folder
}

#[test]
#[ignore = "a role of the tests below"]
fn a_process_with_wal_in_memory() {
    let Some(argument) = role(ROLE) else { return };
    let (level, folder) = argument.split_once(' ').expect("two words");
    register();
    let path = Path::new(folder).join("app.db");
    let opened = || {
        let db = Connection::open(uri(&path, "dash", IN_MEMORY)).expect("opens");
        db.busy_timeout(Duration::from_secs(20)).expect("sets");
        db.execute_batch(&format!("PRAGMA synchronous={level}; PRAGMA wal_autocheckpoint=20"))
            .expect("sets");
        db
    };
    let (one, other) = (opened(), opened());
    let first = number(&one, "SELECT ifnull(max(x), 0) FROM t") + 1;
    for round in first.. {
        let db = if round % 3 == 0 { &other } else { &one };
        db.execute("INSERT INTO t VALUES (?)", [round]).expect("commits");
        if round % 50 == 0 {
            // Larger than a record, and than the cache.
            let many = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM n WHERE x < 900) \
                        INSERT INTO big SELECT randomblob(2000) FROM n; DELETE FROM big";
            db.execute_batch(many).expect("commits");
        }
        say("acknowledged", round);
    }
}

/// Whoever is killed at any moment, at any level of `synchronous`, has lost no commit; stock SQLite
/// sees nothing before dash has.
#[test]
fn a_kill_takes_no_commit() {
    let folder = database();
    folder.stock("app.db").execute_batch("CREATE TABLE big(x)").expect("makes");
    for (round, level) in (0_u32..).zip(["FULL", "NORMAL", "OFF", "FULL", "NORMAL", "OFF"]) {
        let child = Role::start(ROLE, format!("{level} {}", folder.path(".").display()));
        let more = Duration::from_millis(u64::from(7 * round));
        let acknowledged = kill_after(child, 20 + 41 * round as usize, more);
        let stock = folder.stock("app.db");
        assert!(stock.query_row("SELECT count(*) FROM t", [], |_| Ok(())).is_err(), "{level}");
        drop(stock);
        // Either way of opening it recovers it.
        let db = if round % 2 == 0 { in_memory(&folder) } else { create(&folder, "app.db") };
        let found = number(&db, "SELECT max(x) FROM t");
        assert!((acknowledged..=acknowledged + 1).contains(&found), "{level}: {found}");
        assert_eq!(count(&db), found);
        whole(&db);
    }
    at_rest(&folder, "app.db");
}

/// Another process is told who has it; this one's connections share it.
#[test]
fn another_process_is_refused() {
    let folder = database();
    let db = in_memory(&folder);
    put(&db, 3);
    // Whoever names no place has it where it is.
    let same = create(&folder, "app.db");
    put(&same, 3);
    assert_eq!((count(&db), text(&same, "PRAGMA dash_wal")), (6, "memory".to_owned()));
    let script = "
for more in ['', '&dash_wal=memory', '&mode=ro']:
    try:
        print(open(sys.argv[2], more).execute('SELECT count(*) FROM t').fetchall())
        say('let in', more)
    except sqlite3.OperationalError as error:
        said = scratch.execute('SELECT dash_last_error()').fetchone()[0] or ''
        say('refused', str(error) + ': ' + said)
";
    let Some(mut command) = python(script, &[&folder.path("app.db")]) else { return };
    let mut child = Role::spawn(&mut command);
    for _ in 0..3 {
        let refused = child.hear("refused");
        let who = format!("process {} has", std::process::id());
        assert!(refused.contains("locked") && refused.contains(&who), "{refused}");
    }
    child.finish();
    put(&db, 1);
    drop((db, same));
    at_rest(&folder, "app.db");
}

/// Stock SQLite neither reads nor writes while it is open, whoever came first; at rest it may do
/// anything. Python's is 3.40 or later.
#[test]
fn stock_sqlite_is_kept_out_as_long_as_it_is_open() {
    let folder = database();
    let script = "
import sqlite3, sys
def tries(db, sql):
    try:
        return db.execute(sql).fetchall()
    except sqlite3.OperationalError as error:
        return str(error)
def opened():
    return sqlite3.connect(sys.argv[1], isolation_level=None, timeout=0)
before = opened()
before.execute('SELECT count(*) FROM t').fetchall()
for line in sys.stdin:
    for db in [before, opened()]:
        print('said:', [tries(db, sql) for sql in ['SELECT count(*) FROM t', 'INSERT INTO t VALUES (2)']], flush=True)
";
    let Some(python) = roles::python_that_runs("import sqlite3") else { return };
    let mut command = Command::new(python);
    command.arg("-c").arg(script).arg(folder.path("app.db"));
    let mut child = Role::spawn(&mut command);
    let ask = |child: &mut Role| {
        child.tell("");
        [child.hear("said"), child.hear("said")]
    };
    assert_eq!(ask(&mut child), ["[[(0,)], []]", "[[(1,)], []]"]);
    let db = in_memory(&folder);
    assert_eq!(count(&db), 2);
    put(&db, 5);
    let refused = "['unable to open database file', 'unable to open database file']";
    assert_eq!(ask(&mut child), [refused; 2]);
    db.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").expect("checkpoints");
    assert_eq!(ask(&mut child), [refused; 2]);
    db.close().expect("closes");
    assert_eq!(ask(&mut child), ["[[(7,)], []]", "[[(8,)], []]"]);
    child.finish();
    assert_eq!(count(&in_memory(&folder)), 9);
}

/// Frames reach the disk at a checkpoint alone, each page once.
#[test]
fn commits_write_no_frame() {
    let folder = database();
    let db = in_memory(&folder);
    db.execute_batch("PRAGMA wal_autocheckpoint=0").expect("sets");
    put(&db, 200);
    let len = |name: &str| std::fs::metadata(folder.path(name)).map_or(0, |found| found.len());
    let frames = number(&db, "SELECT value FROM dash_stats WHERE name='frames'");
    assert!(frames >= 199 && len("app.db-wal") <= 2 * 4120 + 32, "{}", len("app.db-wal"));
    let written = "SELECT value FROM dash_stats WHERE name='wal_file_bytes'";
    assert!(number(&db, written) <= 2 * 4120 + 64, "{}", number(&db, written));
    db.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").expect("checkpoints");
    let stock = folder.stock("app.db");
    assert!(stock.query_row("SELECT count(*) FROM t", [], |_| Ok(())).is_err());
    drop((stock, db));
    assert_eq!(count(&folder.stock("app.db")), 200);
}

#[test]
fn what_does_not_fit_it_is_refused_by_name() {
    let folder = database();
    let probe = create(&folder, "probe.db");
    let in_file = create(&folder, "app.db");
    assert_eq!(text(&in_file, "PRAGMA dash_wal"), "file");
    let said = message(in_file.query_row("PRAGMA dash_wal=memory", [], |_| Ok(())));
    assert!(said.contains("when the database is opened"), "{said}");
    assert!(folder.try_open("app.db", IN_MEMORY).is_err());
    assert!(last_error(&probe).contains("in a file"), "{}", last_error(&probe));
    drop(in_file);
    let db = folder.try_open("app.db", "&journal_mode=statement&dash_wal=memory").expect("opens");
    put(&db, 2);
    let said = message(db.query_row("PRAGMA dash_commit=paper", [], |_| Ok(())));
    assert!(said.contains("isn't available with dash_wal=memory"), "{said}");
    // Who names the other place is refused, in this process, too; who names none joins.
    assert!(folder.try_open("app.db", "&journal_mode=wal&dash_wal=file").is_err());
    let said = last_error(&probe);
    assert!(said.contains("in memory") && said.contains("dash_wal=file"), "{said}");
    assert_eq!(text(&create(&folder, "app.db"), "PRAGMA dash_wal"), "memory");
    put(&db, 2);
    drop(db);
    let db = folder.try_open("app.db", "&journal_mode=wal&dash_wal=file").expect("opens");
    assert_eq!(text(&db, "PRAGMA dash_wal"), "file");
    drop(db);
    let db = folder.try_open("app.db", IN_MEMORY).expect("opens");
    db.execute_batch("PRAGMA locking_mode=EXCLUSIVE").expect("sets");
    assert!(db.query_row("SELECT count(*) FROM t", [], |_| Ok(())).is_err());
    assert!(last_error(&probe).contains("locking_mode=EXCLUSIVE"), "{}", last_error(&probe));
    drop(db);
    // Chosen later it is as in stock SQLite.
    let db = in_memory(&folder);
    assert_eq!(count(&db), 4);
    db.execute_batch("PRAGMA locking_mode=EXCLUSIVE").expect("sets");
    put(&db, 3);
    drop(db);
    at_rest(&folder, "app.db");
}

/// A stock program in the middle of reading keeps it from beginning, and not for ever.
#[test]
fn a_stock_reader_is_waited_for() {
    let folder = database();
    let stock = folder.stock("app.db");
    stock.execute_batch("BEGIN; SELECT count(*) FROM t").expect("reads");
    let waiting = std::thread::spawn({
        let path = folder.path("app.db");
        move || {
            let db = Connection::open(uri(&path, "dash", IN_MEMORY)).expect("opens");
            db.busy_timeout(Duration::from_secs(20)).expect("sets");
            db.execute_batch("INSERT INTO t VALUES (1)").expect("commits in the end");
        }
    });
    std::thread::sleep(Duration::from_millis(200));
    stock.execute_batch("COMMIT").expect("ends");
    waiting.join().expect("commits");
    drop(stock);
    assert_eq!(count(&create(&folder, "app.db")), 1);
}

/// It comes to rest where that is asked for, and is a plain database then whoever is killed.
#[test]
fn it_comes_to_rest_if_asked_to() {
    let folder = database();
    let db = folder.try_open("app.db", &format!("{IN_MEMORY}&dash_rest=10")).expect("opens");
    put(&db, 20);
    wait_until_gone(&folder.path("app.db-journal"), "it does not come to rest");
    put(&db, 20);
    drop(db);
    assert_eq!(count(&create(&folder, "app.db")), 40);
}

/// A forked child is another process: its copy of the memory is nobody's. What came over the fork
/// is refused there, also when the parent has closed the database and others have written it; the
/// parent goes on.
#[test]
fn a_forked_child_is_refused() {
    let folder = database();
    let script = "
db = open(sys.argv[2], '&dash_wal=memory')
db.execute('INSERT INTO t VALUES (1)')
reads, writes = os.pipe()
child = os.fork()
if child == 0:
    def tries(who, again, sql='SELECT count(*) FROM t'):
        try:
            say(who, again().execute(sql).fetchall())
        except sqlite3.OperationalError:
            say(who, scratch.execute('SELECT dash_last_error()').fetchone()[0])
    tries('child', lambda: db)
    tries('child', lambda: open(sys.argv[2]))
    say('asked')
    os.read(reads, 1)
    tries('child', lambda: db)
    tries('child', lambda: db, 'INSERT INTO t VALUES (7)')
    tries('anew', lambda: open(sys.argv[2], '&dash_wal=memory'))
    tries('child', lambda: db)
    db.close()
    os._exit(0)
sys.stdin.readline()
db.execute('INSERT INTO t VALUES (2)')
say('parent', db.execute('SELECT count(*) FROM t').fetchone()[0])
db.close()
other = open(sys.argv[2])
other.execute('INSERT INTO t VALUES (3)')
other.close()
os.write(writes, b'x')
os.waitpid(child, 0)
";
    let Some(mut command) = python(script, &[&folder.path("app.db")]) else { return };
    let mut parent = Role::spawn(&mut command);
    let is_refused = |parent: &mut Role| {
        let refused = parent.hear("child");
        assert!(refused.contains("dash_wal=memory"), "{refused}");
    };
    is_refused(&mut parent);
    is_refused(&mut parent);
    parent.hear("asked");
    parent.tell("");
    assert_eq!(parent.hear("parent"), "2");
    is_refused(&mut parent);
    is_refused(&mut parent);
    assert_eq!(parent.hear("anew"), "[(3,)]");
    is_refused(&mut parent);
    parent.finish();
    let db = create(&folder, "app.db");
    assert_eq!(count(&db), 3);
    whole(&db);
}
