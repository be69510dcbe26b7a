//! FT4 and FT26. A dash connection that may only read keeps no stock writer out,
//! and took no notice of what one left: after a stock writer had been killed with a part of its
//! transaction in the file, a reader that was open since before read that part ("malformed", or 881
//! rows of 2,000). Stock SQLite says READONLY_ROLLBACK then, and so does dash now, with the way
//! out.

mod suite;

use std::path::{Path, PathBuf};
use std::time::Duration;

use dash_testing::machine::root_for;
use dash_testing::names::{beside, exists};
use rusqlite::{Connection, ErrorCode};
use suite::peers::{Part, Session, last_error};
use suite::workload;

/// `SQLITE_READONLY_ROLLBACK`.
const READONLY_ROLLBACK: i32 = 776;

/// A database at rest, last written by dash or by stock SQLite, in a state of the workload.
fn made(by_dash: bool) -> (tempfile::TempDir, PathBuf, i64) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("app.db");
    let db = if by_dash { suite::open(&path) } else { suite::stock(&path) };
    workload::make(&db);
    for _ in 0..3 {
        workload::commit_next(&db).expect("commits");
    }
    db.close().expect("closes");
    (folder, path, 3)
}

fn read_only(path: &Path) -> Connection {
    suite::load();
    let db = Connection::open(suite::uri(path, "&mode=ro")).expect("opens");
    db.busy_timeout(Duration::ZERO).expect("sets");
    db
}

fn stock_read_only(path: &Path) -> Connection {
    let db = Connection::open(format!("file:{}?mode=ro", path.display())).expect("opens");
    db.busy_timeout(Duration::ZERO).expect("sets");
    db
}

/// The extended code that reading fails with.
fn refusal(db: &Connection) -> Result<i64, i32> {
    db.query_row("SELECT count(*) FROM spread", [], |row| row.get(0)).map_err(|error| match error {
        rusqlite::Error::SqliteFailure(error, _) => error.extended_code,
        other => panic!("{other}"),
    })
}

/// A stock writer is killed with a part of its transaction in the file.
fn stock_dies_half_way(path: &Path) {
    let mut writer = Session::stock(path);
    writer.writes_in_part(path);
    writer.kill();
    assert!(exists(&beside(path, "-journal")));
}

#[test]
fn by_a_reader_that_was_open_before() {
    for by_dash in [false, true] {
        let (_folder, path, state) = made(by_dash);
        let reader = read_only(&path);
        assert_eq!(workload::state(&reader), state);
        stock_dies_half_way(&path);
        let stock = refusal(&stock_read_only(&path));
        assert_eq!(stock, Err(READONLY_ROLLBACK), "what stock SQLite says");
        assert_eq!(refusal(&reader), stock, "last written by dash: {by_dash}");
        assert!(last_error().contains("journal"), "{}", last_error());
        assert!(last_error().contains("for writing"), "{}", last_error());
        // A new one beside it.
        assert_eq!(refusal(&read_only(&path)), stock);
        assert_eq!(refusal(&reader), stock);
        // Somebody who may write rolls it back.
        assert_eq!(workload::state(&suite::stock(&path)), state);
        assert_eq!(workload::state(&reader), state);
        let db = suite::open(&path);
        workload::commit_next(&db).expect("commits");
        assert_eq!(workload::state(&reader), state + 1);
    }
}

/// FT26.
#[test]
fn by_one_that_is_opened_beside_it() {
    for by_dash in [false, true] {
        let (_folder, path, state) = made(by_dash);
        stock_dies_half_way(&path);
        let reader = read_only(&path);
        assert_eq!(refusal(&reader), Err(READONLY_ROLLBACK));
        assert!(last_error().contains("app.db-journal"), "{}", last_error());
        assert!(last_error().contains("for writing"), "{}", last_error());
        // Opening it through dash is a way out, too.
        let db = suite::open(&path);
        assert_eq!(workload::state(&db), state);
        db.close().expect("closes");
        assert_eq!(workload::state(&read_only(&path)), state);
    }
}

#[test]
fn while_a_stock_writer_is_at_work_readers_see_what_is_committed_or_wait() {
    for by_dash in [false, true] {
        for opened_before in [false, true] {
            let (_folder, path, state) = made(by_dash);
            let before = opened_before.then(|| read_only(&path));
            if let Some(reader) = &before {
                assert_eq!(workload::state(reader), state);
            }
            let mut writer = Session::stock(&path);
            writer.must("BEGIN IMMEDIATE");
            writer.must("UPDATE spread SET n = 7");
            let reader = before.unwrap_or_else(|| read_only(&path));
            assert_eq!(workload::state(&reader), state, "nothing is in the file yet");
            writer.must("ROLLBACK");
            writer.writes_in_part(&path);
            let busy =
                reader.query_row("SELECT count(*) FROM spread", [], |row| row.get::<_, i64>(0));
            assert_eq!(
                busy.expect_err("half-written").sqlite_error_code(),
                Some(ErrorCode::DatabaseBusy)
            );
            writer.must("ROLLBACK");
            assert_eq!(workload::state(&reader), state);
            writer.close();
            let stock = suite::stock(&path);
            for (more, mode) in (1..).zip(["delete", "persist", "truncate"]) {
                let _now: String = suite::one(&stock, &format!("PRAGMA journal_mode={mode}"));
                workload::commit_next(&stock).expect("commits");
                assert_eq!(workload::state(&reader), state + more, "{mode}: not from a cache");
                assert_eq!(workload::state(&read_only(&path)), state + more, "{mode}");
            }
        }
    }
}

/// Without the right to write, `mode=ro` or not.
#[test]
fn by_somebody_without_permission() {
    use std::os::unix::fs::PermissionsExt;
    if !root_for("becoming another user") {
        return;
    }
    let (folder, path, state) = made(true);
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).expect("ours");
    let part = Part { user: Some(65_534), ..Part::default() };
    let mut reader = Session::dash(&path, part).expect("opens");
    assert_eq!(workload::number(&reader.must(workload::STATE)), state);
    stock_dies_half_way(&path);
    std::fs::set_permissions(beside(&path, "-journal"), std::fs::Permissions::from_mode(0o600))
        .expect("ours");
    let said = reader.sql(workload::STATE).expect_err("half-written");
    assert!(said.contains("readonly"), "{said}");
    assert!(reader.must("SELECT dash_last_error()").contains("app.db-journal"));
    assert_eq!(workload::state(&suite::stock(&path)), state);
    assert_eq!(workload::number(&reader.must(workload::STATE)), state);
}

/// Connections that write and that only read, in one process: when the last writing one has closed,
/// the others notice what stock SQLite leaves.
#[test]
fn nor_after_the_last_writing_connection_of_the_process_has_closed() {
    let (_folder, path, state) = made(true);
    let reader = read_only(&path);
    let db = suite::open(&path);
    workload::commit_next(&db).expect("commits");
    assert_eq!(workload::state(&reader), state + 1);
    let mut stock = Session::stock(&path);
    stock.sql("BEGIN IMMEDIATE").expect_err("dash has it open");
    stock.close();
    db.close().expect("closes");
    stock_dies_half_way(&path);
    assert_eq!(refusal(&reader), Err(READONLY_ROLLBACK));
    assert_eq!(workload::state(&suite::stock(&path)), state + 1);
    assert_eq!(workload::state(&reader), state + 1);
}
