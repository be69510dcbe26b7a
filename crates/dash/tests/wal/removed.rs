//! What `rm` leaves of a database whose programs were killed.

use crate::common::*;

/// `rm` takes no folder.
#[test]
fn a_name_fence_alone_keeps_no_new_database_away() {
    for mode in ["wal", "statement", "shadow"] {
        let folder = Folder::new();
        std::fs::create_dir(folder.path("app.db-journal")).expect("makes the fence");
        let db = folder.try_open("app.db", &format!("&journal_mode={mode}")).expect("opens");
        db.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (1)").expect("commits");
        db.close().expect("closes");
        assert_eq!(number(&folder.stock("app.db"), "SELECT sum(x) FROM t"), 1, "{mode}");
    }
}

#[test]
fn a_log_without_its_database_is_told_of() {
    let folder = Folder::new();
    let probe = folder.open("probe.db");
    let db = folder.try_open("app.db", "&journal_mode=wal").expect("opens");
    db.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)")
        .expect("commits");
    let kept = ["app.db-wal", "app.db-dashlog"].map(|name| (name, folder.path(name)));
    let kept = kept.map(|(name, path)| (name, std::fs::read(path).expect("reads")));
    db.close().expect("closes");
    for (name, bytes) in kept {
        std::fs::write(folder.path(name), bytes).expect("writes");
    }
    std::fs::create_dir(folder.path("app.db-journal")).expect("makes the fence");
    for contents in [None, Some([])] {
        std::fs::remove_file(folder.path("app.db")).expect("removes");
        if let Some(contents) = contents {
            std::fs::write(folder.path("app.db"), contents).expect("empties");
        }
        for parameter in ["", "&journal_mode=wal", "&journal_mode=shadow"] {
            let refused = folder.try_open("app.db", parameter);
            refused.expect_err("its database is missing");
            let said = last_error(&probe);
            assert!(said.contains("put app.db back"), "{parameter}: {said}");
            assert_eq!(folder.exists("app.db"), contents.is_some());
        }
        std::fs::write(folder.path("app.db"), []).expect("is there");
    }
}

/// Where no log counts, as in a session of few commits: stock SQLite would delete `-wal`.
#[test]
fn so_is_a_wal_that_holds_commits() {
    let folder = Folder::new();
    let probe = folder.open("probe.db");
    let db = folder.try_open("app.db", "&journal_mode=wal").expect("opens");
    db.execute_batch("CREATE TABLE t(x)").expect("commits");
    let kept = std::fs::read(folder.path("app.db-wal")).expect("reads");
    db.close().expect("closes");
    for emptied in [false, true] {
        std::fs::remove_file(folder.path("app.db")).expect("removes");
        std::fs::write(folder.path("app.db-wal"), &kept).expect("writes");
        if emptied {
            std::fs::write(folder.path("app.db"), []).expect("empties");
        }
        for parameter in ["", "&mode=ro", "&journal_mode=wal", "&journal_mode=shadow"] {
            let opened = folder.try_open("app.db", parameter);
            assert!(opened.is_err(), "{emptied} {parameter}");
            let said = last_error(&probe);
            let told = said.contains("app.db-wal holds commits of it: put app.db back");
            assert!(told || parameter == "&mode=ro" && !emptied, "{parameter}: {said}");
            assert_eq!(std::fs::read(folder.path("app.db-wal")).expect("is there"), kept);
            assert_eq!(folder.exists("app.db"), emptied, "{parameter}");
        }
        // A header alone, or less, holds nothing.
        std::fs::write(folder.path("app.db-wal"), &kept[..100]).expect("cuts it");
        let db = folder.try_open("app.db", "&journal_mode=wal").expect("a new one begins");
        db.execute_batch("CREATE TABLE t(x)").expect("commits");
        db.close().expect("closes");
    }
}
