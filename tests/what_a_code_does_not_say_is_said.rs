//! "unable to open database file", "no such vfs" or nothing at all: `dash_last_error()` says what
//! it is, and what to do.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

mod suite;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dash_testing::machine::root_for;
use dash_testing::mounts::Mount;
use dash_testing::roles::{Role, python};
use rusqlite::Connection;
use suite::parts::{Part, again, last_error};
use suite::peers::Session;
use suite::sql::run;
use tempfile::TempDir;

const NOBODY: u32 = 65_534;

/// A database of a row, in a folder with these permissions.
fn in_wal_mode(bits: u32) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(bits)).unwrap();
    let path = folder.path().join("app.db");
    let db = suite::open_dash(path.as_os_str(), "&journal_mode=wal").unwrap();
    run(&db, "CREATE TABLE t(x); INSERT INTO t VALUES (1)");
    db.close().unwrap();
    (folder, path)
}

#[test]
fn that_a_path_is_too_long() {
    let folder = tempfile::tempdir().unwrap();
    let deep = folder.path().join("d".repeat(250)).join("e".repeat(250));
    fs::create_dir_all(&deep).unwrap();
    let path = deep.join("app.db");
    // In a process of its own: what is no thread's error is the process's.
    let error = Session::dash(&path, Part::default()).map(Session::close).unwrap_err();
    assert!(error.contains("unable to open"), "{error}");
    let bytes = path.as_os_str().len();
    let words = format!("path has {bytes} bytes, and SQLite takes 512 at most");
    assert!(error.contains(&words), "{error}");
}

#[test]
fn what_reading_a_database_in_wal_mode_takes() {
    if !root_for("a database of somebody else") {
        return;
    }
    let (folder, path) = in_wal_mode(0o755);
    let part = Part { user: Some(NOBODY), ..Part::default() };
    // No statement can be prepared on that connection, nor be asked there.
    let log = folder.path().join("errors");
    fs::write(&log, "").unwrap();
    fs::set_permissions(&log, fs::Permissions::from_mode(0o666)).unwrap();
    let mut command = again("session", &path, part);
    let mut reader = {
        command.env("DASH_ERRORS", &log);
        Session::begin(command).unwrap()
    };
    let error = reader.sql("SELECT x FROM t").unwrap_err();
    let told = fs::read_to_string(&log).unwrap();
    let place = folder.path().canonicalize().unwrap().display().to_string();
    for words in [&*place, "the right to write its folder", "immutable=1"] {
        assert!(told.contains(words), "{words:?} is not in {told:?}, for {error}");
    }
    drop(reader);
    let mut reader = Session::dash(&path, Part { parameters: "&immutable=1", ..part }).unwrap();
    assert_eq!(reader.must("SELECT x FROM t"), "1");
}

/// It said that the user, who was root, may not write it, or nothing.
#[test]
fn what_to_do_where_the_medium_is_read_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let db = suite::open_dash(path.as_os_str(), "&journal_mode=wal").unwrap();
    run(&db, "CREATE TABLE t(x); INSERT INTO t VALUES (1)");
    db.close().unwrap();
    let Some(mount) = Mount::read_only(folder.path()) else { return };
    let there = mount.path().join("app.db");
    for parameters in ["", "&mode=ro"] {
        // No statement can be prepared on that connection, nor be asked there.
        let log = tempfile::NamedTempFile::new().unwrap();
        let mut command = again("session", &there, Part { parameters, ..Part::default() });
        command.env("DASH_ERRORS", log.path());
        let refused = match Session::begin(command) {
            Ok(mut reader) => reader.sql("SELECT x FROM t").map(drop),
            Err(error) => Err(error),
        };
        let told = fs::read_to_string(log.path()).unwrap();
        let advice = "is mounted read-only: use mode=ro&immutable=1";
        assert!(refused.is_err() && told.contains(advice), "{parameters}: {told:?}, {refused:?}");
        assert!(!told.contains("may not write"), "{told}");
    }
    let part = Part { parameters: "&mode=ro&immutable=1", ..Part::default() };
    assert_eq!(Session::dash(&there, part).unwrap().must("SELECT x FROM t"), "1");
}

/// It spoke of commits only.
#[test]
fn what_reading_takes_where_the_folder_alone_can_not_be_written() {
    if !root_for("a folder of somebody else") {
        return;
    }
    let (folder, path) = in_wal_mode(0o755);
    for name in fs::read_dir(folder.path()).unwrap() {
        let user = Some(NOBODY);
        std::os::unix::fs::chown(name.unwrap().path(), user, user).unwrap();
    }
    let log = tempfile::NamedTempFile::new().unwrap();
    fs::set_permissions(log.path(), fs::Permissions::from_mode(0o666)).unwrap();
    let user = Some(NOBODY);
    let part = Part { user, group: user, ..Part::default() };
    let mut command = again("session", &path, part);
    command.env("DASH_ERRORS", log.path());
    Session::begin(command).unwrap().sql("SELECT x FROM t").unwrap_err();
    let told = fs::read_to_string(log.path()).unwrap();
    for words in ["the right to write the database's folder", "Nor can it be read", "immutable=1"] {
        assert!(told.contains(words), "{words:?} is not in {told:?}");
    }
    let mut reader = Session::dash(&path, Part { parameters: "&immutable=1", ..part }).unwrap();
    assert_eq!(reader.must("SELECT x FROM t"), "1");
}

#[test]
fn that_a_folder_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("missing");
    let error = Session::dash(&place.join("app.db"), Part::default()).map(drop).unwrap_err();
    assert!(error.contains("make that folder first"), "{error}");
}

/// With each open file more, another system call of an opening fails.
const LIMITS: &str = "
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
first = open(sys.argv[2])
first.execute('CREATE TABLE t(v)')
first.close()
def tries(word):
    try:
        db = open(sys.argv[2])
        for i in range(100): db.execute('INSERT INTO t VALUES (randomblob(9000))')
    except sqlite3.Error: pass
    error = scratch.execute('SELECT dash_last_error()').fetchone()[0]
    say(word, error)
    return error
limits = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (8192, limits[1]))
tries('size')
resource.setrlimit(resource.RLIMIT_FSIZE, limits)
may_be_open = os.open('/dev/null', os.O_RDONLY)
os.close(may_be_open)
while True:
    resource.setrlimit(resource.RLIMIT_NOFILE, (may_be_open, 100))
    if tries('files') is None: break
    may_be_open += 1
";

#[test]
fn which_limit_is_in_the_way() {
    for mode in ["wal", "shadow"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.db");
        let script =
            LIMITS.replace("(sys.argv[2])", &format!("(sys.argv[2], '&journal_mode={mode}')"));
        let Some(mut command) = python(&script, &[&path]) else { return };
        let mut role = Role::spawn(&mut command);
        let said = role.hear("size");
        assert!(said.contains("ulimit -f"), "{mode}: {said}");
        let refusals =
            std::iter::from_fn(|| Some(role.hear("files")).filter(|said| said != "None"));
        let refusals: Vec<_> = refusals.collect();
        assert!(!refusals.is_empty(), "{mode}: {refusals:?}");
        assert!(refusals.iter().all(|said| said.contains("ulimit -n")), "{mode}: {refusals:?}");
    }
}

#[test]
fn that_a_database_is_read_by_stocks_rules() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let db = suite::open_dash(path.as_os_str(), "&journal_mode=wal").unwrap();
    run(&db, "CREATE TABLE t(x); INSERT INTO t VALUES (1)");
    db.close().unwrap();
    let part = Part { parameters: "&mode=ro", ..Part::default() };
    let mut reader = Session::dash(&path, part).unwrap();
    assert_eq!(reader.must("SELECT x, dash_engine() FROM t"), "1,plain");
    let words = "was opened read-only, by stock SQLite's rules";
    for ask in ["SELECT dash_last_error()", "SELECT value FROM dash_stats WHERE name='reason'"] {
        let said = reader.must(ask);
        assert!(said.contains(words), "{ask}: {said}");
    }
}

/// Root's cron made it before the service did.
#[test]
fn whose_a_database_is_that_can_not_be_written() {
    if !root_for("a database of somebody else") {
        return;
    }
    for mode in ["wal", "shadow"] {
        for more in ["", "&dash_durability=full", "&dash_commit=single"] {
            let folder = tempfile::tempdir().unwrap();
            std::os::unix::fs::chown(folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
            let path = folder.path().join("app.db");
            let db = suite::open_dash(path.as_os_str(), &format!("&journal_mode={mode}")).unwrap();
            run(&db, "CREATE TABLE t(x); INSERT INTO t VALUES (1)");
            db.close().unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
            let user = Some(NOBODY);
            let part = Part { user, group: user, parameters: more, ..Part::default() };
            let mut service = Session::dash(&path, part).unwrap();
            service.sql("INSERT INTO t VALUES (2)").unwrap_err();
            let said = service.must("SELECT dash_last_error()");
            for words in [
                "opened for reading only: ",
                "it is 0644 of user 0",
                "process is user 65534",
                "(chown)",
            ] {
                assert!(said.contains(words), "{mode} {more}: {words:?} is not in {said:?}");
            }
        }
    }
}

#[test]
fn whose_a_second_copy_is_that_can_not_be_read() {
    if !root_for("a shadow of somebody else") {
        return;
    }
    for parameters in ["", "&mode=ro"] {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let path = folder.path().join("app.db");
        run(&suite::open(&path), "CREATE TABLE t(x); INSERT INTO t VALUES (1)");
        std::os::unix::fs::chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
        let shadow = dash_testing::names::beside(&path, "-shadow");
        fs::set_permissions(&shadow, fs::Permissions::from_mode(0o600)).unwrap();
        let user = Some(NOBODY);
        let part = Part { user, group: user, parameters, ..Part::default() };
        // At rest stock SQLite needs none.
        let said = Session::dash(&path, part).unwrap().must("SELECT dash_last_error()");
        for words in ["app.db-shadow: Permission denied", "root mends that", "sqlite-dash shell "] {
            assert!(said.contains(words), "{parameters}: {words:?} is not in {said:?}");
        }
        assert!(!said.contains("chmod"), "{said}");
    }
}

/// What somebody is told who may not read a database.
fn told_to_nobody(path: &Path, parameters: &str) -> String {
    let user = Some(NOBODY);
    let log = tempfile::NamedTempFile::new().unwrap();
    fs::set_permissions(log.path(), fs::Permissions::from_mode(0o666)).unwrap();
    let part = Part { user, group: user, parameters, ..Part::default() };
    let mut command = again("session", path, part);
    command.env("DASH_ERRORS", log.path());
    let refused = match Session::begin(command) {
        Ok(mut session) => session.sql("SELECT x FROM t").map(drop),
        Err(error) => Err(error),
    };
    refused.unwrap_err();
    fs::read_to_string(log.path()).unwrap()
}

/// "Permission denied" was all, of a file beside it or of none.
#[test]
fn whose_a_database_is_that_can_not_be_read() {
    if !root_for("a database of somebody else") {
        return;
    }
    for mode in ["wal", "shadow", "delete"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.db");
        let db = suite::open_dash(path.as_os_str(), &format!("&journal_mode={mode}")).unwrap();
        run(&db, "CREATE TABLE t(x); INSERT INTO t VALUES (1)");
        db.close().unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let asked = format!("&journal_mode={mode}");
        for (bits, parameters) in [0o777, 0o755]
            .into_iter()
            .flat_map(|bits| ["", "&mode=ro", &asked].map(|it| (bits, it)))
        {
            fs::set_permissions(folder.path(), fs::Permissions::from_mode(bits)).unwrap();
            let told = told_to_nobody(&path, parameters);
            for words in ["it is 0600 of user 0, group 0", "this process is user 65534"] {
                assert!(told.contains(words), "{mode} {parameters}: {words:?} is not in {told:?}");
            }
        }
    }
}

/// "Permission denied" was all, of a file that nobody had asked for.
#[test]
fn whose_a_folder_is_in_which_no_database_can_be_made() {
    if !root_for("a folder of somebody else") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let path = folder.path().join("app.db");
    for parameters in ["", "&journal_mode=wal", "&journal_mode=shadow", "&journal_mode=delete"] {
        let told = told_to_nobody(&path, parameters);
        for words in ["app.db is to be made", "is 0755 of user 0, group 0", "user 65534"] {
            assert!(told.contains(words), "{parameters}: {words:?} is not in {told:?}");
        }
    }
}

/// It said that stock SQLite had opened it, which could not, either.
#[test]
fn that_nobody_has_a_right_to_what_lies_beside_a_database() {
    if !root_for("a database of somebody else") {
        return;
    }
    let (_folder, path) = in_wal_mode(0o777);
    std::os::unix::fs::chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
    let wal = dash_testing::names::beside(&path, "-wal");
    fs::write(&wal, "not to be lost").unwrap();
    fs::set_permissions(&wal, fs::Permissions::from_mode(0o600)).unwrap();
    let (user, parameters) = (Some(NOBODY), "");
    let refused = Session::dash(&path, Part { user, group: user, parameters, ..Part::default() })
        .and_then(|mut session| session.sql("SELECT x FROM t"))
        .unwrap_err();
    assert!(refused.contains("app.db-wal: Permission denied"), "{refused}");
    assert!(!refused.contains("opened by stock"), "{refused}");
}

/// It stays so as long as the connection, whatever is said meanwhile.
#[test]
fn that_a_database_was_opened_by_stocks_rules() {
    if !root_for("a database of somebody else") {
        return;
    }
    let (_folder, path) = in_wal_mode(0o777);
    std::os::unix::fs::chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
    // Who can read it sees that nothing in it counts, and makes another one.
    let log = dash_testing::names::beside(&path, "-dashlog");
    fs::set_permissions(log, fs::Permissions::from_mode(0o600)).unwrap();
    let mut other =
        Session::dash(&path, Part { user: Some(NOBODY), group: Some(NOBODY), ..Part::default() })
            .unwrap();
    assert_eq!(other.must("PRAGMA journal_mode=WAL"), "wal");
    assert_eq!(other.must("SELECT dash_engine()"), "plain");
    other.must("PRAGMA busy_timeout=0");
    let stock = Connection::open(&path).unwrap();
    run(&stock, "BEGIN IMMEDIATE");
    other.sql("INSERT INTO t VALUES (2)").unwrap_err();
    let told = other.must("SELECT dash_last_error()");
    assert!(told.contains("app.db is locked"), "{told}");
    run(&stock, "COMMIT");
    other.must("INSERT INTO t VALUES (2)");
    let told = other.must("SELECT dash_last_error()");
    assert!(told.contains("app.db-dashlog"), "{told}");
}

/// Hosts go from thread to thread between two calls (Go). No other test here is refused a lock in
/// this process.
#[test]
fn who_has_it_locked_to_another_thread_as_well() {
    for mode in ["wal", "shadow"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.db");
        let parameters = format!("&journal_mode={mode}");
        let open = || suite::open_dash(path.as_os_str(), &parameters).unwrap();
        let (db, other) = (open(), open());
        run(&db, "CREATE TABLE t(x); BEGIN IMMEDIATE");
        other.busy_timeout(std::time::Duration::ZERO).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap_err();
        let told = std::thread::spawn(suite::parts::last_error).join().unwrap();
        assert!(told.contains("app.db is locked: another connection of this process"), "{told}");
    }
}

/// Python's collector closes connections at any moment, in between, too.
#[test]
fn whatever_other_connections_close_before_it_is_asked() {
    suite::load();
    let folder = tempfile::tempdir().expect("a folder");
    let open = |name: &str| suite::open(&folder.path().join(name));
    let [one, two] = ["app.db"; 2].map(open);
    let other = open("other.db");
    for db in [&one, &other] {
        db.execute_batch("PRAGMA journal_mode=WAL; CREATE TABLE t(v)").expect("makes it");
    }
    one.execute_batch("BEGIN IMMEDIATE").expect("begins");
    two.busy_timeout(Duration::ZERO).expect("takes it");
    two.execute_batch("BEGIN IMMEDIATE").expect_err("it is locked");
    other.close().expect("closes");
    let said = last_error();
    assert!(said.contains("app.db is locked") && said.contains("has been writing"), "{said}");
}
