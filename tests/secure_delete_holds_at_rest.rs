//! SEC3: with `PRAGMA secure_delete` the deleted row stayed in `app.db-shadow` until a later
//! commit. What SQLite overwrites is in no file of the database when it is closed: not in the copy
//! that the last commit was not made in, nor behind the end of a database that has become smaller.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

mod suite;

use std::fs;
use std::path::Path;

use dash_testing::names::beside;
use dash_testing::roles::{Role, python};
use dash_testing::{Need, skip};
use suite::sql::{at_rest, run, stat};

const SECRET: &str = "the-launch-code-is-00000000";

fn holds_it(folder: &Path) -> Vec<String> {
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    files
        .filter(|file| {
            let bytes = fs::read(file).unwrap();
            bytes.windows(SECRET.len()).any(|part| part == SECRET.as_bytes())
        })
        .map(|file| file.display().to_string())
        .collect()
}

/// Fills a database, deletes the secret, and says who still has it at rest.
fn after(pragma: &str, fill: &str, delete: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let db = suite::open(&path);
    run(&db, "CREATE TABLE t(v); CREATE TABLE u(v)");
    run(&db, &fill.replace("SECRET", &format!("'{SECRET}'")));
    drop(db);
    assert!(!holds_it(folder.path()).is_empty(), "it was there");
    let db = suite::open(&path);
    run(&db, pragma);
    run(&db, delete);
    drop(db);
    drop(at_rest(&path));
    let held = holds_it(folder.path());
    // The next session finds a pair as any.
    let db = suite::open(&path);
    run(&db, "INSERT INTO t VALUES (1)");
    suite::check(&db);
    assert_eq!(stat(&db, "rebuilds"), 0);
    held
}

const ONE: &str = "INSERT INTO t VALUES ('kept'); INSERT INTO t VALUES (SECRET); INSERT INTO t VALUES ('kept, too')";
const NONE: &[String] = &[];

#[test]
fn a_row() {
    for pragma in
        ["PRAGMA secure_delete=ON", "PRAGMA secure_delete=1", "PRAGMA main.secure_delete=FAST"]
    {
        assert_eq!(after(pragma, ONE, "DELETE FROM t WHERE v LIKE 'the%'"), NONE, "{pragma}");
        assert_eq!(after(pragma, ONE, "UPDATE t SET v = 'x' WHERE v LIKE 'the%'"), NONE);
    }
}

#[test]
fn a_row_and_then_another_commit() {
    let delete = "DELETE FROM t WHERE v LIKE 'the%'; INSERT INTO u VALUES (1)";
    assert_eq!(after("PRAGMA secure_delete=ON", ONE, delete), NONE);
}

#[test]
fn a_table_and_the_pages_behind_the_end() {
    let many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)
        INSERT INTO u SELECT SECRET || zeroblob(500) FROM n; INSERT INTO t VALUES ('kept')";
    for delete in [
        "DELETE FROM u; VACUUM",
        "DELETE FROM u; VACUUM; INSERT INTO t VALUES (2)",
        "DROP TABLE u; CREATE TABLE u(v)",
    ] {
        assert_eq!(after("PRAGMA secure_delete=ON", many, delete), NONE, "{delete}");
    }
}

/// Adding rows forgets nothing, and closing is as cheap as ever.
#[test]
fn who_deletes_nothing_pays_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let first = suite::open(&path);
    run(&first, "PRAGMA secure_delete=ON; CREATE TABLE t(v); INSERT INTO t VALUES ('a')");
    drop(first);
    let before = fs::read(beside(&path, "-shadow")).unwrap();
    let db = suite::open(&path);
    run(&db, "PRAGMA secure_delete=ON; INSERT INTO t VALUES ('b')");
    drop(db);
    let after = fs::read(beside(&path, "-shadow")).unwrap();
    // The former current copy, and not brought up: it has no second row.
    assert_eq!(before.len(), after.len());
    // Page 1 and the tail hold random ids.
    let rows = |bytes: &[u8]| bytes[4096..8192].iter().filter(|byte| **byte == b'b').count();
    assert!(rows(&after) < rows(&fs::read(&path).unwrap()));
}

/// Debian builds SQLite with it: nobody says a PRAGMA there.
#[test]
fn where_sqlite_was_built_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let script = "
options = [row[0] for row in scratch.execute('PRAGMA compile_options')]
say('built', 'SECURE_DELETE' in options)
db = open(sys.argv[2])
db.executescript('CREATE TABLE t(v); INSERT INTO t VALUES (\"kept\")')
db.execute('INSERT INTO t VALUES (?)', (sys.argv[3],))
db.execute('DELETE FROM t WHERE v LIKE \"the%\"')
db.close()
";
    let Some(mut command) = python(script, &[&path, Path::new(SECRET)]) else { return };
    let mut host = Role::spawn(&mut command);
    let built = host.hear("built");
    host.finish();
    if built == "True" {
        assert_eq!(holds_it(folder.path()), NONE);
    } else {
        skip(Need::SecureDelete, "Python's SQLite was not built with it");
    }
}
