//! FT15: a single file that is mounted into a container (`-v ./app.db:/app.db`) keeps its name
//! whatever happens, so two names can't be exchanged. It opened, said `shadow`, and then every
//! write was "disk I/O error". Opening says so, and what to do; what needs no exchange works.

mod suite;

use std::fs;
use std::path::{Path, PathBuf};

use dash_testing::mounts::Mount;
use dash_testing::names::beside;
use rusqlite::{Connection, ffi};
use suite::peers::last_error;
use suite::sql::{at_rest, refused, run};

struct Container {
    _folder: tempfile::TempDir,
    /// The file outside, and its name inside.
    outside: PathBuf,
    inside: PathBuf,
    mount: Option<Mount>,
}

/// A database with one row, mounted by itself.
fn container() -> Option<Container> {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().canonicalize().expect("exists");
    let (outside, inside) = (root.join("outside"), root.join("inside"));
    fs::create_dir(&outside).expect("new");
    fs::create_dir(&inside).expect("new");
    let (outside, inside) = (outside.join("app.db"), inside.join("app.db"));
    run(&suite::open(&outside), "CREATE TABLE t(x); INSERT INTO t VALUES (1)");
    fs::write(&inside, b"").expect("ours");
    let mount = Mount::file(&outside, &inside)?;
    Some(Container { _folder: folder, outside, inside, mount: Some(mount) })
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder.parent().expect("a folder")).expect("a folder");
    let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    entries.map(|entry| name(entry.expect("an entry"))).collect()
}

fn refusal(path: &Path, more: &str, name: &str) {
    let opened = Connection::open(suite::uri(path, more));
    let error = opened.err().unwrap_or_else(|| panic!("{name}{more}: opened"));
    assert_eq!(error.sqlite_error().map(|error| error.extended_code), Some(ffi::SQLITE_CANTOPEN));
    let said = last_error();
    for part in [&format!("{name} is mounted by itself"), "mount the folder", "journal_mode=delete"]
    {
        assert!(said.contains(part), "{name}{more}: {said}");
    }
}

#[test]
fn the_database() {
    let Some(container) = container() else { return };
    suite::load();
    for more in ["", "&journal_mode=shadow", "&dash_commit=paper"] {
        refusal(&container.inside, more, "app.db");
        assert_eq!(names(&container.inside), ["app.db"], "{more}: something is left");
    }
    // By its folder it is the same file, and can be used.
    let outside = suite::open(&container.outside);
    run(&outside, "INSERT INTO t VALUES (2); INSERT INTO t VALUES (3)");
    drop(outside);
    at_rest(&container.outside);
}

/// In mode wal its log would not be the one of whoever opens it by its folder.
#[test]
fn the_database_in_mode_wal() {
    let Some(container) = container() else { return };
    refusal(&container.inside, "&journal_mode=wal", "app.db");
    let outside = suite::open(&container.outside);
    let mode: String = suite::one(&outside, "PRAGMA journal_mode=wal");
    assert_eq!(mode, "wal");
    run(&outside, "INSERT INTO t VALUES (2); INSERT INTO t VALUES (3)");
    for more in ["", "&journal_mode=wal"] {
        refusal(&container.inside, more, "app.db");
        assert_eq!(names(&container.inside), ["app.db"], "{more}: something is left");
    }
    drop(outside);
    assert_eq!(suite::one::<i64>(&suite::stock(&container.outside), "SELECT count(*) FROM t"), 3);
}

#[test]
fn the_shadow_or_the_coordination_file() {
    for ending in ["-shadow", "-dash"] {
        let Some(mut container) = container() else { return };
        container.mount = None;
        let (other, file) =
            (beside(&container.inside, "-other"), beside(&container.inside, ending));
        run(&suite::open(&container.inside), "CREATE TABLE u(x); INSERT INTO u VALUES (1)");
        fs::write(&other, b"").unwrap();
        if !file.exists() {
            fs::write(&file, b"").unwrap();
        }
        container.mount = Mount::file(&other, &file);
        refusal(&container.inside, "", &format!("app.db{ending}"));
    }
}

#[test]
fn but_it_may_be_read_and_used_as_a_plain_file() {
    let Some(container) = container() else { return };
    suite::load();
    let count = |db: &Connection| suite::one::<i64>(db, "SELECT count(*) FROM t");
    for more in ["&mode=ro", "&immutable=1"] {
        let db = Connection::open(suite::uri(&container.inside, more)).expect(more);
        assert_eq!(count(&db), 1, "{more}");
    }
    let db = Connection::open(suite::uri(&container.inside, "&journal_mode=delete")).unwrap();
    run(&db, "INSERT INTO t VALUES (2)");
    assert_eq!(count(&db), 2);
    let (_, said) = refused(&db, "PRAGMA journal_mode=shadow");
    assert!(said.contains("app.db is mounted by itself"), "{said}");
    run(&db, "INSERT INTO t VALUES (3)");
    drop(db);
    drop(container.mount);
    assert_eq!(count(&at_rest(&container.outside)), 3);
}

/// Outside, the names go from one file to the other, and the mount stays with the one that it was
/// made with. When that one is an older copy, reading it says so instead of showing an older state.
#[test]
fn and_no_older_state_is_read() {
    let Some(container) = container() else { return };
    let outside = suite::open(&container.outside);
    let (mut shown, mut refusals) = (0, 0);
    for commits in 2..=7 {
        run(&outside, "INSERT INTO t VALUES (1)");
        let db = Connection::open(suite::uri(&container.inside, "&mode=ro"));
        let read = db.and_then(|db| db.query_row("SELECT count(*) FROM t", [], |row| row.get(0)));
        match read {
            Ok(rows) => {
                assert_eq!(commits, rows, "an older state");
                shown += 1;
            }
            Err(_) => {
                let said = last_error();
                assert!(said.contains("app.db is mounted by itself, and an older copy"), "{said}");
                refusals += 1;
            }
        }
    }
    assert_eq!((shown, refusals), (3, 3));
}
