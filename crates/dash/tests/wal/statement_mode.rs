//! Mode statement: the engine of mode wal, by another name, with statements recorded.

use crate::common::*;
use crate::{at_rest, create};

fn set(db: &Connection, mode: &str) -> String {
    text(db, &format!("PRAGMA journal_mode={mode}"))
}

/// What each of its three places says of a connection's mode.
fn said(db: &Connection) -> [String; 3] {
    [
        text(db, "SELECT dash_engine()"),
        text(db, "PRAGMA journal_mode"),
        text(db, "SELECT value FROM dash_stats WHERE name='mode'"),
    ]
}

fn recorded(db: &Connection) -> i64 {
    number(db, "SELECT count(*) FROM dash_statements WHERE sql IS NOT NULL AND reason IS NULL")
}

#[test]
fn it_says_its_name_records_and_leaves_a_file_in_wal_mode() {
    let folder = Folder::new();
    let db = folder.try_open("app.db", "&journal_mode=statement").expect("opens");
    db.execute_batch("CREATE TABLE t(x)").expect("commits");
    db.execute("INSERT INTO t VALUES (?)", [7]).expect("commits");
    assert_eq!(said(&db), ["statement"; 3]);
    assert_eq!(text(&db, "SELECT parameters FROM dash_statements LIMIT 1"), "7");
    // What each counter means is said in both modes.
    let unexplained = "SELECT count(*) FROM dash_stats WHERE meaning IS NULL";
    assert_eq!(number(&db, unexplained), 0);
    db.close().expect("closes");
    at_rest(&folder, "app.db");
    let db = folder.open("app.db");
    assert_eq!(text(&db, "PRAGMA journal_mode"), "wal");
    assert_eq!(said(&db), ["wal"; 3]);
}

#[test]
fn a_pragma_changes_the_name_and_says_why_it_records_nothing() {
    let folder = Folder::new();
    let db = create(&folder, "app.db");
    assert_eq!(set(&db, "STATEMENT"), "statement");
    assert_eq!(said(&db), ["statement"; 3]);
    db.execute_batch("CREATE TABLE t(x)").expect("commits");
    let reasons = number(&db, "SELECT count(*) FROM dash_statements WHERE reason IS NOT NULL");
    assert_eq!((recorded(&db), reasons), (0, 1));
    // SQLite's own names for it, and names that are none.
    assert_eq!(set(&db, "nonsense"), "statement");
    assert_eq!(set(&db, "wal"), "wal");
    assert_eq!(said(&db), ["wal"; 3]);
    db.execute_batch("INSERT INTO t VALUES (1)").expect("commits");
    assert_eq!(number(&db, "SELECT count(*) FROM dash_statements"), 1);
}

/// Drivers say WAL whenever they open a database, and have it. What the URI says is a wish.
#[test]
fn what_the_uri_says_stays_though_a_driver_asks_for_wal() {
    let folder = Folder::new();
    let db = folder.try_open("app.db", "&journal_mode=statement").expect("opens");
    for word in ["WAL", "wal"] {
        assert_eq!(set(&db, word), "statement");
        let why = last_error(&db);
        assert!(why.contains("stays in mode statement") && why.contains("URI"), "{why}");
    }
    db.execute_batch("CREATE TABLE t(x)").expect("commits");
    assert_eq!(said(&db), ["statement"; 3]);
    assert_eq!(recorded(&db), 1);
    // Out of it is out of it.
    assert_eq!(set(&db, "delete"), "delete");
    assert_eq!(set(&db, "wal"), "wal");
    assert_eq!(said(&db), ["wal"; 3]);
}

/// One asked to be recorded in every form of the mode goes on.
#[test]
fn and_back_in_wal_goes_on_recording_what_was_asked_for() {
    let folder = Folder::new();
    let db = folder.try_open("app.db", "&journal_mode=wal&dash_statements=on").expect("opens");
    assert_eq!(set(&db, "statement"), "statement");
    assert_eq!(set(&db, "wal"), "wal");
    db.execute_batch("CREATE TABLE t(x)").expect("commits");
    assert_eq!(recorded(&db), 1);
}

/// Both have it open together, in one process and in the other's view.
#[test]
fn connections_in_both_modes_share_the_database() {
    let folder = Folder::new();
    let wal = create(&folder, "app.db");
    wal.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (1)").expect("commits");
    let statement = folder.try_open("app.db", "&journal_mode=statement").expect("opens beside it");
    let neither = folder.open("app.db");
    assert_eq!(
        (said(&wal), said(&statement)),
        (["wal"; 3].map(Into::into), ["statement"; 3].map(Into::into))
    );
    assert_eq!(text(&neither, "SELECT dash_engine()"), "wal");
    for db in [&wal, &statement, &neither] {
        db.execute_batch("INSERT INTO t VALUES (1)").expect("commits");
    }
    assert_eq!(set(&neither, "statement"), "statement");
    assert_eq!(set(&wal, "statement"), "statement");
    assert_eq!(set(&neither, "wal"), "wal");
    assert_eq!(said(&neither), ["wal"; 3]);
    for db in [&wal, &statement, &neither] {
        assert_eq!(number(db, "SELECT sum(x) FROM t"), 4);
    }
    // Another mode is refused to both, as it is in mode wal.
    let refused = message(folder.try_open("app.db", "&journal_mode=shadow"));
    assert!(refused.contains("unable to open"), "{refused}");
    assert!(last_error(&wal).contains("in mode wal"), "{}", last_error(&wal));
    assert!(
        message(wal.execute_batch("PRAGMA journal_mode=shadow")).contains("another connection")
    );
}

/// Where another connection has it in another mode it stays there, as for WAL.
#[test]
fn it_is_not_had_while_another_one_is_in_another_mode() {
    let folder = Folder::new();
    let first = folder.open("app.db");
    first.execute_batch("CREATE TABLE t(x)").expect("commits");
    let second = folder.open("app.db");
    assert_eq!(number(&second, "SELECT count(*) FROM t"), 0);
    assert_eq!(set(&second, "statement"), "shadow");
    assert_eq!(text(&second, "SELECT dash_engine()"), "shadow");
    drop(first);
    assert_eq!(set(&second, "statement"), "statement");
    assert_eq!(said(&second), ["statement"; 3]);
}

#[test]
fn what_stands_before_the_pragma_is_kept() {
    let folder = Folder::new();
    let db = folder.open("app.db");
    db.execute_batch("PRAGMA page_size=1024").expect("sets");
    assert_eq!(set(&db, "statement"), "statement");
    db.execute_batch("CREATE TABLE t(x)").expect("commits");
    assert_eq!(number(&db, "PRAGMA page_size"), 1024);
    assert_eq!(said(&db), ["statement"; 3]);
}

#[test]
fn an_attached_database_has_it_too() {
    let folder = Folder::new();
    let db = folder.open("main.db");
    let uri = uri(&folder.path("aux.db"), "dash", "&journal_mode=statement");
    db.execute_batch(&format!("ATTACH '{uri}' AS aux; CREATE TABLE aux.t(x)")).expect("attaches");
    assert_eq!(text(&db, "SELECT dash_engine('aux')"), "statement");
    assert_eq!(text(&db, "PRAGMA aux.journal_mode"), "statement");
    assert_eq!(text(&db, "PRAGMA aux.journal_mode=wal"), "statement", "as its URI says");
}

#[test]
fn what_is_not_built_is_refused_by_name() {
    let folder = Folder::new();
    drop(create(&folder, "app.db"));
    let probe = create(&folder, "probe.db");
    for (parameters, why) in [
        (
            "&journal_mode=statement&dash_wal=memory&dash_commit=paper",
            "dash_commit=paper isn't available with dash_wal=memory",
        ),
        ("&journal_mode=inpage", "journal_mode=inpage isn't available"),
    ] {
        assert!(folder.try_open("app.db", parameters).is_err());
        assert!(last_error(&probe).contains(why), "{}", last_error(&probe));
    }
}

/// `dash_default` keeps a database where it is.
#[test]
fn a_default_mode_declines_it() {
    let folder = Folder::new();
    let db = folder.try_open("app.db", "&dash_default=shadow").expect("opens");
    db.execute_batch("CREATE TABLE t(x)").expect("commits");
    assert_eq!(set(&db, "statement"), "shadow");
    assert!(last_error(&db).contains("stays in mode shadow"), "{}", last_error(&db));
}

#[test]
fn what_records_and_does_not_is_refused() {
    let folder = Folder::new();
    let open = |statements: &str| {
        folder.try_open("app.db", &format!("&journal_mode=statement&dash_statements={statements}"))
    };
    assert!(open("Off").is_err());
    let db = open("on").expect("opens");
    let said = text(&db, "SELECT value FROM dash_stats WHERE name='statements'");
    assert_eq!(said, "on");
    assert!(folder.try_open("app.db", "&journal_mode=statement&dash_statements=off").is_err());
    assert!(last_error(&db).contains("choose one of the two"), "{}", last_error(&db));
}
