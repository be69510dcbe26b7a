//! What is written is there, whatever SQLite does on the way.

use crate::common::*;
use crate::{at_rest, beside, create};

const FILL: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<3000) \
     INSERT INTO t(x) SELECT hex(randomblob(100)) FROM n";

#[test]
fn what_is_committed_is_there_after_a_close() {
    let folder = Folder::new();
    let db = create(&folder, "app.db");
    assert_eq!(text(&db, "PRAGMA journal_mode"), "wal");
    db.execute_batch("CREATE TABLE t(id INTEGER PRIMARY KEY, x)").expect("commits");
    for round in 0..200 {
        db.execute("INSERT INTO t(x) VALUES (?)", [round]).expect("commits");
    }
    assert!(folder.exists("app.db-wal") && folder.exists("app.db-shm"));
    whole(&db);
    db.close().expect("closes");
    at_rest(&folder, "app.db");
    let db = folder.open("app.db");
    assert_eq!(text(&db, "PRAGMA journal_mode"), "wal");
    assert_eq!(text(&db, "SELECT dash_engine()"), "wal");
    assert_eq!(number(&db, "SELECT sum(x) FROM t"), 199 * 100);
    db.close().expect("closes");
    at_rest(&folder, "app.db");
}

#[test]
fn stock_sqlite_goes_on_where_dash_stopped_and_back() {
    let folder = Folder::new();
    create(&folder, "app.db").execute_batch("CREATE TABLE t(x)").expect("commits");
    for round in 0..3 {
        let stock = folder.stock("app.db");
        stock.execute("INSERT INTO t VALUES (?)", [2 * round]).expect("stock commits");
        stock.close().expect("closes");
        let db = folder.open("app.db");
        assert_eq!(text(&db, "SELECT dash_engine()"), "wal");
        db.execute("INSERT INTO t VALUES (?)", [2 * round + 1]).expect("commits");
        db.close().expect("closes");
    }
    assert_eq!(text(&folder.stock("app.db"), "SELECT group_concat(x) FROM t"), "0,1,2,3,4,5");
    at_rest(&folder, "app.db");
}

#[test]
fn every_kind_of_checkpoint_answers_as_stock_does() {
    let folder = Folder::new();
    let (db, stock) = (create(&folder, "app.db"), folder.stock("stock.db"));
    stock.execute_batch("PRAGMA journal_mode=WAL").expect("sets");
    for kind in ["PASSIVE", "FULL", "RESTART", "TRUNCATE", "TRUNCATE", "PASSIVE"] {
        let answers = [&db, &stock].map(|db| {
            let step = "CREATE TABLE IF NOT EXISTS t(x); INSERT INTO t VALUES (zeroblob(10000))";
            db.execute_batch(step).expect("commits");
            db.query_row(&format!("PRAGMA wal_checkpoint({kind})"), [], |row| {
                Ok([0, 1, 2].map(|column| row.get::<_, i64>(column).expect("a number")))
            })
            .expect("checkpoints")
        });
        assert_eq!(answers[0], answers[1], "{kind}");
    }
    whole(&db);
    db.close().expect("closes");
    at_rest(&folder, "app.db");
}

#[test]
fn a_log_that_is_to_stay_stays() {
    let folder = Folder::new();
    let db = create(&folder, "app.db");
    db.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (1)").expect("commits");
    // SAFETY: an open connection, and the number that this control takes.
    #[expect(unsafe_code, reason = "calls SQLite's C interface")]
    unsafe {
        let mut on = 1;
        let op = rusqlite::ffi::SQLITE_FCNTL_PERSIST_WAL;
        let place = (&raw mut on).cast();
        let code = rusqlite::ffi::sqlite3_file_control(db.handle(), std::ptr::null(), op, place);
        assert_eq!(code, 0);
    }
    db.close().expect("closes");
    let left = beside(&folder, "app.db");
    assert!(left.contains(&"app.db-wal".to_owned()), "{left:?}");
    assert!(!folder.exists("app.db-journal") && !folder.exists("app.db-dash"), "{left:?}");
    let stock = folder.stock("app.db");
    assert_eq!(number(&stock, "SELECT x FROM t"), 1);
    stock.execute_batch("INSERT INTO t VALUES (2)").expect("commits");
    drop(stock);
    let db = folder.open("app.db");
    assert_eq!(number(&db, "SELECT sum(x) FROM t"), 3);
    db.close().expect("closes");
    at_rest(&folder, "app.db");
}

#[test]
fn what_is_taken_back_leaves_no_trace() {
    let folder = Folder::new();
    let db = create(&folder, "app.db");
    db.execute_batch("CREATE TABLE t(id INTEGER PRIMARY KEY, x); PRAGMA cache_size=5")
        .expect("commits");
    db.execute_batch(FILL).expect("spills");
    db.execute_batch("BEGIN; DELETE FROM t; ROLLBACK").expect("rolls back");
    assert_eq!(number(&db, "SELECT count(*) FROM t"), 3000);
    db.execute_batch(
        "BEGIN; INSERT INTO t(x) VALUES ('a'); SAVEPOINT one; DELETE FROM t; SAVEPOINT two; \
         INSERT INTO t(x) VALUES ('b'); ROLLBACK TO two; ROLLBACK TO one; RELEASE one; COMMIT",
    )
    .expect("commits");
    assert_eq!(number(&db, "SELECT count(*) FROM t"), 3001);
    whole(&db);
    drop(db);
    assert_eq!(number(&folder.stock("app.db"), "SELECT count(*) FROM t"), 3001);
    at_rest(&folder, "app.db");
}

#[test]
fn every_page_size_works_and_vacuum_keeps_every_row() {
    for size in [512, 1024, 4096, 16384, 65536] {
        let folder = Folder::new();
        let db = folder.open("app.db");
        db.execute_batch(&format!("PRAGMA page_size={size}")).expect("sets");
        assert_eq!(text(&db, "PRAGMA journal_mode=wal"), "wal");
        db.execute_batch("CREATE TABLE t(id INTEGER PRIMARY KEY, x)").expect("commits");
        assert_eq!(number(&db, "PRAGMA page_size"), size);
        db.execute_batch(FILL).expect("commits");
        db.execute_batch("DELETE FROM t WHERE id % 3 = 0; VACUUM").expect("vacuums");
        assert_eq!(number(&db, "SELECT count(*) FROM t"), 2000, "{size}");
        whole(&db);
        let into = folder.path("into.db").display().to_string();
        db.execute("VACUUM INTO ?", [into]).expect("vacuums into");
        db.close().expect("closes");
        at_rest(&folder, "app.db");
        assert_eq!(number(&folder.stock("into.db"), "SELECT count(*) FROM t"), 2000, "{size}");
    }
}

#[test]
fn mapped_pages_show_what_is_committed() {
    let folder = Folder::new();
    let db = create(&folder, "app.db");
    db.execute_batch("CREATE TABLE t(id INTEGER PRIMARY KEY, x)").expect("commits");
    db.execute_batch(FILL).expect("commits");
    let reader = folder.open("app.db");
    reader.execute_batch("PRAGMA mmap_size=100000000; PRAGMA cache_size=5").expect("sets");
    for round in 0..20 {
        assert_eq!(number(&reader, "SELECT count(*) FROM t"), 3000 + round);
        db.execute("INSERT INTO t(x) VALUES (?)", [round]).expect("commits");
        if round % 4 == 0 {
            db.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").expect("checkpoints");
        }
        if round == 10 {
            db.execute_batch("CREATE TABLE big AS SELECT * FROM t; DROP TABLE big; VACUUM")
                .expect("vacuums");
        }
        whole(&reader);
    }
}

#[test]
fn backups_go_in_and_out() {
    let folder = Folder::new();
    let mut db = create(&folder, "app.db");
    db.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (1)").expect("commits");
    let mut stock = folder.stock("copy.db");
    let mut shadow = folder.open("shadow.db");
    rusqlite::backup::Backup::new(&db, &mut shadow).expect("begins").step(-1).expect("copies");
    assert_eq!(number(&shadow, "SELECT sum(x) FROM t"), 1);
    shadow.execute_batch("INSERT INTO t VALUES (2)").expect("commits in mode shadow");
    rusqlite::backup::Backup::new(&db, &mut stock).expect("begins").step(-1).expect("copies");
    stock.execute_batch("PRAGMA journal_mode=DELETE; INSERT INTO t VALUES (2)").expect("commits");
    rusqlite::backup::Backup::new(&stock, &mut db).expect("begins").step(-1).expect("copies");
    assert_eq!(number(&db, "SELECT sum(x) FROM t"), 3);
    assert_eq!(text(&db, "PRAGMA journal_mode"), "wal");
    db.execute_batch("INSERT INTO t VALUES (3)").expect("commits");
    db.close().expect("closes");
    at_rest(&folder, "app.db");
    assert_eq!(number(&folder.stock("app.db"), "SELECT sum(x) FROM t"), 6);
}

#[test]
fn attached_databases_are_written_together() {
    let folder = Folder::new();
    let db = create(&folder, "main.db");
    drop(create(&folder, "wal.db"));
    let attach = |name: &str, schema: &str, vfs: &str| {
        let uri = uri(&folder.path(name), vfs, "");
        db.execute(&format!("ATTACH ? AS {schema}"), [uri]).expect("attaches");
    };
    attach("wal.db", "w", "dash");
    attach("shadow.db", "s", "dash");
    attach("stock.db", "k", "unix");
    assert_eq!(text(&db, "SELECT dash_engine('w')"), "wal");
    assert_eq!(text(&db, "SELECT dash_engine('s')"), "shadow");
    db.execute_batch("CREATE TABLE a(x); CREATE TABLE w.b(x); CREATE TABLE s.c(x)")
        .expect("creates");
    db.execute_batch("CREATE TABLE k.d(x)").expect("creates");
    for round in 0..5 {
        let both =
            format!("BEGIN; INSERT INTO a VALUES ({round}); INSERT INTO b VALUES ({round});");
        db.execute_batch(&format!("{both} COMMIT")).expect("two in mode wal");
        db.execute_batch(&format!("{both} INSERT INTO c VALUES ({round}); COMMIT"))
            .expect("and one in mode shadow");
        db.execute_batch(&format!("{both} INSERT INTO d VALUES ({round}); COMMIT"))
            .expect("and one of stock SQLite");
    }
    db.close().expect("closes");
    for (name, table, count) in [("main", "a", 15), ("wal", "b", 15), ("shadow", "c", 5)] {
        let stock = folder.stock(&format!("{name}.db"));
        assert_eq!(number(&stock, &format!("SELECT count(*) FROM {table}")), count, "{name}");
        whole(&stock);
    }
    at_rest(&folder, "main.db");
    at_rest(&folder, "wal.db");
}

#[test]
fn a_transaction_over_several_files_is_durable_before_it_is_visible() {
    let folder = Folder::new();
    let db = create(&folder, "main.db");
    drop(create(&folder, "side.db"));
    db.execute("ATTACH ? AS side", [uri(&folder.path("side.db"), "dash", "")]).expect("attaches");
    db.execute_batch("PRAGMA synchronous=FULL; PRAGMA side.synchronous=FULL").expect("sets");
    db.execute_batch("CREATE TABLE m(x); CREATE TABLE side.s(x)").expect("creates");
    let flushes = || {
        ["main", "side"].map(|schema| {
            let of = |name| format!("SELECT value FROM dash_stats('{schema}') WHERE name='{name}'");
            [number(&db, &of("log_flushes")), number(&db, &of("wal_flushes"))]
        })
    };
    for _ in 0..3 {
        db.execute_batch("INSERT INTO m VALUES (1); INSERT INTO s VALUES (1)").expect("commits");
    }
    let before = flushes();
    db.execute_batch("INSERT INTO m VALUES (2); BEGIN; SELECT * FROM s; INSERT INTO m VALUES (3)")
        .expect("goes on");
    db.execute_batch("COMMIT; CREATE TEMP TABLE t(x); INSERT INTO t VALUES (1)").expect("commits");
    let [[log, wal], side] = before;
    assert_eq!(flushes(), [[log + 2, wal], side], "one file is written, by way of the log");
    db.execute_batch("BEGIN; INSERT INTO m VALUES (4); INSERT INTO s VALUES (4); COMMIT")
        .expect("commits");
    let [side_log, side_wal] = side;
    assert_eq!(flushes(), [[log + 2, wal + 1], [side_log, side_wal + 1]]);
}

#[test]
fn connections_of_a_shared_cache_share_the_file() {
    let folder = Folder::new();
    create(&folder, "app.db").execute_batch("CREATE TABLE t(x)").expect("commits");
    let a = folder.try_open("app.db", "&cache=shared").expect("opens");
    let b = folder.try_open("app.db", "&cache=shared").expect("opens");
    for x in 0..20 {
        a.execute("INSERT INTO t VALUES (?)", [x]).expect("commits");
        b.execute("INSERT INTO t VALUES (?)", [x]).expect("commits");
    }
    assert_eq!(number(&a, "SELECT count(*) FROM t"), 40);
    drop(a);
    b.execute_batch("INSERT INTO t VALUES (1); PRAGMA wal_checkpoint(TRUNCATE)").expect("commits");
    whole(&b);
    drop(b);
    at_rest(&folder, "app.db");
}

#[test]
fn a_file_in_mode_shadow_is_not_put_into_wal_mode_unseen() {
    let folder = Folder::new();
    let db = create(&folder, "main.db");
    let uri = uri(&folder.path("shadow.db"), "dash", "");
    db.execute("ATTACH ? AS s", [uri]).expect("attaches");
    db.execute_batch("CREATE TABLE s.t(x); PRAGMA journal_mode=wal").expect("asks all of them");
    assert_eq!(text(&db, "PRAGMA s.journal_mode"), "shadow");
    db.execute_batch("INSERT INTO t VALUES (1)").expect("commits");
    db.execute_batch("PRAGMA locking_mode=EXCLUSIVE; INSERT INTO t VALUES (2)").expect("commits");
    db.execute_batch("PRAGMA journal_mode=wal").expect("SQLite can do without shared memory now");
    db.execute_batch("INSERT INTO t VALUES (0)").expect_err("but not without a log");
    assert!(last_error(&db).contains("the name of its schema"), "{}", last_error(&db));
    db.close().expect("closes");
    // SQLite has left it marked as one in WAL mode; nothing is lost.
    let db = folder.open("shadow.db");
    assert_eq!(number(&db, "SELECT sum(x) FROM t"), 3);
    whole(&db);
}
