//! FT27: `a.db-mj…` was left behind when a process was killed before any database was prepared
//! under it. Opening the database that it is named after removes it, but never one that may be
//! needed.

mod suite;

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use dash_testing::names::beside;
use dash_testing::roles::{Role, python};
use rusqlite::Connection;
use suite::peers::{Part, Session, Writer};
use suite::sql::{at_rest, run};
use suite::workload;

struct Databases {
    _folder: tempfile::TempDir,
    a: PathBuf,
    b: PathBuf,
}

/// Two databases, of which `a` was killed.
fn killed() -> Databases {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().canonicalize().expect("exists");
    let (a, b) = (root.join("a.db"), root.join("b.db"));
    workload::make(&suite::open(&a));
    run(&suite::open(&b), "CREATE TABLE t(v); INSERT INTO t VALUES (0)");
    let mut writer = Writer::start(&a, Part::default());
    writer.reaches(2);
    writer.kill();
    Databases { _folder: folder, a, b }
}

/// What SQLite makes: the names of the journals, each with a zero behind it.
fn super_journal(main: &Path, children: &[&Path]) -> PathBuf {
    let path = beside(main, "-mj1A2B3C94D");
    let mut list = Vec::new();
    for child in children {
        list.extend_from_slice(beside(child, "-journal").as_os_str().as_bytes());
        list.push(0);
    }
    fs::write(&path, list).expect("ours");
    path
}

#[test]
fn when_no_database_was_prepared_yet() {
    let Databases { a, b, _folder } = killed();
    let path = super_journal(&a, &[&a, &b]);
    drop(suite::open(&a));
    drop(suite::open(&b));
    assert!(!path.exists(), "it is left");
    at_rest(&a);
    at_rest(&b);
}

#[test]
fn but_not_while_somebody_writes_one_that_it_lists() {
    for stock in [false, true] {
        let Databases { a, b, _folder } = killed();
        let path = super_journal(&a, &[&a, &b]);
        let mut other = match stock {
            true => Session::stock(&b),
            false => Session::dash(&b, Part::default()).expect("opens"),
        };
        other.must("BEGIN IMMEDIATE");
        drop(suite::open(&a));
        assert!(path.exists(), "stock: {stock}");
        other.close();
    }
}

#[test]
fn nor_one_whose_list_or_databases_say_too_little() {
    let Databases { a, b, _folder } = killed();
    let stays = |path: PathBuf, why: &str| {
        drop(suite::open(&a));
        assert!(path.exists(), "{why}");
        fs::remove_file(path).unwrap();
        // The next opener, too, finds what a killed process left.
        let mut writer = Writer::start(&a, Part::default());
        writer.reaches(workload::state(&suite::open(&a)) + 1);
        writer.kill();
    };
    stays(super_journal(&a, &[]), "an empty list");
    stays(super_journal(&a, &[&a]), "a list of one");
    fs::write(beside(&b, "-journal"), b"somebody's").unwrap();
    stays(super_journal(&a, &[&a, &b]), "a rollback journal beside a database");
    fs::remove_file(beside(&b, "-journal")).unwrap();
    let other = beside(&a, "-mj-of-mine");
    fs::write(&other, b"").unwrap();
    stays(other, "another name");
    at_rest(&b);
}

/// Both open, and attached to each other, after a commit over both.
fn joined(a: &Path, b: &Path, rest: &str) -> Connection {
    let db = suite::open_dash(a.as_os_str(), rest).expect("opens");
    let attach = format!("ATTACH 'file:{}?vfs=dash{rest}' AS b", b.display());
    run(&db, &attach);
    run(&db, "BEGIN; UPDATE main.t SET v = v + 1; UPDATE b.t SET v = v + 1; COMMIT");
    db
}

fn two() -> Databases {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().canonicalize().expect("exists");
    let (a, b) = (root.join("a.db"), root.join("b.db"));
    for path in [&a, &b] {
        run(&suite::open(path), "CREATE TABLE t(v); INSERT INTO t VALUES (0)");
    }
    Databases { _folder: folder, a, b }
}

/// Whoever was killed is outlived by others, so that no opener finds that it did not close.
#[test]
fn when_others_close_the_databases() {
    let Databases { a, b, _folder } = two();
    let db = joined(&a, &b, "");
    let path = super_journal(&a, &[&a, &b]);
    let mut other = Session::dash(&b, Part::default()).expect("opens");
    other.must("BEGIN IMMEDIATE");
    db.close().expect("closes");
    assert!(path.exists(), "somebody writes one that it lists");
    drop(other);
    joined(&a, &b, "").close().expect("closes");
    assert!(!path.exists(), "it is left");
    at_rest(&a);
    at_rest(&b);
}

#[test]
fn and_when_they_come_to_rest() {
    let Databases { a, b, _folder } = two();
    let db = joined(&a, &b, "&dash_rest=10");
    let path = super_journal(&a, &[&a, &b]);
    let begun = Instant::now();
    while path.exists() {
        assert!(begun.elapsed() < Duration::from_secs(20), "it is left");
        std::thread::sleep(Duration::from_millis(5));
    }
    run(&db, "UPDATE b.t SET v = v + 1");
}

/// Somewhere in a commit, again and again: after both were opened and closed nothing is left, and
/// both have the same.
#[test]
fn wherever_the_kill_comes() {
    const SCRIPT: &str = "
db = open(sys.argv[2])
db.execute(\"ATTACH 'file:\" + sys.argv[3] + \"?vfs=dash' AS b\")
while True:
    db.execute('BEGIN IMMEDIATE')
    db.execute('UPDATE main.t SET v = v + 1')
    db.execute('UPDATE b.t SET v = v + 1')
    db.execute('COMMIT')
    say('committed')
";
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let (a, b) = (root.join("a.db"), root.join("b.db"));
    for path in [&a, &b] {
        run(&suite::open(path), "CREATE TABLE t(v); INSERT INTO t VALUES (0)");
    }
    for round in 0..40_u64 {
        let Some(mut command) = python(SCRIPT, &[&a, &b]) else { return };
        let mut child = Role::spawn(&mut command);
        child.hear("committed");
        std::thread::sleep(std::time::Duration::from_micros(round * 61));
        child.kill();
        let order = if round % 2 == 0 { [&a, &b] } else { [&b, &a] };
        let values = order.map(|path| suite::one::<i64>(&suite::open(path), "SELECT v FROM t"));
        assert_eq!(values[0], values[1], "round {round}");
        let left: Vec<_> = fs::read_dir(&root)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.contains("-mj"))
            .collect();
        // One without its whole list can't be told from one that is being made.
        let whole = |name: &String| {
            let list = fs::read(root.join(name)).unwrap();
            list.iter().filter(|byte| **byte == 0).count() > 1
        };
        let left: Vec<_> = left.into_iter().filter(whole).collect();
        assert!(left.is_empty(), "round {round}: {left:?}");
    }
}
