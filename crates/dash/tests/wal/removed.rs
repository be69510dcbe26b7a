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
            assert!(said.contains("put the database back"), "{parameter}: {said}");
            assert_eq!(folder.exists("app.db"), contents.is_some());
        }
        std::fs::write(folder.path("app.db"), []).expect("is there");
    }
}
