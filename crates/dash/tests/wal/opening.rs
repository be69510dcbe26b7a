//! Which engine opens what lies there.

use crate::common::*;
use crate::{at_rest, beside, create};

#[test]
fn a_file_that_stock_sqlite_left_in_wal_mode_keeps_it() {
    let folder = Folder::new();
    let stock = folder.stock("app.db");
    stock
        .execute_batch("PRAGMA journal_mode=WAL; CREATE TABLE t(x); INSERT INTO t VALUES (1)")
        .expect("commits");
    stock.close().expect("closes");
    let db = folder.open("app.db");
    assert_eq!(text(&db, "SELECT dash_engine()"), "wal");
    assert_eq!(text(&db, "PRAGMA journal_mode"), "wal");
    db.execute_batch("INSERT INTO t VALUES (2)").expect("commits");
    db.close().expect("closes");
    at_rest(&folder, "app.db");
    assert_eq!(number(&folder.stock("app.db"), "SELECT sum(x) FROM t"), 3);
}

#[test]
fn a_log_that_a_killed_stock_process_left_is_read() {
    let folder = Folder::new();
    let stock = folder.stock("source.db");
    stock
        .execute_batch("PRAGMA journal_mode=WAL; CREATE TABLE t(x); INSERT INTO t VALUES (1)")
        .expect("commits");
    for suffix in ["", "-wal"] {
        let (from, to) = (format!("source.db{suffix}"), format!("app.db{suffix}"));
        std::fs::copy(folder.path(&from), folder.path(&to)).expect("copies");
    }
    let db = folder.open("app.db");
    assert_eq!(text(&db, "SELECT dash_engine()"), "wal");
    assert_eq!(number(&db, "SELECT count(*) FROM t"), 1);
    db.execute_batch("INSERT INTO t VALUES (2)").expect("commits");
    db.close().expect("closes");
    at_rest(&folder, "app.db");
}

#[test]
fn a_journal_that_was_kept_is_not_in_the_way() {
    let folder = Folder::new();
    let stock = folder.stock("app.db");
    stock.execute_batch("CREATE TABLE t(x); PRAGMA journal_mode=WAL").expect("sets");
    stock.close().expect("closes");
    std::fs::write(folder.path("app.db-journal"), [0; 512]).expect("writes");
    let db = folder.open("app.db");
    for x in 1..=3 {
        db.execute("INSERT INTO t VALUES (?)", [x]).expect("commits");
    }
    assert_eq!(text(&db, "SELECT dash_engine()"), "wal");
    db.close().expect("closes");
    at_rest(&folder, "app.db");
    assert_eq!(number(&folder.stock("app.db"), "SELECT sum(x) FROM t"), 6);
}

/// What a process leaves that is killed while SQLite takes a database out of WAL mode.
#[test]
fn a_hot_journal_is_rolled_back_first() {
    let folder = Folder::new();
    let stock = folder.stock("source.db");
    stock.execute_batch("CREATE TABLE t(x); PRAGMA cache_size=5").expect("commits");
    let fill = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<3000) \
                INSERT INTO t SELECT hex(randomblob(100)) FROM n";
    stock.execute_batch(fill).expect("commits");
    stock.execute_batch("BEGIN; UPDATE t SET x = 'torn'").expect("spills");
    for suffix in ["", "-journal"] {
        let (from, to) = (format!("source.db{suffix}"), format!("app.db{suffix}"));
        std::fs::copy(folder.path(&from), folder.path(&to)).expect("copies");
    }
    let mut bytes = std::fs::read(folder.path("app.db")).expect("reads");
    bytes[18..20].fill(2);
    std::fs::write(folder.path("app.db"), bytes).expect("marks it");
    let db = folder.open("app.db");
    assert_eq!(text(&db, "SELECT dash_engine()"), "wal");
    assert_eq!(number(&db, "SELECT count(*) FROM t WHERE x <> 'torn'"), 3000);
    whole(&db);
    for x in 1..=3 {
        db.execute("INSERT INTO t VALUES (?)", [x]).expect("commits");
    }
    db.close().expect("closes");
    at_rest(&folder, "app.db");
}

#[test]
fn who_wants_to_stay_in_mode_shadow_says_so() {
    let folder = Folder::new();
    let stock = folder.stock("app.db");
    stock
        .execute_batch("PRAGMA journal_mode=WAL; CREATE TABLE t(x); INSERT INTO t VALUES (1)")
        .expect("commits");
    stock.close().expect("closes");
    let db = folder.try_open("app.db", "&dash_default=shadow").expect("opens");
    assert_eq!(text(&db, "SELECT dash_engine()"), "shadow");
    assert_eq!(text(&db, "PRAGMA journal_mode=WAL"), "shadow");
    assert!(last_error(&db).contains("dash_default=shadow"), "{}", last_error(&db));
    db.execute_batch("INSERT INTO t VALUES (2)").expect("commits");
    assert_eq!(text(&db, "PRAGMA journal_mode=delete"), "delete");
    db.close().expect("closes");
    assert_eq!(text(&folder.stock("app.db"), "PRAGMA journal_mode"), "delete");
}

#[test]
fn the_uri_puts_any_database_into_mode_wal() {
    let folder = Folder::new();
    // In rollback mode, with a journal that was kept.
    let stock = folder.stock("plain.db");
    stock
        .execute_batch("PRAGMA journal_mode=PERSIST; CREATE TABLE t(x); INSERT INTO t VALUES (1)")
        .expect("commits");
    stock.close().expect("closes");
    assert!(folder.exists("plain.db-journal"));
    // In mode shadow.
    let shadow = folder.open("shadow.db");
    shadow.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (1)").expect("commits");
    shadow.close().expect("closes");
    assert!(folder.exists("shadow.db-shadow"));
    // In mode shadow, and cut off: the newest commit may be under either name.
    let shadow = folder.open("source.db");
    shadow.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (0)").expect("commits");
    shadow.execute_batch("UPDATE t SET x = 1").expect("commits");
    for suffix in ["", "-shadow"] {
        let (from, to) = (format!("source.db{suffix}"), format!("killed.db{suffix}"));
        std::fs::copy(folder.path(&from), folder.path(&to)).expect("copies");
    }
    // The same after a power loss that took the exchange of the names back.
    for (from, to) in [("", "-shadow"), ("-shadow", "")] {
        let (from, to) = (format!("killed.db{from}"), format!("lost.db{to}"));
        std::fs::copy(folder.path(&from), folder.path(&to)).expect("copies");
    }
    std::fs::create_dir(folder.path("killed.db-journal")).expect("the fence");
    for name in ["plain.db", "shadow.db", "killed.db", "lost.db"] {
        let db = create(&folder, name);
        assert_eq!(number(&db, "SELECT sum(x) FROM t"), 1, "{name}");
        db.execute_batch("INSERT INTO t VALUES (2)").expect("commits");
        assert!(!folder.exists(&format!("{name}-shadow")), "{name}");
        db.close().expect("closes");
        at_rest(&folder, name);
        assert_eq!(text(&folder.open(name), "SELECT dash_engine()"), "wal");
    }
}

#[test]
fn the_uri_takes_a_database_out_of_mode_wal() {
    let folder = Folder::new();
    for (mode, answer) in [("shadow", "shadow"), ("delete", "delete")] {
        let name = format!("{mode}.db");
        let db = create(&folder, &name);
        db.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (1)").expect("commits");
        db.close().expect("closes");
        let db = folder.try_open(&name, &format!("&journal_mode={mode}")).expect("opens");
        assert_eq!(text(&db, "PRAGMA journal_mode"), answer);
        db.execute_batch("INSERT INTO t VALUES (2)").expect("commits");
        assert_eq!(number(&db, "SELECT sum(x) FROM t"), 3);
        whole(&db);
        db.close().expect("closes");
        assert_eq!(text(&folder.stock(&name), "PRAGMA journal_mode"), "delete");
    }
}

#[test]
fn connections_of_a_process_agree_on_the_mode() {
    let folder = Folder::new();
    let db = create(&folder, "app.db");
    db.execute_batch("CREATE TABLE t(x)").expect("commits");
    for wanted in ["shadow", "delete"] {
        let parameters = format!("&journal_mode={wanted}");
        assert_eq!(code(folder.try_open("app.db", &parameters)), ErrorCode::CannotOpen);
        assert!(last_error(&db).contains("in mode wal"), "{}", last_error(&db));
    }
    let second = folder.try_open("app.db", "&dash_default=shadow").expect("joins");
    assert_eq!(text(&second, "SELECT dash_engine()"), "wal");
}

#[test]
fn a_connection_that_may_only_read_does() {
    let folder = Folder::new();
    let db = create(&folder, "app.db");
    db.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (1)").expect("commits");
    // Beside others, by the engine.
    let reader = folder.try_open("app.db", "&mode=ro").expect("opens");
    assert_eq!(text(&reader, "SELECT dash_engine()"), "wal");
    assert_eq!(number(&reader, "SELECT sum(x) FROM t"), 1);
    db.execute_batch("INSERT INTO t VALUES (2)").expect("commits");
    assert_eq!(number(&reader, "SELECT sum(x) FROM t"), 3);
    assert_eq!(code(reader.execute_batch("INSERT INTO t VALUES (3)")), ErrorCode::ReadOnly);
    assert_eq!(code(reader.execute_batch("PRAGMA journal_mode=shadow")), ErrorCode::ReadOnly);
    db.close().expect("closes");
    assert_eq!(number(&reader, "SELECT sum(x) FROM t"), 3);
    drop(reader);
    // By itself, as stock SQLite does.
    let reader = folder.try_open("app.db", "&mode=ro").expect("opens");
    assert_eq!(number(&reader, "SELECT sum(x) FROM t"), 3);
    drop(reader);
    let db = folder.open("app.db");
    db.execute_batch("INSERT INTO t VALUES (4)").expect("commits");
    db.close().expect("closes");
    at_rest(&folder, "app.db");
    let fixed = folder.try_open("app.db", "&immutable=1").expect("opens");
    assert_eq!(number(&fixed, "SELECT sum(x) FROM t"), 7);
}

#[test]
fn a_new_database_gets_its_permissions() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let model = folder.path("model");
    std::fs::write(&model, "").expect("writes");
    std::fs::set_permissions(&model, std::fs::Permissions::from_mode(0o600)).expect("sets");
    let parameters = format!("&journal_mode=wal&modeof={}", model.display());
    let db = folder.try_open("app.db", &parameters).expect("opens");
    db.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (1)").expect("commits");
    db.execute_batch("INSERT INTO t VALUES (2)").expect("commits");
    for name in ["app.db", "app.db-wal", "app.db-shm"] {
        let mode = std::fs::metadata(folder.path(name)).expect(name).permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    for name in beside(&folder, "app.db") {
        let found = std::fs::metadata(folder.path(&name)).expect("there");
        if found.is_file() {
            assert_eq!(found.permissions().mode() & 0o077, 0, "{name}");
        }
    }
}

#[test]
fn a_database_that_is_missing_is_not_made_unasked() {
    let folder = Folder::new();
    let open = folder.try_open("app.db", "&journal_mode=wal&mode=rw");
    assert_eq!(code(open), ErrorCode::CannotOpen);
    assert_eq!(beside(&folder, "app.db"), [""; 0]);
    assert!(!folder.exists("app.db"));
}

/// Who may make names in the folder, and not write the database, has dash write another file of
/// somebody's: not so.
#[test]
fn a_hard_link_in_the_place_of_a_log_is_refused() {
    for name in ["app.db-wal", "app.db-dashlog"] {
        for content in ["", "precious"] {
            let folder = Folder::new();
            let db = create(&folder, "app.db");
            db.execute_batch("CREATE TABLE t(x)").expect("commits");
            db.close().expect("closes");
            let other = folder.path("other");
            std::fs::write(&other, content).expect("written");
            std::fs::hard_link(&other, folder.path(name)).expect("linked");
            let done = folder.try_open("app.db", "").and_then(|db| {
                db.execute_batch("INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)")
            });
            let said = message(done);
            assert!(said.contains("unable to open database file"), "{name}: {said}");
            assert_eq!(std::fs::read_to_string(&other).expect("there"), content, "{name}");
            std::fs::remove_file(folder.path(name)).expect("removed");
            let db = folder.open("app.db");
            db.execute_batch("INSERT INTO t VALUES (1)").expect("commits");
        }
    }
}

/// As a crash may leave it while a database is made: SQLite removes that log, and would go on with
/// a journal, whose commits are not as durable.
#[test]
fn a_log_beside_an_empty_file_does_not_make_it_one_in_wal_mode() {
    for log in [&b""[..], &[7; 8272]] {
        let folder = Folder::new();
        std::fs::write(folder.path("app.db"), b"").expect("writes");
        std::fs::write(folder.path("app.db-wal"), log).expect("writes");
        let db = create(&folder, "app.db");
        db.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (1)").expect("commits");
        assert_eq!(text(&db, "PRAGMA journal_mode"), "wal");
        assert!(std::fs::metadata(folder.path("app.db-wal")).expect("a log").len() > 0);
        assert!(!folder.path("app.db-journal").is_file());
        db.close().expect("closes");
        at_rest(&folder, "app.db");
    }
}

/// The same, later: the journal with which the file was put into WAL mode has come back. Rolled
/// back, it takes the mode along.
#[test]
fn a_hot_journal_beside_a_file_in_wal_mode_does_not_take_it_out() {
    let folder = Folder::new();
    let stock = folder.stock("app.db");
    stock.execute_batch("PRAGMA journal_mode=WAL").expect("enters");
    stock.close().expect("closes");
    let mut journal = vec![0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];
    for field in [0_u32, 7, 0, 512, 4096] {
        journal.extend(field.to_be_bytes());
    }
    journal.resize(512, 0);
    std::fs::write(folder.path("app.db-journal"), journal).expect("writes");
    let db = create(&folder, "app.db");
    db.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (1)").expect("commits");
    assert_eq!(text(&db, "PRAGMA journal_mode"), "wal");
    db.close().expect("closes");
    at_rest(&folder, "app.db");
}

/// Programs open it and say the mode next: it is in none as long as nobody uses it.
#[test]
fn a_new_database_is_in_no_mode_until_it_is_used() {
    let folder = Folder::new();
    let [first, second, third] = [(); 3].map(|()| folder.open("app.db"));
    // Nothing is there to be read.
    assert_eq!(number(&first, "SELECT count(*) FROM sqlite_schema"), 0);
    assert_eq!(beside(&folder, "app.db"), Vec::<String>::new());
    assert_eq!(text(&second, "PRAGMA journal_mode=WAL"), "wal");
    first.execute_batch("CREATE TABLE t(x)").expect("commits");
    assert_eq!(text(&first, "SELECT dash_engine()"), "wal");
    assert_eq!(text(&third, "SELECT dash_engine()"), "wal");
    third.execute_batch("INSERT INTO t VALUES (1)").expect("commits");
    drop((first, second, third));
    at_rest(&folder, "app.db");
}

/// A file that has been there, and that workers open together: all get the mode that each asks for.
#[test]
fn a_plain_database_is_in_no_mode_until_it_is_used() {
    let folder = Folder::new();
    folder
        .stock("app.db")
        .execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (0)")
        .expect("makes");
    let [first, second, third] = [(); 3].map(|()| folder.open("app.db"));
    assert_eq!(beside(&folder, "app.db"), Vec::<String>::new());
    assert_eq!(text(&second, "PRAGMA journal_mode=WAL"), "wal");
    third.execute_batch("INSERT INTO t VALUES (1)").expect("commits");
    assert_eq!(number(&first, "SELECT count(*) FROM t"), 2);
    assert_eq!(text(&first, "PRAGMA journal_mode=WAL"), "wal");
    for db in [&first, &second, &third] {
        assert_eq!(text(db, "SELECT dash_engine()"), "wal");
    }
    drop((first, second, third));
    at_rest(&folder, "app.db");
}

#[test]
fn a_new_database_that_nobody_says_a_mode_of_is_in_mode_shadow() {
    let folder = Folder::new();
    let first = folder.open("app.db");
    let second = folder.open("app.db");
    first.execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema").expect("reads nothing");
    second.execute_batch("CREATE TABLE t(x)").expect("commits");
    assert_eq!(text(&second, "SELECT dash_engine()"), "shadow");
    // What it read is no longer so.
    let refused = first.execute_batch("CREATE TABLE u(x)").expect_err("its snapshot is old");
    assert_eq!(refused.sqlite_error_code(), Some(ErrorCode::DatabaseBusy));
    first.execute_batch("ROLLBACK; CREATE TABLE u(x)").expect("commits");
    assert_eq!(text(&first, "PRAGMA journal_mode=WAL"), "shadow", "others have it open");
    whole(&first);
}

#[test]
fn where_a_shadow_lies_nothing_is_new() {
    let folder = Folder::new();
    let db = folder.try_open("app.db", "&journal_mode=shadow").expect("opens");
    db.execute_batch("CREATE TABLE t(x)").expect("commits");
    db.close().expect("closes");
    assert!(folder.exists("app.db-shadow"));
    std::fs::remove_file(folder.path("app.db")).expect("removes");
    std::fs::write(folder.path("app.db-shadow"), "no shadow that was closed").expect("writes");
    folder.try_open("app.db", "").expect_err("its database is missing");
    assert!(!folder.exists("app.db"));
}
