//! A database that others put into WAL mode under an open connection: the connection goes along, as
//! it does in stock SQLite.

use rusqlite::backup::Backup;

use crate::common::*;
use crate::{at_rest, create};

/// Modes in which SQLite itself writes the file.
const PLAIN: [&str; 3] = ["delete", "truncate", "persist"];

/// A connection that has a database open in one of them, by the PRAGMA or by the URI.
fn plain(folder: &Folder, mode: &str, by_uri: bool) -> Connection {
    let parameter = format!("&journal_mode={mode}");
    let db = match by_uri {
        true => folder.try_open("app.db", &parameter).expect("opens"),
        false => folder.open("app.db"),
    };
    assert_eq!(text(&db, &format!("PRAGMA journal_mode={mode}")), mode);
    db.execute_batch("CREATE TABLE IF NOT EXISTS t(x); INSERT INTO t VALUES (1)").expect("commits");
    assert_eq!(text(&db, "SELECT dash_engine()"), "plain");
    db
}

fn copy(from: &Connection, to: &mut Connection) {
    let backup = Backup::new(from, to).expect("begins");
    backup.run_to_completion(100, std::time::Duration::ZERO, None).expect("completes");
}

#[test]
fn where_stock_sqlite_put_it_there() {
    for (mode, by_uri, stays) in
        PLAIN.iter().flat_map(|mode| [(mode, false, true), (mode, true, false)])
    {
        let folder = Folder::new();
        let db = plain(&folder, mode, by_uri);
        let second = by_uri.then(|| plain(&folder, mode, by_uri));
        let stock = folder.stock("app.db");
        stock
            .execute_batch("PRAGMA journal_mode=wal; INSERT INTO t VALUES (10)")
            .expect("nobody uses it");
        let stock = stays.then_some(stock);
        let mut sum = 11 + i64::from(second.is_some());
        for db in [Some(&db), second.as_ref()].into_iter().flatten() {
            assert_eq!(number(db, "SELECT sum(x) FROM t"), sum, "{mode}");
            db.execute_batch("INSERT INTO t VALUES (100)").expect("commits");
            sum += 100;
            assert_eq!(text(db, "PRAGMA journal_mode"), "wal", "{mode}");
            assert_eq!(text(db, "SELECT dash_engine()"), "wal", "{mode}");
        }
        if let Some(stock) = stock {
            assert_eq!(number(&stock, "SELECT sum(x) FROM t"), sum, "{mode}");
        }
        whole(&db);
        drop((db, second));
        at_rest(&folder, "app.db");
    }
}

#[test]
fn where_a_backup_of_a_database_in_wal_mode_put_it_there() {
    let folder = Folder::new();
    let source = create(&folder, "source.db");
    source.execute_batch("CREATE TABLE s(x); INSERT INTO s VALUES (7)").expect("commits");
    for mode in PLAIN {
        let mut db = plain(&folder, mode, false);
        copy(&source, &mut db);
        assert_eq!(number(&db, "SELECT sum(x) FROM s"), 7, "{mode}");
        db.execute_batch("INSERT INTO s VALUES (1)").expect("commits");
        assert_eq!(text(&db, "SELECT dash_engine()"), "wal", "{mode}");
        copy(&source, &mut db);
        assert_eq!(number(&db, "SELECT sum(x) FROM s"), 7, "{mode}");
        whole(&db);
        db.close().expect("closes");
        at_rest(&folder, "app.db");
        std::fs::remove_file(folder.path("app.db")).expect("is there");
        drop(std::fs::remove_file(folder.path("app.db-dashlog")));
    }
}

#[test]
fn but_mode_shadow_is_left_for_no_backup() {
    let folder = Folder::new();
    let source = create(&folder, "source.db");
    source.execute_batch("CREATE TABLE s(x); INSERT INTO s VALUES (1)").expect("commits");
    let mut db = folder.open("app.db");
    db.execute_batch("CREATE TABLE t(x)").expect("commits");
    let other = folder.open("app.db");
    for rows in 1..=4 {
        copy(&source, &mut db);
        source.execute_batch("INSERT INTO s VALUES (1)").expect("commits");
        for db in [&db, &other] {
            assert_eq!(number(db, "SELECT count(*) FROM s"), rows);
            assert_eq!(text(db, "PRAGMA journal_mode"), "shadow");
        }
        other.execute_batch("INSERT INTO s VALUES (1); DELETE FROM s").expect("commits");
        whole(&db);
    }
    drop((db, other));
    let stock = folder.stock("app.db");
    assert_eq!(text(&stock, "PRAGMA journal_mode"), "delete");
    whole(&stock);
}

#[test]
fn a_connection_that_only_reads_goes_along_by_stocks_rules() {
    let folder = Folder::new();
    drop(plain(&folder, "delete", false));
    let db = folder.try_open("app.db", "&journal_mode=delete&mode=ro").expect("opens");
    assert_eq!(number(&db, "SELECT sum(x) FROM t"), 1);
    let stock = folder.stock("app.db");
    stock.execute_batch("PRAGMA journal_mode=wal; INSERT INTO t VALUES (10)").expect("commits");
    assert_eq!(number(&db, "SELECT sum(x) FROM t"), 11);
    db.execute_batch("INSERT INTO t VALUES (1)").expect_err("it may only read");
}

#[test]
fn a_second_connection_is_told_wal_when_it_asks_for_it() {
    let folder = Folder::new();
    let (db, second) = (plain(&folder, "delete", true), plain(&folder, "delete", true));
    let stock = folder.stock("app.db");
    stock.execute_batch("PRAGMA journal_mode=wal").expect("nobody uses it");
    drop(stock);
    assert_eq!(number(&db, "SELECT sum(x) FROM t"), 2);
    assert_eq!(text(&second, "PRAGMA journal_mode=wal"), "wal");
    for db in [&db, &second] {
        db.execute_batch("INSERT INTO t VALUES (1)").expect("commits");
    }
    drop((db, second));
    at_rest(&folder, "app.db");
}

#[test]
fn a_hot_journal_is_rolled_back_under_way() {
    let folder = Folder::new();
    let db = plain(&folder, "delete", true);
    let stock = folder.stock("app.db");
    stock.execute_batch("PRAGMA synchronous=OFF; BEGIN; INSERT INTO t VALUES (5)").expect("begins");
    let journal = std::fs::read(folder.path("app.db-journal")).expect("is there");
    assert_ne!(journal[0], 0, "is hot");
    stock.execute_batch("ROLLBACK; PRAGMA journal_mode=wal").expect("sets");
    drop(stock);
    std::fs::write(folder.path("app.db-journal"), journal).expect("writes");
    for rows in 2..5 {
        db.execute_batch("INSERT INTO t VALUES (1)").expect("commits");
        assert_eq!(number(&db, "SELECT count(*) FROM t"), rows);
    }
    assert_eq!(text(&db, "SELECT dash_engine()"), "wal");
    whole(&db);
}
