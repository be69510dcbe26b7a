//! Opening without the right to write.

mod common;
use common::*;

fn made(folder: &Folder) {
    let db = folder.open("app.db");
    db.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)")
        .expect("commits");
}

#[test]
fn a_read_only_connection_reads_and_refuses_to_write() {
    let folder = Folder::new();
    made(&folder);
    for parameters in ["&mode=ro", "&immutable=1", "&mode=ro&immutable=1", "&mode=ro&nolock=1"] {
        let db = folder.try_open("app.db", parameters).expect(parameters);
        assert_eq!(text(&db, "SELECT dash_engine()"), "shadow", "{parameters}");
        assert_eq!(text(&db, "PRAGMA journal_mode"), "shadow");
        assert_eq!(number(&db, "SELECT count(*) FROM t"), 2, "{parameters}");
        whole(&db);
        assert!(db.is_readonly("main").expect("known"));
        assert_eq!(
            code(db.execute_batch("INSERT INTO t VALUES (3)")),
            ErrorCode::ReadOnly,
            "{parameters}"
        );
        assert!(message(db.execute_batch("PRAGMA journal_mode=delete")).contains("reading only"));
    }
    assert!(!folder.exists("app.db-dash"));
}

#[test]
fn a_read_only_connection_follows_the_commits_of_others() {
    let folder = Folder::new();
    made(&folder);
    let reader = folder.try_open("app.db", "&mode=ro").expect("opens");
    let mapped = folder.try_open("app.db", "&mode=ro").expect("opens");
    mapped.execute_batch("PRAGMA mmap_size=1000000").expect("sets");
    let db = folder.open("app.db");
    for round in 0..5 {
        db.execute("INSERT INTO t VALUES (?)", [round]).expect("commits");
        assert_eq!(number(&reader, "SELECT count(*) FROM t"), 3 + round);
        assert_eq!(number(&mapped, "SELECT count(*) FROM t"), 3 + round);
    }
    drop(db);
    assert_eq!(number(&reader, "SELECT count(*) FROM t"), 7);
}

#[test]
fn a_missing_database_is_not_made_for_reading() {
    let folder = Folder::new();
    assert_eq!(code(folder.try_open("none.db", "&mode=ro")), ErrorCode::CannotOpen);
    assert_eq!(code(folder.try_open("none.db", "&mode=rw")), ErrorCode::CannotOpen);
    assert!(!folder.exists("none.db") && !folder.exists("none.db-dash"));
}
