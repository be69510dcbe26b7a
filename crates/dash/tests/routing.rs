//! Which file goes where, and under which names.

mod common;
use common::*;

use dash_testing::{Need, skip};

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

#[test]
fn temporary_and_memory_databases_are_stock() {
    let folder = Folder::new();
    let db = folder.open("app.db");
    db.execute_batch("PRAGMA temp_store=file; PRAGMA cache_size=5; CREATE TEMP TABLE big AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<20000) SELECT i, hex(i) AS h FROM n")
        .expect("goes to a temporary file");
    assert_eq!(
        number(&db, "SELECT count(*) FROM (SELECT DISTINCT h FROM big ORDER BY h DESC)"),
        20000
    );
    assert_eq!(text(&db, "SELECT dash_engine('temp')"), "none");
    for name in [
        "file::memory:?vfs=dash",
        "file:shared?mode=memory&cache=shared&vfs=dash",
        "file:?vfs=dash",
    ] {
        let db = Connection::open(name).expect(name);
        db.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (1)").expect(name);
        assert_eq!(text(&db, "SELECT dash_engine()"), "none", "{name}");
    }
}

#[test]
fn a_plain_file_is_stock_in_every_way() {
    let folder = Folder::new();
    let db = folder.try_open("app.db", "&journal_mode=delete").expect("opens");
    assert_eq!(text(&db, "PRAGMA journal_mode"), "delete");
    assert_eq!(text(&db, "PRAGMA journal_mode=persist"), "persist");
    assert!(message(db.execute_batch("PRAGMA dash_commit")).contains("not in mode shadow"));
    db.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (1)").expect("commits");
    assert!(folder.path("app.db-journal").is_file());
    assert!(!folder.exists("app.db-shadow") && !folder.exists("app.db-dash"));
    let stock = folder.stock("app.db");
    stock.execute_batch("INSERT INTO t VALUES (2)").expect("commits");
    assert_eq!(number(&db, "SELECT count(*) FROM t"), 2);
}

/// A process that is killed leaves its name fence to who has the database open as a plain file;
/// stock SQLite calls that an I/O error or nothing at all.
#[test]
fn a_plain_file_behind_a_name_fence_is_refused_with_a_sentence() {
    let folder = Folder::new();
    let made = folder.open("app.db");
    made.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (1)").expect("commits");
    drop(made);
    let db = folder.try_open("app.db", "&journal_mode=delete").expect("opens");
    std::fs::create_dir(folder.path("app.db-journal")).expect("new");
    for sql in ["SELECT x FROM t", "INSERT INTO t VALUES (2)"] {
        assert_eq!(code(db.execute_batch(sql)), ErrorCode::CannotOpen, "{sql}");
        let other = Connection::open_in_memory().expect("opens");
        let said = last_error(&other);
        assert!(said.contains("app.db-journal is a directory, the name fence"), "{sql}: {said}");
    }
    drop(db);
    // And it says what helps.
    assert_eq!(number(&folder.open("app.db"), "SELECT count(*) FROM t"), 1);
}

/// What a killed process leaves is recovered first, as by any opening.
#[test]
fn a_name_fence_that_was_left_keeps_no_plain_file_shut() {
    let folder = Folder::new();
    let made = folder.open("app.db");
    made.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (1)").expect("commits");
    drop(made);
    std::fs::create_dir(folder.path("app.db-journal")).expect("new");
    let db = folder.try_open("app.db", "&journal_mode=delete").expect("opens");
    db.execute_batch("INSERT INTO t VALUES (2)").expect("commits");
    drop(db);
    assert!(!folder.path("app.db-journal").exists());
    assert_eq!(number(&folder.open("app.db"), "SELECT count(*) FROM t"), 2);
}

#[test]
fn an_existing_plain_database_runs_in_mode_shadow_from_the_first_open() {
    let folder = Folder::new();
    folder
        .stock("app.db")
        .execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (1)")
        .expect("commits");
    let db = folder.open("app.db");
    assert_eq!(text(&db, "PRAGMA journal_mode"), "shadow");
    assert_eq!(number(&db, "SELECT count(*) FROM t"), 1);
    assert!(!folder.exists("app.db-shadow"), "nothing is made before the first write");
    db.execute_batch("INSERT INTO t VALUES (2)").expect("commits");
    assert!(folder.exists("app.db-shadow"));
    whole(&db);
}

#[test]
fn names_with_spaces_and_symbolic_links_and_relative_paths_work() {
    let folder = Folder::new();
    let db = folder.open("a b%20c.db");
    db.execute_batch("CREATE TABLE t(x)").expect("commits");
    drop(db);
    assert!(folder.exists("a b c.db-shadow"));
    std::os::unix::fs::symlink(folder.path("a b c.db"), folder.path("link.db")).expect("links");
    let db = folder.open("link.db");
    db.execute_batch("INSERT INTO t VALUES (1)").expect("commits");
    db.execute_batch("INSERT INTO t VALUES (2)").expect("commits");
    drop(db);
    assert!(!folder.exists("link.db-shadow"));
    assert!(folder.path("link.db").is_symlink());
    assert_eq!(number(&folder.stock("link.db"), "SELECT count(*) FROM t"), 2);
}

#[test]
fn names_that_are_not_utf8_work() {
    let folder = Folder::new();
    let name = OsStr::from_bytes(b"caf\xe9.db");
    let path = folder.path(".").join(name);
    if std::fs::File::create(&path).is_err() {
        return skip(Need::AnyName, "the temporary folder takes names of UTF-8 only");
    }
    let open = || {
        Connection::open_with_flags_and_vfs(&path, rusqlite::OpenFlags::default(), "dash")
            .expect("opens")
    };
    let db = open();
    db.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (1)").expect("commits");
    drop(db);
    assert_eq!(number(&open(), "SELECT count(*) FROM t"), 1);
    let mut shadow = path.into_os_string();
    shadow.push("-shadow");
    assert!(std::fs::exists(shadow).expect("looks"));
}

#[test]
fn backups_go_in_and_out() {
    let folder = Folder::new();
    let db = folder.open("app.db");
    db.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)")
        .expect("commits");
    let mut stock = folder.stock("copy.db");
    rusqlite::backup::Backup::new(&db, &mut stock).expect("begins").step(-1).expect("copies");
    assert_eq!(number(&stock, "SELECT count(*) FROM t"), 2);
    stock.execute_batch("INSERT INTO t VALUES (3)").expect("commits");
    whole(&stock);
    let mut back = folder.open("app.db");
    rusqlite::backup::Backup::new(&stock, &mut back).expect("begins").step(-1).expect("copies");
    drop(back);
    assert_eq!(number(&db, "SELECT count(*) FROM t"), 3);
    whole(&db);
    db.execute("VACUUM INTO ?", [folder.path("into.db").display().to_string()]).expect("vacuums");
    let into = folder.stock("into.db");
    assert_eq!(number(&into, "SELECT count(*) FROM t"), 3);
    whole(&into);
}

#[test]
fn a_copy_that_vacuum_into_makes_is_a_plain_file() {
    for mode in ["shadow", "wal", "delete"] {
        let folder = Folder::new();
        let db = folder.try_open("app.db", &format!("&journal_mode={mode}")).expect("opens");
        db.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (1)").expect("commits");
        let into = folder.path("into.db");
        db.execute("VACUUM INTO ?", [into.display().to_string()]).expect("vacuums");
        let beside = std::fs::read_dir(folder.path(".")).expect("a folder");
        let beside = beside.map(|entry| entry.expect("an entry").file_name());
        let beside: Vec<_> =
            beside.filter(|name| name.to_string_lossy().starts_with("into.db")).collect();
        assert_eq!(beside, ["into.db"], "{mode}");
        let bytes = std::fs::read(&into).expect("reads");
        assert_eq!((bytes.len(), &bytes[18..20]), (2 * 4096, &[1, 1][..]), "{mode}");
        let copy = folder.open("into.db");
        copy.execute_batch("INSERT INTO t VALUES (2)").expect("commits");
        assert_eq!(text(&copy, "SELECT dash_engine()"), "shadow");
    }
}

#[test]
fn connections_of_a_shared_cache_share_the_file() {
    let folder = Folder::new();
    let a = folder.try_open("app.db", "&cache=shared").expect("opens");
    let b = folder.try_open("app.db", "&cache=shared").expect("opens");
    a.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (1)").expect("commits");
    b.execute_batch("INSERT INTO t VALUES (2)").expect("commits");
    assert_eq!(number(&a, "SELECT count(*) FROM t"), 2);
    drop(a);
    b.execute_batch("INSERT INTO t VALUES (3)").expect("commits");
    whole(&b);
}

#[test]
fn a_database_moved_away_is_not_written() {
    let folder = Folder::new();
    let db = folder.open("app.db");
    db.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (1)").expect("commits");
    std::fs::rename(folder.path("app.db"), folder.path("elsewhere.db")).expect("moves");
    std::fs::write(folder.path("app.db"), b"").expect("writes");
    assert!(db.execute_batch("INSERT INTO t VALUES (2)").is_err());
    assert!(last_error(&db).contains("renamed, removed or replaced"), "{}", last_error(&db));
    assert_eq!(std::fs::metadata(folder.path("app.db")).expect("there").len(), 0);
}
