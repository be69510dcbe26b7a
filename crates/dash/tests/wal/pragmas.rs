//! What can be chosen and asked.

use crate::common::*;
use crate::{at_rest, create};

#[test]
fn each_choice_is_a_pragma_and_a_parameter() {
    let folder = Folder::new();
    let db = create(&folder, "app.db");
    for (name, values) in [
        ("dash_durability", &["host", "full", "device", "none"][..]),
        ("dash_barrier", &["log", "wal"]),
        ("dash_read", &["latest", "durable"]),
        ("dash_statement_text", &["slack", "full", "off"]),
    ] {
        assert_eq!(text(&db, &format!("PRAGMA {name}")), values[0]);
        for value in values.iter().rev() {
            assert_eq!(text(&db, &format!("PRAGMA {name}={value}")), *value);
            assert_eq!(text(&db, &format!("PRAGMA {name}")), *value);
            let asked = folder.try_open("app.db", &format!("&{name}={value}")).expect("opens");
            assert_eq!(text(&asked, &format!("PRAGMA {name}")), *value);
            db.execute_batch("CREATE TABLE IF NOT EXISTS t(x); INSERT INTO t VALUES (1)")
                .expect("commits");
            asked.execute_batch("INSERT INTO t VALUES (1)").expect("commits");
        }
        let wrong = message(db.execute_batch(&format!("PRAGMA {name}=often")));
        assert!(wrong.contains(&values.join(", ")), "{wrong}");
        assert_eq!(
            code(folder.try_open("app.db", &format!("&{name}=often"))),
            ErrorCode::CannotOpen
        );
        let shadow = folder.open("shadow.db");
        let elsewhere = message(shadow.execute_batch(&format!("PRAGMA {name}")));
        assert!(elsewhere.contains("not in mode wal"), "{elsewhere}");
    }
}

#[test]
fn what_means_nothing_here_says_so() {
    let folder = Folder::new();
    let db = create(&folder, "app.db");
    let said = message(db.execute_batch("PRAGMA dash_commit"));
    assert!(said.contains("dash_commit means nothing in mode wal"), "{said}");
    assert!(said.contains("dash_durability"), "{said}");
}

#[test]
fn statistics_and_latencies_count_commits() {
    let folder = Folder::new();
    let db = create(&folder, "app.db");
    db.execute_batch("PRAGMA synchronous=FULL; CREATE TABLE t(x)").expect("commits");
    let statistic =
        |name: &str| number(&db, &format!("SELECT value FROM dash_stats WHERE name = '{name}'"));
    let before = statistic("commits");
    for x in 0..10 {
        db.execute("INSERT INTO t VALUES (?)", [x]).expect("commits");
    }
    assert_eq!(statistic("commits") - before, 10);
    let count = |op: &str| {
        number(&db, &format!("SELECT coalesce(sum(count), 0) FROM dash_latency WHERE op = '{op}'"))
    };
    assert_eq!(count("commit"), 11);
    // One each, and a few where the session begins; not one each for what SQLite asks for besides.
    let flushes = count("flush");
    assert!((11..=14).contains(&flushes), "{flushes}");
    // A commit that nobody flushes is none.
    db.execute_batch("PRAGMA synchronous=NORMAL").expect("sets");
    for x in 0..10 {
        db.execute("INSERT INTO t VALUES (?)", [x]).expect("commits");
    }
    assert_eq!((count("commit"), count("flush")), (21, flushes));
    assert_eq!(count("read"), 0);
    assert_eq!(text(&db, "PRAGMA dash_time_reads=on"), "on");
    db.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").expect("checkpoints");
    let second = folder.open("app.db");
    second.execute_batch("PRAGMA dash_time_reads=on; SELECT * FROM t").expect("reads");
    let reads = "SELECT sum(count) FROM dash_latency WHERE op = 'read'";
    assert!(number(&second, reads) > 0);
    assert_eq!(text(&db, "SELECT count(*) FROM dash_stats WHERE name = 'wakeups'"), "1");
}

/// What `durability` says is what a commit gets, whatever SQLite and dash were told, and each level
/// of an attached database is its own.
#[test]
fn durability_is_told_as_it_is_and_commits_without_a_flush_are_counted() {
    let folder = Folder::new();
    drop([create(&folder, "app.db"), create(&folder, "other.db")]);
    // Whatever the time between two commits: the first one behind a rest is flushed.
    let db = folder.try_open("app.db", "&dash_rest=off").expect("opens");
    db.execute_batch(&format!(
        "CREATE TABLE t(x); ATTACH '{}' AS \"my \"\"own\"",
        uri(&folder.path("other.db"), "dash", "")
    ))
    .expect("attaches");
    let other = "'my \"own'";
    db.execute_batch("PRAGMA \"my \"\"own\".synchronous=OFF").expect("sets");
    for (level, chosen, durability, flushed) in [
        ("FULL", "host", "full", true),
        ("NORMAL", "host", "normal", false),
        ("EXTRA", "host", "full", true),
        ("OFF", "host", "off", false),
        ("OFF", "full", "full", true),
        ("NORMAL", "full", "full", true),
        ("NORMAL", "device", "device", true),
        ("FULL", "none", "none", false),
    ] {
        let set = format!("PRAGMA main.synchronous={level}; PRAGMA main.dash_durability={chosen}");
        db.execute_batch(&set).expect("sets");
        let told = |name| format!("SELECT value FROM dash_stats WHERE name = '{name}'");
        assert_eq!(text(&db, &told("durability")), durability, "{level}, {chosen}");
        let unflushed = || number(&db, &told("unflushed_commits"));
        let before = unflushed();
        db.execute_batch("INSERT INTO t VALUES (1)").expect("commits");
        assert_eq!(unflushed() - before, i64::from(!flushed), "{level}, {chosen}");
        let theirs = format!("SELECT value FROM dash_stats({other}) WHERE name = 'durability'");
        assert_eq!(text(&db, &theirs), "off", "{level}, {chosen}");
    }
}

/// What was deleted is in no file at rest; a log that says nothing and stays is the rule without.
#[test]
fn secure_delete_leaves_no_log() {
    for (value, stays) in [("off", true), ("on", false), ("fast", false), ("1", false)] {
        let folder = Folder::new();
        let db = create(&folder, "app.db");
        let other = folder.open("app.db");
        db.execute_batch(&format!("PRAGMA secure_delete={value}; CREATE TABLE t(x)"))
            .expect("sets");
        for db in [&db, &other] {
            db.execute_batch("INSERT INTO t VALUES (printf('%s%s', 'forgot', 'ten'))")
                .expect("commits");
        }
        db.execute_batch("DELETE FROM t").expect("commits");
        assert!(folder.exists("app.db-dashlog"));
        db.close().expect("closes");
        assert!(folder.exists("app.db-dashlog"), "somebody has it open");
        other.close().expect("closes");
        assert_eq!(folder.exists("app.db-dashlog"), stays, "{value}");
        if stays {
            continue;
        }
        for name in std::fs::read_dir(folder.path(".")).expect("a folder") {
            let bytes = std::fs::read(name.expect("a name").path()).expect("a file");
            assert!(!bytes.windows(9).any(|window| window == b"forgotten"), "{value}");
        }
        let db = folder.open("app.db");
        db.execute_batch("INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)").expect("commits");
        assert_eq!(number(&db, "SELECT count(*) FROM t"), 2);
    }
}

fn checkpoint(db: &Connection, how: &str) -> Result<(i64, i64, i64)> {
    let sql = format!("PRAGMA wal_checkpoint({how})");
    db.query_row(&sql, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
}

/// As in stock SQLite: what needs no write to the database is answered.
#[test]
fn a_connection_that_only_reads_may_ask_for_a_checkpoint() {
    let folder = Folder::new();
    let db = create(&folder, "app.db");
    db.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (1)").expect("commits");
    let reader = folder.try_open("app.db", "&mode=ro").expect("opens");
    assert_eq!(text(&reader, "SELECT dash_engine()"), "wal");
    assert_eq!(number(&reader, "SELECT sum(x) FROM t"), 1);
    for how in ["PASSIVE", "TRUNCATE"] {
        let refused = checkpoint(&reader, how);
        assert_eq!(code(refused), ErrorCode::ReadOnly, "{how}: it would have to write");
    }
    let (busy, log, copied) = checkpoint(&db, "PASSIVE").expect("checkpoints");
    assert!(busy == 0 && log > 0 && log == copied);
    for how in ["PASSIVE", "FULL"] {
        assert_eq!(checkpoint(&reader, how).expect("answers"), (0, log, log), "{how}");
    }
    assert_eq!(checkpoint(&reader, "TRUNCATE").expect("answers"), (0, 0, 0));
    for x in 2..20 {
        db.execute("INSERT INTO t VALUES (?)", [x]).expect("commits");
        assert_eq!(number(&reader, "SELECT max(x) FROM t"), x);
    }
    whole(&reader);
    reader.close().expect("closes");
    assert!(folder.path("app.db-wal").metadata().expect("stays").len() > 0);
    db.execute_batch("INSERT INTO t VALUES (20)").expect("commits");
    assert_eq!(number(&db, "SELECT count(*) FROM t"), 20);
    db.close().expect("closes");
    at_rest(&folder, "app.db");
}
