//! What `dash_backup()` does in a SELECT that somebody got into a program's SQL: it makes a copy of
//! the database in the database's own folder, replaces nothing, and nothing at all where the
//! connection may only read. More takes the program's leave: `dash_backup=on` in the URI.

mod suite;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use dash_testing::names::names;
use rusqlite::{Connection, ErrorCode};
use suite::one;
use suite::sql::run;

const LEAVE: &str = "&dash_backup=on";
const ALONE: &str = "SELECT name FROM u WHERE name = '' UNION SELECT dash_backup(?1)";
const REPLACES: &str =
    "SELECT name FROM u WHERE name = '' UNION SELECT dash_backup(?1, 'main', 'replace')";

/// A folder with a database in it, and one with nothing.
struct Place {
    own: tempfile::TempDir,
    other: tempfile::TempDir,
}

impl Place {
    fn new(mode: &str) -> Self {
        let folder = || tempfile::tempdir().expect("a folder");
        let place = Self { own: folder(), other: folder() };
        let db = suite::open(&place.db());
        run(&db, &format!("PRAGMA journal_mode = {mode}; CREATE TABLE u(name)"));
        run(&db, "INSERT INTO u VALUES ('<?php ?>')");
        place
    }

    fn db(&self) -> PathBuf {
        self.own.path().join("app.db")
    }

    fn open(&self, parameters: &str) -> Connection {
        suite::open_dash(self.db().as_os_str(), parameters).expect("opens")
    }
}

fn copy(db: &Connection, sql: &str, to: &Path) -> rusqlite::Result<i64> {
    db.query_row(sql, [to.to_str().expect("text")], |row| row.get(0))
}

/// It is refused for want of leave, and says how that is given.
fn refused(db: &Connection, sql: &str, to: &Path, why: &str) {
    let error = copy(db, sql, to).expect_err("SQL alone may not");
    assert_eq!(error.sqlite_error_code(), Some(ErrorCode::ReadOnly), "{error}");
    let said = error.to_string();
    assert!(said.contains(why) && said.contains("dash_backup=on in its URI"), "{said}");
}

/// SEC S2-4
#[test]
fn where_a_connection_may_only_read_there_is_none() {
    for mode in ["wal", "shadow", "delete"] {
        let place = Place::new(mode);
        let (new, keys) = (place.own.path().join("new.php"), place.own.path().join("keys"));
        fs::write(&keys, "mine").unwrap();
        fs::set_permissions(&keys, fs::Permissions::from_mode(0o600)).unwrap();
        let asking = place.open("");
        run(&asking, "PRAGMA query_only = ON");
        for db in [place.open("&mode=ro"), place.open("&immutable=1"), asking] {
            for to in [&new, &keys, &place.other.path().join("new.db")] {
                refused(&db, ALONE, to, "no file is made");
                refused(&db, REPLACES, to, "no file is made");
            }
        }
        assert_eq!(fs::read(&keys).unwrap(), b"mine");
        assert!(!new.exists() && names(place.other.path()).is_empty());
        // The program may.
        let db = place.open(&format!("&mode=ro{LEAVE}"));
        run(&db, "PRAGMA query_only = ON");
        copy(&db, ALONE, &new).expect("a copy");
        suite::check(&suite::stock(&new));
    }
}

/// SEC S2-4
#[test]
fn nothing_is_replaced_and_no_other_folder_is_written() {
    for mode in ["wal", "shadow", "delete"] {
        let place = Place::new(mode);
        let (own, other) = (place.own.path(), place.other.path());
        symlink(other, own.join("leads-out")).unwrap();
        symlink(own, other.join("leads-in")).unwrap();
        fs::create_dir(own.join("inside")).unwrap();
        fs::write(own.join("keys"), "mine").unwrap();
        fs::write(own.join("empty"), "").unwrap();
        drop(suite::stock(&own.join("old.db")).execute_batch("CREATE TABLE t(x)"));
        let before = fs::read(own.join("old.db")).unwrap();
        let db = place.open("");
        for to in [other.join("a.db"), own.join("leads-out/a.db"), own.join("inside/a.db")] {
            refused(&db, ALONE, &to, "is not the folder of the database");
        }
        for name in ["keys", "empty", "old.db", "new.db"] {
            refused(&db, REPLACES, &own.join(name), "replacing a file takes");
        }
        let error = copy(&db, ALONE, &own.join("keys")).unwrap_err();
        assert!(error.to_string().contains("exists; name another file"), "{error}");
        assert_eq!(fs::read(own.join("keys")).unwrap(), b"mine");
        assert_eq!(fs::read(own.join("old.db")).unwrap(), before);
        assert_eq!(names(other), ["leads-in"]);
        copy(&db, ALONE, &own.join("a.db")).expect("a copy in its own folder");
        copy(&db, ALONE, &other.join("leads-in/b.db")).expect("that is its own folder, too");
        suite::check(&suite::stock(&own.join("b.db")));
    }
    suite::load();
    let db = suite::stock(Path::new(":memory:"));
    run(&db, "CREATE TABLE u(name)");
    let folder = tempfile::tempdir().unwrap();
    refused(&db, ALONE, &folder.path().join("a.db"), "main is no file of this connection");
}

/// A path that leads to another folder by now doesn't make that the database's, whatever lies there
/// under the database's name. SEC A10-2
#[test]
fn a_folder_that_has_taken_the_place_of_the_databases_is_not_written() {
    for (mode, vfs) in [("wal", true), ("shadow", true), ("delete", true), ("delete", false)] {
        let place = Place::new(mode);
        let (own, other) = (place.own.path().join("in"), place.other.path());
        fs::create_dir(&own).unwrap();
        fs::copy(place.db(), own.join("app.db")).unwrap();
        fs::copy(place.db(), other.join("app.db")).unwrap();
        let db = match vfs {
            true => suite::open_dash(own.join("app.db").as_os_str(), "").unwrap(),
            false => suite::stock(&own.join("app.db")),
        };
        copy(&db, ALONE, &own.join("a.db")).expect("a copy in its own folder");
        let away = place.own.path().join("away");
        fs::rename(&own, &away).unwrap();
        symlink(other, &own).unwrap();
        copy(&db, ALONE, &own.join("b.db")).expect_err("that is another folder");
        assert_eq!(names(other), ["app.db"], "{mode}");
        // Nor is one that has another name of the file.
        fs::remove_file(other.join("app.db")).unwrap();
        fs::hard_link(away.join("app.db"), other.join("app.db")).unwrap();
        copy(&db, ALONE, &own.join("b.db")).expect_err("that is another folder");
        assert_eq!(names(other), ["app.db"], "{mode}");
        drop(db);
    }
}

/// Also where the program has given its leave: what is no database may be anything. SEC S2-4
#[test]
fn what_is_no_database_is_never_replaced() {
    let place = Place::new("wal");
    let (db, other) = (place.open(LEAVE), place.other.path());
    let stock = suite::stock(&other.join("old.db"));
    run(&stock, "CREATE TABLE t(x); INSERT INTO t VALUES (1)");
    drop(stock);
    let old = fs::read(other.join("old.db")).unwrap();
    let cut = [&old[..], b"x"].concat();
    for (name, content) in [
        ("text", &b"ssh-ed25519 AAAA owner"[..]),
        ("magic", b"SQLite format 3\0"),
        ("cut.db", &cut),
        ("log", b"\xFF\xFF\xFF\xFFDSHG and so on"),
    ] {
        let to = other.join(name);
        fs::write(&to, content).unwrap();
        let error = copy(&db, REPLACES, &to).unwrap_err();
        assert!(error.to_string().contains("is neither an SQLite database nor empty"), "{error}");
        assert_eq!(error.sqlite_error_code(), Some(ErrorCode::CannotOpen));
        assert_eq!(fs::read(&to).unwrap(), content);
    }
    fs::write(other.join("empty.db"), "").unwrap();
    for name in ["old.db", "empty.db", "new.db"] {
        copy(&db, REPLACES, &other.join(name)).expect("that may be replaced");
        let copied = suite::stock(&other.join(name));
        assert_eq!(one::<i64>(&copied, "SELECT count(*) FROM u"), 1);
    }
}

/// A leave that is misspelt is none, and says so.
#[test]
fn a_leave_is_given_by_its_name_alone() {
    let place = Place::new("wal");
    for wrong in ["&dash_backup=yes", "&dash_backup=", "&dash_backups=on"] {
        let opened = suite::open_dash(OsStr::new(place.db().as_os_str()), wrong);
        assert!(opened.is_err(), "{wrong}");
    }
    let to = place.other.path().join("a.db");
    refused(&place.open("&dash_backup=off"), ALONE, &to, "is not the folder of the database");
    // Nobody gives it to himself: who may say ATTACH says it with any URI.
    let db = place.open("");
    run(&db, &format!("ATTACH '{}' AS aux", suite::uri(place.db().with_file_name("b.db"), LEAVE)));
    let copied = db.query_row("SELECT dash_backup(?1, 'aux')", [to.to_str()], |_| Ok(()));
    assert!(copied.is_err() && !to.exists());
}
