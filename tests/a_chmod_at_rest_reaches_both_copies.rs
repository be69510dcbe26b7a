//! SEC2: `chmod 600 app.db` left `app.db-shadow`, which has nearly the same content, open to
//! everybody until the next write through dash. The next opening of any kind sees to that, as far
//! as it may, and says where it may not: there is no such file until a commit makes one.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

mod suite;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use dash_testing::machine::root_for;
use dash_testing::names::beside;
use dash_testing::{Need, skip};
use suite::parts::Part;
use suite::peers::Session;
use suite::rights::{GROUP, LIST, MASK, OTHERS, OWNER, USER, encode};
use suite::sql::run;

/// A pair at rest that everybody may read.
fn made() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let path = folder.path().join("app.db");
    let db = suite::open(&path);
    run(&db, "CREATE TABLE t(v); INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)");
    drop(db);
    for file in [path.clone(), beside(&path, "-shadow")] {
        fs::set_permissions(file, fs::Permissions::from_mode(0o644)).unwrap();
    }
    (folder, path)
}

fn bits(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o777
}

#[test]
fn at_the_next_opening_for_writing() {
    for more in ["", "&journal_mode=delete"] {
        let (_folder, path) = made();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        suite::load();
        let db = rusqlite::Connection::open(suite::uri(&path, more)).unwrap();
        assert_eq!(suite::one::<i64>(&db, "SELECT count(*) FROM t"), 2);
        assert!(!beside(&path, "-shadow").exists(), "{more}");
        drop(db);
        let db = suite::open(&path);
        run(&db, "PRAGMA journal_mode=shadow; INSERT INTO t VALUES (3)");
        assert_eq!(bits(&beside(&path, "-shadow")), 0o600, "{more}");
    }
}

/// A mere reader changes no file, and says what he sees.
#[test]
fn and_who_reads_says_so() {
    for more in ["&mode=ro", "&mode=ro&journal_mode=shadow"] {
        let (_folder, path) = made();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let part = Part { parameters: more, ..Part::default() };
        let mut session = Session::dash(&path, part).unwrap();
        assert_eq!(session.must("SELECT count(*) FROM t"), "2");
        let said = session.must("SELECT dash_last_error()");
        assert!(said.contains("app.db-shadow may be read or written by users"), "{more}: {said}");
        session.close();
        assert_eq!(bits(&beside(&path, "-shadow")), 0o644, "{more}");
    }
}

#[test]
fn and_so_does_a_chown() {
    if !root_for("giving a file away") {
        return;
    }
    let (_folder, path) = made();
    chown(&path, Some(2001), Some(5000)).unwrap();
    let db = suite::open(&path);
    assert_eq!(suite::one::<i64>(&db, "SELECT count(*) FROM t"), 2);
    assert!(!beside(&path, "-shadow").exists());
    run(&db, "INSERT INTO t VALUES (3)");
    let shadow = fs::metadata(beside(&path, "-shadow")).unwrap();
    assert_eq!((shadow.uid(), shadow.gid()), (2001, 5000));
}

#[test]
fn what_could_not_be_narrowed_is_said() {
    if !root_for("becoming another user") {
        return;
    }
    let (_folder, path) = made();
    chown(&path, Some(2001), Some(2001)).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    // The shadow stays root's, and open to all.
    let owner = Part { user: Some(2001), parameters: "&mode=ro", ..Part::default() };
    let mut session = Session::dash(&path, owner).unwrap();
    session.must("SELECT count(*) FROM t");
    let said = session.must("SELECT dash_last_error()");
    assert!(said.contains("app.db-shadow may be read or written by users"), "{said}");
    session.close();
}

/// Rights that are given back, too, and in the first session already.
#[test]
fn and_what_is_given_back_to_somebody_who_is_not_root() {
    if !root_for("becoming another user") {
        return;
    }
    let (folder, path) = made();
    for file in [path.clone(), beside(&path, "-shadow")] {
        chown(file, Some(2001), Some(2001)).unwrap();
    }
    chown(folder.path(), Some(2001), Some(2001)).unwrap();
    fs::set_permissions(beside(&path, "-shadow"), fs::Permissions::from_mode(0o444)).unwrap();
    let part = Part { user: Some(2001), ..Part::default() };
    let mut session = Session::dash(&path, part).expect("opens");
    session.must("INSERT INTO t VALUES (3)");
    session.close();
    assert_eq!(bits(&beside(&path, "-shadow")), 0o644);
}

/// In mode shadow, whoever opens it, and while it is open: the copies take turns at being `app.db`.
#[test]
fn and_so_does_such_a_list_in_mode_shadow() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let open = |more: &str| {
        suite::load();
        rusqlite::Connection::open(suite::uri(&path, &format!("&dash_rest=off{more}"))).unwrap()
    };
    let both_have = |bits: u16, what: &str| {
        for name in ["", "-shadow"].into_iter().filter(|name| beside(&path, name).exists()) {
            let found = xattr::get(beside(&path, name), LIST).unwrap();
            assert_eq!(found, Some(list(bits)), "{name}, {what}");
        }
    };
    run(&open(""), "CREATE TABLE t(v); INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)");
    if xattr::set(&path, LIST, &list(6)).is_err() {
        return skip(Need::Lists, "this file system has no access control lists");
    }
    for more in ["", "&journal_mode=delete"] {
        xattr::set(&path, LIST, &list(6)).unwrap();
        drop(open("").query_row("SELECT count(*) FROM t", [], |_| Ok(())));
        both_have(6, more);
        xattr::set(&path, LIST, &list(0)).unwrap();
        drop(open(more).query_row("SELECT count(*) FROM t", [], |_| Ok(())));
        both_have(0, more);
    }
    for rows in 1..4 {
        let db = open("");
        run(&db, "INSERT INTO t VALUES (1)");
        let bits = [0, 6][rows % 2];
        xattr::set(&path, LIST, &list(bits)).unwrap();
        (0..rows).for_each(|_| run(&db, "INSERT INTO t VALUES (2)"));
        both_have(bits, "while it is open");
    }
}

/// The owner, users 2001 and 2002, and nobody else.
fn list(bits: u16) -> Vec<u8> {
    encode(&[
        (OWNER, 6, u32::MAX),
        (USER, bits, 2001),
        (USER, 6, 2002),
        (GROUP, 0, u32::MAX),
        (MASK, 6, u32::MAX),
        (OTHERS, 0, u32::MAX),
    ])
}

/// A list may take a user's rights and leave the bits as they are, which are the most that it
/// gives. In mode wal that holds for what is made anew: not for the `-wal` that a crash has left.
#[test]
fn and_so_does_a_list_that_leaves_the_bits_alone() {
    for is_killed in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.db");
        let open = || {
            suite::load();
            let uri = suite::uri(&path, "&journal_mode=wal&dash_rest=off");
            rusqlite::Connection::open(uri).unwrap()
        };
        run(&open(), "CREATE TABLE t(v)");
        if xattr::set(&path, LIST, &list(6)).is_err() {
            return skip(Need::Lists, "this file system has no access control lists");
        }
        let db = open();
        run(&db, "INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)");
        if is_killed {
            // What a process that was killed leaves is what lies there now.
            for name in ["", "-wal", "-dashlog"] {
                let (from, to) =
                    (beside(&path, name), folder.path().join(format!("copy.db{name}")));
                fs::copy(&from, &to).unwrap();
                xattr::set(&to, LIST, &list(6)).unwrap();
            }
        }
        drop(db);
        let path = if is_killed { folder.path().join("copy.db") } else { path.clone() };
        xattr::set(&path, LIST, &list(0)).unwrap();
        let uri = suite::uri(&path, "&journal_mode=wal");
        let db = rusqlite::Connection::open(uri).unwrap();
        (0..12).for_each(|_| run(&db, "INSERT INTO t VALUES (3)"));
        for name in ["-wal", "-shm", "-dashlog"] {
            let found = xattr::get(beside(&path, name), LIST).unwrap();
            let bits = if is_killed && name == "-wal" { 6 } else { 0 };
            assert_eq!(found, Some(list(bits)), "{name}, {is_killed}");
        }
    }
}
