//! FT19: a header whose write version is above 2 says that only a newer SQLite may write the file.
//! dash uses 3 to mark its own older copy, 4 to protect one; a file that says so without a block of
//! dash beside is somebody else's, and is read, but not written, as stock SQLite does.

mod suite;

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;

use dash_testing::names::beside;
use rusqlite::{Connection, ffi};
use suite::peers::last_error;
use suite::sql::{at_rest, refused, run};

const WRITE_VERSION: u64 = 18;

fn set_version(path: &Path, version: u8) {
    let file = fs::File::options().write(true).open(path).expect("ours");
    file.write_all_at(&[version], WRITE_VERSION).expect("ours");
}

#[test]
fn a_file_that_dash_never_touched() {
    for version in [3, 4, 9] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.db");
        run(&suite::stock(&path), "CREATE TABLE t(x); INSERT INTO t VALUES (1)");
        set_version(&path, version);
        let before = fs::read(&path).unwrap();
        let expected = refused(&suite::stock(&path), "INSERT INTO t VALUES (2)");
        assert_eq!(expected.0, ffi::SQLITE_READONLY);
        let db = suite::open(&path);
        for sql in ["INSERT INTO t VALUES (2)", "CREATE TABLE u(x)"] {
            assert_eq!(refused(&db, sql), expected, "{version}: {sql}");
        }
        assert_eq!(suite::one::<i64>(&db, "SELECT count(*) FROM t"), 1);
        if version < 9 {
            let said = last_error();
            assert!(said.contains("write version"), "{said}");
        }
        drop(db);
        let reader = Connection::open(suite::uri(&path, "&mode=ro")).unwrap();
        assert_eq!(suite::one::<i64>(&reader, "SELECT count(*) FROM t"), 1);
        drop(reader);
        assert_eq!(fs::read(&path).unwrap(), before, "{version}: written to");
    }
}

/// Its own mark dash takes away: the older copy, alone or under the database's name.
#[test]
fn but_a_former_copy_of_dash_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let db = suite::open(&path);
    run(&db, "CREATE TABLE t(x); INSERT INTO t VALUES (1)");
    let former = folder.path().join("former.db");
    fs::copy(beside(&path, "-shadow"), &former).unwrap();
    assert_eq!(fs::read(&former).unwrap()[18..20], [3, 1], "not marked");
    drop(db);
    let db = suite::open(&former);
    run(&db, "CREATE TABLE IF NOT EXISTS u(x); INSERT INTO u VALUES (1)");
    drop(db);
    at_rest(&former);
}
