//! A database may have any name that the file system takes: spaces, characters that URIs give a
//! meaning to, bytes that are no UTF-8. It may be reached by a relative path and through symbolic
//! links, but not through a second hard link: each would keep another state.

mod suite;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use dash_testing::names::{beside, exists};
use suite::damage::shadow;
use suite::open_dash;
use suite::peers::{Part, Session, Writer, last_error};
use suite::{check, one, open, workload};

/// Commits, closes, opens again; then stock SQLite reads it.
fn works(path: &Path) {
    for round in 0..3 {
        let db = open_dash(path.as_os_str(), "")
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(one::<String>(&db, "SELECT dash_engine()"), "shadow");
        db.execute_batch(
            "CREATE TABLE IF NOT EXISTS t(a); INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)",
        )
        .expect("commits");
        assert_eq!(one::<i64>(&db, "SELECT count(*) FROM t"), 2 * round + 2);
        check(&db);
        db.close().expect("closes");
        assert!(
            exists(&shadow(path))
                && !exists(&beside(path, "-dash"))
                && !exists(&beside(path, "-journal"))
        );
    }
    if path.to_str().is_some() {
        let mut stock = Session::stock(path);
        assert_eq!(stock.must("SELECT count(*) FROM t"), "6");
    }
}

#[test]
fn names_with_any_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let names: [&[u8]; 13] = [
        b"with spaces.db",
        b" ",
        b"100%.db",
        b"%41.db",
        b"what?.db",
        b"a?vfs=unix&mode=ro",
        b"#1.db",
        b"a&b=c;d.db",
        b"quo'te\".db",
        b"no ending",
        b"\xff\xfe\x80.db",
        "d\u{e9}j\u{e0} vu \u{1f680}.db".as_bytes(),
        b"line\nbreak.db",
    ];
    for name in names {
        works(&folder.path().join(OsStr::from_bytes(name)));
    }
    let long = OsString::from_vec(vec![b'x'; 240]);
    works(&folder.path().join(long));
}

#[test]
fn a_name_too_long_for_what_lies_beside_is_refused_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x".repeat(252));
    let message = match Session::dash(&path, Part::default()) {
        Err(message) => message,
        Ok(mut dash) => dash.sql("CREATE TABLE t(a)").unwrap_err(),
    };
    assert!(message.to_lowercase().contains("long"), "{message}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left behind");
}

#[test]
fn a_folder_with_such_a_name_and_a_killed_writer() {
    let outer = tempfile::tempdir().unwrap();
    for name in [&b"50% of #1?"[..], b"\xff\xfe"] {
        let folder = outer.path().join(OsStr::from_bytes(name));
        fs::create_dir(&folder).unwrap();
        let path = folder.join("app.db");
        let db = open_dash(path.as_os_str(), "").unwrap();
        workload::make(&db);
        db.close().unwrap();
        let mut writer = Writer::start(&path, Part::default());
        writer.reaches(3);
        let acknowledged = writer.kill();
        let db = open_dash(path.as_os_str(), "").unwrap();
        assert!(workload::state(&db) >= acknowledged);
    }
}

#[test]
fn a_relative_path() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("below")).unwrap();
    let part = Part { folder: Some(folder.path()), ..Part::default() };
    for (commits, name) in (1..).zip(["app.db", "./app.db", "below/../app.db", "below/.././app.db"])
    {
        let mut dash = Session::dash(Path::new(name), part).unwrap();
        dash.must("CREATE TABLE IF NOT EXISTS t(a)");
        dash.must("INSERT INTO t VALUES (1)");
        assert_eq!(dash.must("SELECT count(*) FROM t"), commits.to_string(), "{name}");
        // The same database by its full name, at the same time.
        let db = open(&folder.path().join("app.db"));
        assert_eq!(one::<i64>(&db, "SELECT count(*) FROM t"), commits);
        drop(db);
        dash.close();
    }
    let mut stock = Session::stock(&folder.path().join("app.db"));
    assert_eq!(stock.must("SELECT count(*) FROM t"), "4");
}

#[test]
fn symbolic_links_lead_to_the_one_database() {
    let folder = tempfile::tempdir().unwrap();
    let real = folder.path().join("real");
    fs::create_dir(&real).unwrap();
    let path = real.join("app.db");
    let (to_file, to_link, to_folder) = (
        folder.path().join("link.db"),
        folder.path().join("link2.db"),
        folder.path().join("linked"),
    );
    std::os::unix::fs::symlink("real/app.db", &to_file).unwrap();
    std::os::unix::fs::symlink(&to_file, &to_link).unwrap();
    std::os::unix::fs::symlink(&real, &to_folder).unwrap();
    let db = open(&path);
    db.execute_batch("CREATE TABLE t(a)").unwrap();
    for (rows, other) in (1..).zip([&to_file, &to_link, &to_folder.join("app.db")]) {
        let through = open(other);
        through.execute_batch("INSERT INTO t VALUES (1)").unwrap();
        db.execute_batch("INSERT INTO t VALUES (2)").unwrap();
        assert_eq!(one::<i64>(&through, "SELECT count(*) FROM t"), 2 * rows);
        assert_eq!(one::<i64>(&db, "SELECT count(*) FROM t"), 2 * rows);
        assert!(
            !exists(&shadow(&to_file)) && !exists(&shadow(&to_link)),
            "nothing beside the links"
        );
    }
    db.close().unwrap();
    assert!(to_file.symlink_metadata().unwrap().is_symlink());
    let mut stock = Session::stock(&to_link);
    assert_eq!(stock.must("SELECT count(*) FROM t"), "6");
}

#[test]
fn hard_links_are_refused_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let db = open(&path);
    db.execute_batch("CREATE TABLE t(a); INSERT INTO t VALUES (1)").unwrap();
    db.close().unwrap();
    let second = folder.path().join("second.db");
    fs::hard_link(&path, &second).unwrap();
    for path in [&path, &second] {
        let message = Session::dash(path, Part::default()).err().unwrap();
        assert!(message.contains("hard links") && message.contains("remove"), "{message}");
    }
    fs::remove_file(&second).unwrap();
    let db = open(&path);
    db.execute_batch("INSERT INTO t VALUES (2)")
        .unwrap_or_else(|error| panic!("{error}: {}", last_error()));
    assert_eq!(one::<i64>(&db, "SELECT count(*) FROM t"), 2);
}

/// dash's own files have longer names than the database: that is said when it is opened, not at the
/// first statement.
#[test]
fn as_long_as_the_files_beside_it_have_names() {
    let folder = tempfile::tempdir().expect("a folder");
    works(&folder.path().join("n".repeat(244)));
    let refused = open_dash(folder.path().join("n".repeat(245)).as_os_str(), "").err();
    assert!(refused.is_some());
    assert!(last_error().contains("244 bytes"), "{}", last_error());
}
