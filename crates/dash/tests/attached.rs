//! Transactions over several databases.

mod common;
use common::*;

use dash_testing::roles::{cast, role};

fn attached(folder: &Folder, main: &str, side: &str) -> Connection {
    let db = Connection::open(uri(&folder.path("main.db"), main, "")).expect("opens");
    db.execute("ATTACH ? AS side", [uri(&folder.path("side.db"), side, "")]).expect("attaches");
    db.execute_batch("CREATE TABLE IF NOT EXISTS main.m(x); CREATE TABLE IF NOT EXISTS side.s(x)")
        .expect("commits");
    db
}

fn names(folder: &Folder) -> Vec<String> {
    dash_testing::names::names(&folder.path("."))
}

#[test]
fn a_transaction_over_two_databases_commits_both_and_leaves_no_super_journal() {
    let folder = Folder::new();
    let db = attached(&folder, "dash", "dash");
    for round in 0..5 {
        db.execute_batch(&format!(
            "BEGIN; INSERT INTO m VALUES ({round}); INSERT INTO s VALUES ({round}); COMMIT"
        ))
        .expect("commits");
    }
    db.execute_batch("BEGIN; INSERT INTO m VALUES (9); INSERT INTO s VALUES (9); ROLLBACK")
        .expect("rolls back");
    assert_eq!(text(&db, "SELECT group_concat(x) FROM m"), "0,1,2,3,4");
    assert_eq!(text(&db, "SELECT group_concat(x) FROM s"), "0,1,2,3,4");
    drop(db);
    assert_eq!(names(&folder), ["main.db", "main.db-shadow", "side.db", "side.db-shadow"]);
    for (name, table) in [("main.db", "m"), ("side.db", "s")] {
        let stock = folder.stock(name);
        assert_eq!(number(&stock, &format!("SELECT count(*) FROM {table}")), 5);
        whole(&stock);
    }
}

#[test]
fn databases_in_different_folders_commit_together() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("a")).expect("makes");
    std::fs::create_dir_all(folder.path("b/c")).expect("makes");
    let db = folder.open("a/main.db");
    db.execute("ATTACH ? AS side", [uri(&folder.path("b/c/side.db"), "dash", "")])
        .expect("attaches");
    db.execute_batch("CREATE TABLE main.m(x); CREATE TABLE side.s(x)").expect("commits");
    db.execute_batch("BEGIN; INSERT INTO m VALUES (1); INSERT INTO s VALUES (1); COMMIT")
        .expect("commits");
    assert_eq!(number(&db, "SELECT (SELECT count(*) FROM m) + (SELECT count(*) FROM s)"), 2);
}

#[test]
fn a_transaction_that_mixes_dash_and_stock_databases_is_refused() {
    for (main, side) in [("dash", "unix"), ("unix", "dash")] {
        let folder = Folder::new();
        let db = attached(&folder, main, side);
        db.execute_batch("INSERT INTO m VALUES (1)").expect("one at a time");
        db.execute_batch("INSERT INTO s VALUES (1)").expect("one at a time");
        db.execute_batch("BEGIN; INSERT INTO m VALUES (2); INSERT INTO s VALUES (2)")
            .expect("writes");
        assert!(db.execute_batch("COMMIT").is_err());
        let said = last_error(&db);
        assert!(said.contains("not in mode shadow nor in mode wal"), "{said}");
        assert!(said.contains("?vfs=dash"), "{said}");
        if !db.is_autocommit() {
            db.execute_batch("ROLLBACK").expect("rolls back");
        }
        assert_eq!(number(&db, "SELECT (SELECT count(*) FROM m) + (SELECT count(*) FROM s)"), 2);
        db.execute_batch("INSERT INTO m VALUES (3)").expect("one at a time");
        db.execute_batch("INSERT INTO s VALUES (3)").expect("one at a time");
        drop(db);
        assert!(!names(&folder).iter().any(|name| name.contains("-mj")), "{:?}", names(&folder));
        whole(&folder.open("main.db"));
        whole(&folder.open("side.db"));
    }
}

#[test]
fn a_plain_file_of_dash_is_refused_in_the_mix_too() {
    let folder = Folder::new();
    let db = folder.open("main.db");
    db.execute("ATTACH ? AS side", [uri(&folder.path("side.db"), "dash", "&journal_mode=delete")])
        .expect("attaches");
    db.execute_batch("CREATE TABLE main.m(x); CREATE TABLE side.s(x)").expect("commits");
    assert_eq!(text(&db, "SELECT dash_engine('side')"), "plain");
    db.execute_batch("BEGIN; INSERT INTO m VALUES (2); INSERT INTO s VALUES (2)").expect("writes");
    assert!(db.execute_batch("COMMIT").is_err());
    let said = last_error(&db);
    assert!(said.contains("PRAGMA journal_mode=shadow"), "{said}");
    assert_eq!(number(&db, "SELECT count(*) FROM m"), 0);
    assert_eq!(text(&db, "PRAGMA side.journal_mode=shadow"), "shadow");
    db.execute_batch("BEGIN; INSERT INTO m VALUES (2); INSERT INTO s VALUES (2); COMMIT")
        .expect("commits");
}

/// SQLite lists the databases in WAL mode in the super-journal of the others, too.
#[test]
fn databases_in_mode_wal_commit_beside_several_in_mode_shadow() {
    for of_wal in ["main", "a", "b"] {
        let folder = Folder::new();
        let db = folder.open("main.db");
        for name in ["a", "b"] {
            let uri = uri(&folder.path(&format!("{name}.db")), "dash", "");
            db.execute(&format!("ATTACH ? AS {name}"), [uri]).expect("attaches");
        }
        assert_eq!(text(&db, &format!("PRAGMA {of_wal}.journal_mode=wal")), "wal");
        for name in ["main", "a", "b"] {
            db.execute_batch(&format!("CREATE TABLE {name}.t_{name}(x)")).expect("commits");
        }
        let insert = |x| {
            format!(
                "INSERT INTO t_main VALUES ({x}); INSERT INTO t_a VALUES ({x}); INSERT INTO t_b VALUES ({x});"
            )
        };
        for x in 0..3 {
            db.execute_batch(&format!("BEGIN; {} COMMIT", insert(x)))
                .unwrap_or_else(|error| panic!("{of_wal}: {error}: {}", last_error(&db)));
        }
        db.execute_batch(&format!("BEGIN; {} ROLLBACK", insert(9))).expect("rolls back");
        drop(db);
        assert!(!names(&folder).iter().any(|name| name.contains("-mj")), "{:?}", names(&folder));
        for name in ["main", "a", "b"] {
            let stock = folder.stock(&format!("{name}.db"));
            assert_eq!(number(&stock, &format!("SELECT count(*) FROM t_{name}")), 3);
            whole(&stock);
        }
    }
}

/// A database that has left WAL mode has a journal again, also one whose other connections have it
/// in mode wal still.
#[test]
fn a_database_that_has_left_wal_mode_is_asked_for_its_journal() {
    for with_another in [false, true] {
        let folder = Folder::new();
        let db = folder.open("main.db");
        for name in ["a", "b"] {
            let uri = uri(&folder.path(&format!("{name}.db")), "dash", "");
            db.execute(&format!("ATTACH ? AS {name}"), [uri]).expect("attaches");
            db.execute_batch(&format!("CREATE TABLE {name}.t_{name}(x)")).expect("commits");
        }
        db.execute_batch("CREATE TABLE m(x)").expect("commits");
        assert_eq!(text(&db, "PRAGMA a.journal_mode=wal"), "wal");
        let _other = with_another.then(|| folder.open("a.db"));
        assert_eq!(text(&db, "PRAGMA a.journal_mode=delete"), "delete");
        db.execute_batch(
            "BEGIN; INSERT INTO t_a VALUES (1); INSERT INTO t_b VALUES (1); INSERT INTO m VALUES (1)",
        )
        .expect("writes");
        assert!(db.execute_batch("COMMIT").is_err());
        let said = last_error(&db);
        assert!(said.contains("a.db, which is not in mode shadow nor in mode wal"), "{said}");
    }
}

/// Run by the test below in a process whose files can't grow beyond a limit.
#[test]
#[ignore = "a role of the test below"]
fn a_process_with_a_limit() {
    let Some(folder) = role("a_process_with_a_limit") else { return };
    register();
    let path = std::path::Path::new(&folder);
    let db = Connection::open(uri(&path.join("main.db"), "dash", "")).expect("opens");
    db.execute("ATTACH ? AS side", [uri(&path.join("side.db"), "dash", "")]).expect("attaches");
    for _ in 0..3 {
        db.execute_batch(
            "BEGIN; INSERT INTO m VALUES ('lost'); INSERT INTO s VALUES (zeroblob(1000000))",
        )
        .expect("goes to memory");
        let failed = db.execute_batch("COMMIT");
        assert!(failed.is_err(), "beyond the limit");
        println!("said: {}", last_error(&db));
        if !db.is_autocommit() {
            db.execute_batch("ROLLBACK").expect("rolls back");
        }
        let both = "SELECT (SELECT count(*) FROM m) || (SELECT count(*) FROM s)";
        assert_eq!(text(&db, both), "11");
        let left = std::fs::read_dir(path).expect("lists").any(|entry| {
            let name = entry.expect("lists").file_name();
            name.to_string_lossy().contains("-mj")
        });
        assert!(!left, "the super-journal goes when both are undone");
    }
    db.execute_batch("BEGIN; INSERT INTO m VALUES (2); INSERT INTO s VALUES (2); COMMIT")
        .expect("within the limit");
    whole(&db);
    println!("done");
}

#[test]
fn a_second_database_that_fails_undoes_the_first_and_then_the_super_journal() {
    let folder = Folder::new();
    let db = attached(&folder, "dash", "dash");
    db.execute_batch("INSERT INTO m VALUES (1)").expect("commits");
    db.execute_batch("INSERT INTO s VALUES (1)").expect("commits");
    drop(db);
    let mut limited = std::process::Command::new("sh");
    limited
        .args(["-c", "trap '' XFSZ; ulimit -f 400; exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().expect("known"));
    cast(&mut limited, "a_process_with_a_limit", folder.path("."));
    let output = limited.output().expect("runs");
    let said = String::from_utf8_lossy(&output.stdout);
    let and = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("done"), "{said}{and}");
    for (name, table) in [("main.db", "m"), ("side.db", "s")] {
        let stock = folder.stock(name);
        assert_eq!(number(&stock, &format!("SELECT count(*) FROM {table}")), 2);
        whole(&stock);
    }
}
