//! Which mode a new database gets, and when.

mod common;
use common::*;
use std::time::Duration;

/// SQLite keeps its lock after the first statement that reads, and nothing has been written.
#[test]
fn under_exclusive_locking_a_new_database_gets_the_mode_that_is_asked_for() {
    let first = ["synchronous=NORMAL", "cache_size=10", "user_version", "encoding"];
    for (at, pragma) in first.into_iter().enumerate() {
        for (mode, engine) in [("wal", "wal"), ("delete", "plain"), ("shadow", "shadow")] {
            let folder = Folder::new();
            let db = folder.open("app.db");
            db.execute_batch("PRAGMA locking_mode=EXCLUSIVE").expect("sets");
            drop(db.execute_batch(&format!("PRAGMA {pragma}; SELECT * FROM sqlite_master")));
            if at % 2 == 0 {
                assert_eq!(text(&db, "PRAGMA journal_mode"), "shadow", "a question");
            }
            assert_eq!(text(&db, &format!("PRAGMA journal_mode={mode}")), mode, "{pragma}");
            db.execute_batch("CREATE TABLE t(a); INSERT INTO t VALUES (1)").expect("commits");
            assert_eq!(text(&db, "PRAGMA locking_mode"), "exclusive", "{pragma}");
            assert_eq!(text(&db, "PRAGMA journal_mode"), mode, "{pragma}");
            assert_eq!(text(&db, "SELECT dash_engine()"), engine, "{pragma}");
            whole(&db);
        }
    }
}

/// It keeps the lock of one that has content, too, and stock SQLite changes the mode all the same.
#[test]
fn under_exclusive_locking_a_database_with_content_changes_its_mode() {
    let modes =
        [("shadow", "shadow"), ("wal", "wal"), ("delete", "plain"), ("statement", "statement")];
    for (from, _) in modes {
        for (to, engine) in modes {
            let (folder, what) = (Folder::new(), format!("{from} to {to}"));
            let db = folder.open("app.db");
            let made = format!("PRAGMA journal_mode={from}; PRAGMA locking_mode=EXCLUSIVE");
            drop(db.execute_batch(&made));
            db.execute_batch("CREATE TABLE t(a); INSERT INTO t VALUES (1)").expect("commits");
            assert_eq!(text(&db, &format!("PRAGMA journal_mode={to}")), to, "{what}");
            db.execute_batch("INSERT INTO t VALUES (2)").expect("commits");
            assert_eq!(text(&db, "PRAGMA journal_mode"), to, "{what}");
            assert_eq!(text(&db, "PRAGMA locking_mode"), "exclusive", "{what}");
            assert_eq!(text(&db, "SELECT dash_engine()"), engine, "{what}");
            let other = folder.open("app.db");
            other.busy_timeout(Duration::ZERO).expect("sets");
            other.execute_batch("INSERT INTO t VALUES (3)").expect_err("the lock is held");
            drop(other);
            drop(db);
            let count = "SELECT CAST(count(*) AS TEXT) FROM t";
            assert_eq!(text(&folder.open("app.db"), count), "2", "{what}");
        }
    }
}

/// A statement that reads keeps the lock: the mode stays, and so does the lock's.
#[test]
fn beside_a_statement_that_reads_it_stays_exclusive() {
    let folder = Folder::new();
    let db = folder.open("app.db");
    let made = "PRAGMA locking_mode=EXCLUSIVE; CREATE TABLE t(a); INSERT INTO t VALUES (1), (2)";
    db.execute_batch(made).expect("commits");
    let mut reads = db.prepare("SELECT a FROM t").expect("prepares");
    let mut rows = reads.query([]).expect("reads");
    rows.next().expect("a row");
    let refused = db.execute_batch("PRAGMA journal_mode=WAL").expect_err("it reads");
    assert!(refused.to_string().contains("within a transaction"), "{refused}");
    drop(rows);
    assert_eq!(text(&db, "PRAGMA locking_mode"), "exclusive");
    assert_eq!(text(&db, "PRAGMA journal_mode=WAL"), "wal");
}

#[test]
fn within_a_transaction_nothing_is_chosen() {
    for locking in ["EXCLUSIVE", "NORMAL"] {
        let folder = Folder::new();
        let db = folder.open("app.db");
        let begin = format!("PRAGMA locking_mode={locking}; BEGIN; SELECT * FROM sqlite_master");
        db.execute_batch(&begin).expect("begins");
        let refused = db.execute_batch("PRAGMA journal_mode=WAL").expect_err("in a transaction");
        assert!(refused.to_string().contains("within a transaction"), "{refused}");
        db.execute_batch("CREATE TABLE t(a); COMMIT").expect("commits");
        assert_eq!(text(&db, "PRAGMA locking_mode").to_uppercase(), locking);
        assert_eq!(text(&db, "SELECT dash_engine()"), "shadow");
    }
}

#[test]
fn what_is_attached_under_exclusive_locking_answers_questions_and_gets_its_mode() {
    let folder = Folder::new();
    let db = folder.open("app.db");
    db.execute_batch("PRAGMA locking_mode=EXCLUSIVE; CREATE TABLE t(x)").expect("commits");
    db.execute("ATTACH ? AS side", [uri(&folder.path("side.db"), "dash", "")]).expect("attaches");
    assert_eq!(text(&db, "PRAGMA side.locking_mode"), "exclusive");
    assert_eq!(text(&db, "PRAGMA side.journal_mode"), "shadow");
    assert_eq!(text(&db, "PRAGMA side.locking_mode=EXCLUSIVE"), "exclusive");
    db.execute_batch("PRAGMA side.secure_delete=1").expect("sets");
    assert_eq!(text(&db, "PRAGMA side.journal_mode=WAL"), "wal");
    db.execute_batch("CREATE TABLE side.u(x)").expect("commits");
    assert_eq!(text(&db, "PRAGMA side.locking_mode"), "exclusive");
}

#[test]
fn a_question_leaves_it_to_the_next_one_to_choose() {
    let folder = Folder::new();
    let (asks, chooses) = (folder.open("app.db"), folder.open("app.db"));
    assert_eq!(text(&asks, "PRAGMA journal_mode"), "shadow");
    assert_eq!(text(&chooses, "PRAGMA journal_mode=WAL"), "wal");
    chooses.execute_batch("CREATE TABLE t(a)").expect("commits");
    asks.execute_batch("INSERT INTO t VALUES (1)").expect("commits");
    assert_eq!(text(&asks, "PRAGMA journal_mode"), "wal");
}

/// Many programs say `journal_mode=DELETE` at their start, without the name of a database.
#[test]
fn an_attached_database_goes_where_a_plain_main_is() {
    for mode in ["DELETE", "TRUNCATE"] {
        let folder = Folder::new();
        folder.stock("there.db").execute_batch("CREATE TABLE t(a)").expect("commits");
        let db = folder.open("app.db");
        let attach = |name: &str| {
            let path = folder.path(&format!("{name}.db"));
            db.execute(&format!("ATTACH ? AS {name}"), [uri(&path, "dash", "")]).expect("attaches");
        };
        attach("new");
        db.execute_batch(&format!("PRAGMA journal_mode={mode}")).expect("sets");
        attach("there");
        let both =
            "BEGIN; CREATE TABLE m(a); CREATE TABLE new.n(a); INSERT INTO t VALUES (1); COMMIT";
        db.execute_batch(both).expect("all three are plain");
        let asked =
            ["there", "new"].map(|name| text(&db, &format!("SELECT dash_engine('{name}')")));
        assert_eq!(asked, ["plain", "plain"]);
        let path = folder.path("said.db");
        db.execute("ATTACH ? AS said", [uri(&path, "dash", "&dash_default=shadow")])
            .expect("is one");
        assert_eq!(text(&db, "SELECT dash_engine('said')"), "shadow");
    }
}
