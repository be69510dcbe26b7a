//! FT18 and FT22: a file that is no database is "not a database" through dash, too, and at the
//! moment at which stock SQLite says so: when it is first read, however it was opened, also in
//! ATTACH.

mod suite;

use std::fs;
use std::path::Path;

use rusqlite::{Connection, ffi};
use suite::peers::last_error;
use suite::sql::refused;

const NOTADB: (i32, &str) = (ffi::SQLITE_NOTADB, "file is not a database");

fn contents() -> Vec<(&'static str, Vec<u8>)> {
    let mut header = b"SQLite format 3\0".to_vec();
    header.extend([0xFF; 84]);
    header.extend([0; 4000]);
    vec![
        ("text", b"this is not a database file\n".repeat(200)),
        ("a word", b"hello".to_vec()),
        ("half a header", b"SQLite format 3\0\x10\0".to_vec()),
        ("a broken header", header),
        ("zeros", vec![0; 8192]),
        ("noise", vec![0xA5; 9000]),
    ]
}

fn alone(path: &Path) {
    let names: Vec<_> = fs::read_dir(path.parent().expect("a folder"))
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    assert_eq!(names.len(), 2, "something is left beside it: {names:?}");
}

#[test]
fn when_it_is_read_and_not_when_it_is_opened() {
    suite::load();
    for (what, content) in contents() {
        for more in ["", "&mode=ro", "&immutable=1", "&cache=private&psow=0"] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("app.db");
            let other = folder.path().join("other.db");
            fs::write(&path, &content).unwrap();
            fs::write(&other, b"").unwrap();
            let db = Connection::open(suite::uri(&path, more))
                .unwrap_or_else(|error| panic!("{what} {more}: {error}; {}", last_error()));
            let expected = suite::stock(&path).execute_batch("SELECT * FROM sqlite_master");
            for sql in ["SELECT * FROM sqlite_master", "CREATE TABLE t(x)", "BEGIN IMMEDIATE"] {
                let (code, message) = refused(&db, sql);
                assert_eq!((code, &*message), NOTADB, "{what} {more}: {sql}; stock: {expected:?}");
            }
            let said = last_error();
            assert!(said.contains("app.db is not an SQLite database"), "{what} {more}: {said}");
            drop(db);
            assert_eq!(fs::read(&path).unwrap(), content, "{what} {more}: written to");
            alone(&path);
        }
    }
}

/// The first connection to open it has found out what it is, and may be open still.
#[test]
fn to_each_connection_whenever_it_is_read() {
    suite::load();
    let folder = tempfile::tempdir().unwrap();
    let open = |name: &str, more: &str| {
        let path = folder.path().join(name);
        fs::write(&path, b"this is not a database file\n".repeat(200)).unwrap();
        (name.to_owned(), Connection::open(suite::uri(&path, more)).unwrap())
    };
    let all = [open("a.db", ""), open("b.db", ""), open("a.db", ""), open("b.db", "&mode=ro")];
    for (name, db) in all.iter().chain(&all) {
        assert_eq!(refused(db, "SELECT * FROM sqlite_master").0, NOTADB.0);
        let said = last_error();
        assert!(said.contains(&format!("{name} is not an SQLite database")), "{name}: {said}");
    }
    fs::write(folder.path().join("a.db"), b"nor is this\n".repeat(200)).unwrap();
    assert_eq!(refused(&all[0].1, "SELECT * FROM sqlite_master").0, NOTADB.0);
    assert!(last_error().contains("a.db is not an SQLite database"), "{}", last_error());
    let made = folder.path().join("made.db");
    suite::sql::run(&suite::stock(&made), "CREATE TABLE t(x)");
    fs::copy(&made, folder.path().join("a.db")).unwrap();
    let db = suite::open(&folder.path().join("a.db"));
    suite::sql::run(&db, "SELECT * FROM t");
    assert!(!last_error().contains("a.db is not"), "{}", last_error());
}

#[test]
fn when_it_is_attached() {
    for (what, content) in contents() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("app.db"), folder.path().join("junk.db"));
        let db = suite::open(&path);
        fs::write(&other, &content).unwrap();
        for more in ["", "&mode=ro"] {
            let sql = format!("ATTACH '{}' AS junk", suite::uri(&other, more));
            let (code, message) = refused(&db, &sql);
            assert_eq!(code & 0xFF, ffi::SQLITE_NOTADB, "{what} {more}: {message}");
            assert_eq!(message, "file is not a database", "{what} {more}");
        }
        suite::sql::run(&db, "CREATE TABLE t(x)");
        assert_eq!(fs::read(&other).unwrap(), content, "{what}");
    }
}

/// Who asks for mode shadow by name is told at once.
#[test]
fn when_mode_shadow_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    fs::write(&path, b"hello").unwrap();
    suite::load();
    assert!(Connection::open(suite::uri(&path, "&journal_mode=shadow")).is_err());
    assert!(last_error().contains("app.db is not an SQLite database"), "{}", last_error());
    let db = suite::open(&path);
    let (_, message) = refused(&db, "PRAGMA journal_mode=shadow");
    assert!(message.contains("app.db is not an SQLite database"), "{message}");
    assert_eq!(fs::read(&path).unwrap(), b"hello");
}
