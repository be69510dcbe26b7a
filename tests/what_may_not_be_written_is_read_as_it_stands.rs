//! Reading without the right to write: `mode=ro`, `immutable=1`, a file system mounted read-only,
//! files and folders of another user. Nothing is written, also where a writer was killed: then the
//! copy that recovery would choose is read, wherever its name is.

mod suite;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use dash_testing::machine::root_for;
use dash_testing::mounts::Mount;
use dash_testing::names::beside;
use suite::damage::{shadow, swap};
use suite::open;
use suite::peers::{Part, Session, Writer};
use suite::sql::run;
use suite::workload::{self, STATE};

/// Everybody and nobody.
const NOBODY: u32 = 65_534;

/// A database in a folder that everybody may look into, and the commits that it must have.
fn made(killed: bool, more: u64) -> (tempfile::TempDir, PathBuf, i64) {
    let folder = tempfile::tempdir().expect("a folder");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("ours");
    let path = folder.path().join("app.db");
    let db = open(&path);
    workload::make(&db);
    for _ in 0..3 {
        workload::commit_next(&db).expect("commits");
    }
    db.close().expect("closes");
    let mut state = 3;
    if killed {
        let mut writer = Writer::start(&path, Part::default());
        writer.reaches(6);
        std::thread::sleep(Duration::from_micros(more * 900));
        state = writer.kill();
    }
    (folder, path, state)
}

/// Every file's content, the coordination file of a killed process included.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("readable").path())
        .map(|path| (path.clone(), fs::read(path).ok()))
        .collect()
}

/// A dash process reads the state, can't write, and changes no byte in `folder`.
fn reads(folder: &Path, path: &Path, state: i64, part: Part<'_>, what: &str) {
    let before = contents(folder);
    let mut dash = Session::dash(path, part).unwrap_or_else(|error| panic!("{what}: {error}"));
    for _ in 0..2 {
        let answer = dash.sql(STATE).unwrap_or_else(|error| panic!("{what}: {error}"));
        let found = workload::number(&answer);
        assert!((state..=state + 1).contains(&found), "{what}: {found} of {state}");
        assert_eq!(dash.must("PRAGMA integrity_check"), "ok", "{what}");
        let error = dash.sql("DELETE FROM log").expect_err(what);
        assert!(error.contains("readonly"), "{what}: {error}");
    }
    dash.close();
    assert!(contents(folder) == before, "{what}: something was written");
}

#[test]
fn by_parameter() {
    for killed in [false, true] {
        for parameters in ["&mode=ro", "&mode=ro&dash_commit=single"] {
            let (folder, path, state) = made(killed, 3);
            let part = Part { parameters, ..Part::default() };
            reads(folder.path(), &path, state, part, &format!("{parameters}, killed: {killed}"));
        }
    }
    let (folder, path, state) = made(false, 0);
    let part = Part { parameters: "&immutable=1", ..Part::default() };
    reads(folder.path(), &path, state, part, "immutable");
}

#[test]
fn after_a_kill_at_any_moment() {
    for more in 0..12 {
        let (folder, path, state) = made(true, more);
        let part = Part { parameters: "&mode=ro", ..Part::default() };
        reads(folder.path(), &path, state, part, &format!("round {more}"));
        let db = open(&path);
        assert!(workload::state(&db) >= state);
    }
}

#[test]
fn after_a_kill_with_names_that_are_behind() {
    // As after a power loss before the exchange was durable.
    for more in 0..6 {
        let (folder, path, state) = made(true, more);
        swap(&path, &shadow(&path));
        let part = Part { parameters: "&mode=ro", ..Part::default() };
        reads(folder.path(), &path, state, part, &format!("swapped, round {more}"));
    }
}

#[test]
fn on_a_file_system_mounted_read_only() {
    for killed in [false, true] {
        let (folder, path, state) = made(killed, 4);
        let Some(mount) = Mount::read_only(folder.path()) else { return };
        let there = mount.path().join(path.file_name().unwrap());
        for parameters in ["", "&mode=ro"] {
            let part = Part { parameters, ..Part::default() };
            reads(
                folder.path(),
                &there,
                state,
                part,
                &format!("read-only medium, {parameters}, killed: {killed}"),
            );
        }
    }
}

#[test]
fn in_files_and_folders_of_another_user() {
    if !root_for("becoming another user") {
        return;
    }
    for killed in [false, true] {
        for parameters in ["", "&mode=ro"] {
            let (folder, path, state) = made(killed, 5);
            let part = Part { parameters, user: Some(NOBODY), ..Part::default() };
            reads(
                folder.path(),
                &path,
                state,
                part,
                &format!("another user, {parameters}, killed: {killed}"),
            );
        }
    }
}

#[test]
fn in_a_folder_that_is_read_only_with_files_that_are_not() {
    if !root_for("becoming another user") {
        return;
    }
    let (folder, path, state) = made(false, 0);
    for file in [path.clone(), shadow(&path)] {
        fs::set_permissions(file, fs::Permissions::from_mode(0o666)).unwrap();
    }
    // No names can be exchanged here: readable, and refused in words on a write.
    reads(
        folder.path(),
        &path,
        state,
        Part { user: Some(NOBODY), ..Part::default() },
        "read-only folder",
    );
}

#[test]
fn a_file_that_may_not_even_be_read_is_refused() {
    if !root_for("becoming another user") {
        return;
    }
    let (_folder, path, _) = made(false, 0);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let error = Session::dash(&path, Part { user: Some(NOBODY), ..Part::default() }).err().unwrap();
    assert!(
        error.contains("unable to open database file") && error.contains("ermission"),
        "{error}"
    );
}

/// Stock SQLite opens and reads them, and refuses what is written then.
#[test]
fn beside_files_of_wal_mode_that_may_only_be_read() {
    if !root_for("becoming another user") {
        return;
    }
    for readable in ["", "-wal", "-shm"] {
        let folder = tempfile::tempdir().expect("a folder");
        let [path, copy] = ["app.db", "copy.db"].map(|name| folder.path().join(name));
        let stock = rusqlite::Connection::open(&path).expect("opens");
        run(&stock, "PRAGMA journal_mode = WAL; CREATE TABLE t(v); INSERT INTO t VALUES (1)");
        for name in ["", "-wal", "-shm"] {
            let bits = if name == readable { 0o400 } else { 0o644 };
            fs::copy(beside(&path, name), beside(&copy, name)).expect("copied");
            chown(beside(&copy, name), Some(NOBODY), Some(NOBODY)).expect("given");
            fs::set_permissions(beside(&copy, name), fs::Permissions::from_mode(bits)).unwrap();
        }
        chown(folder.path(), Some(NOBODY), Some(NOBODY)).expect("given");
        let part = Part { user: Some(NOBODY), ..Part::default() };
        let mut dash =
            Session::dash(&copy, part).unwrap_or_else(|error| panic!("{readable}: {error}"));
        assert_eq!(dash.must("SELECT * FROM t"), "1", "copy.db{readable}");
        let error = dash.sql("DELETE FROM t").expect_err(readable);
        assert!(error.contains("readonly"), "copy.db{readable}: {error}");
        let said = dash.must("SELECT dash_last_error()");
        assert!(said.contains("0400"), "copy.db{readable}: {said}");
    }
}

#[test]
fn a_reader_without_rights_follows_a_writer_that_has_them() {
    // Otherwise the reader has the writer's rights.
    let user = root_for("becoming another user").then_some(NOBODY);
    let (_folder, path, _) = made(false, 0);
    let mut writer = Writer::start(&path, Part::default());
    writer.reaches(4);
    let mut reader =
        Session::dash(&path, Part { parameters: "&mode=ro", user, ..Part::default() }).unwrap();
    reader.must("PRAGMA busy_timeout=10000");
    for _ in 0..40 {
        let floor = writer.acknowledged();
        let state = workload::number(&reader.must(STATE));
        assert!(state >= floor, "{state} after {floor}");
        assert_eq!(reader.must("PRAGMA integrity_check"), "ok");
    }
    let acknowledged = writer.kill();
    let state = workload::number(&reader.must(STATE));
    assert!((acknowledged..=acknowledged + 1).contains(&state), "{state} of {acknowledged}");
}

#[test]
fn a_plain_file_is_read_on_when_it_has_become_one_in_wal_mode() {
    if !root_for("becoming another user") {
        return;
    }
    let (_folder, path, _) = made(false, 0);
    let part = Part { parameters: "&journal_mode=delete", user: Some(NOBODY), ..Part::default() };
    let mut reader = Session::dash(&path, part).unwrap();
    assert_eq!(workload::number(&reader.must(STATE)), 3);
    let stock = suite::stock(&path);
    stock.execute_batch("PRAGMA journal_mode=wal").expect("nobody uses it");
    workload::commit_next(&stock).expect("commits");
    assert_eq!(workload::number(&reader.must(STATE)), 4);
    assert!(reader.sql("CREATE TABLE x(x)").is_err(), "it may not write");
}
