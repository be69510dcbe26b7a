//! Backups, `VACUUM INTO` and attached databases, beside stock SQLite's.

use rusqlite::backup::Backup;

use crate::beside_stock::{Side, error_of, same, say};
use crate::common::*;

const FILL: &str = "WITH n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 300) \
                    INSERT INTO t SELECT printf('%0400d', i) FROM n";
const INSERT: &str = "INSERT INTO t VALUES (zeroblob(9000))";
/// Which of source and target stock SQLite opens, beside dash.
const PAIRS: [&[&str]; 3] = [&[], &["source.db"], &["target.db"]];

/// Some steps of a backup: what each answers, and how far it got.
fn steps(backup: &Backup<'_, '_>, pages: &[i32], said: &mut Vec<String>) {
    for pages in pages {
        let answer = match backup.step(*pages) {
            Ok(answer) => format!("{answer:?}"),
            Err(error) => error_of(&error),
        };
        let progress = backup.progress();
        said.push(format!("{answer} {} of {}", progress.remaining, progress.pagecount));
    }
}

fn source_and_target(side: &Side, page_size: u32) -> [Connection; 2] {
    side.make("source.db", "");
    side.make("target.db", &format!("PRAGMA page_size={page_size}"));
    let both = ["source.db", "target.db"].map(|name| side.open(name));
    assert_eq!(say(&both[0], FILL), "");
    both
}

#[test]
fn a_backup_goes_on_while_others_commit() {
    for stock in PAIRS {
        let said = same(stock, |side| {
            let [source, mut target] = source_and_target(side, 4096);
            assert_eq!(say(&target, INSERT), "");
            let (writer, watching) = (side.open("source.db"), side.open("target.db"));
            let mut said = vec![say(&watching, "SELECT count(*) FROM t")];
            let backup = Backup::new(&source, &mut target).expect("begins");
            steps(&backup, &[5, 7], &mut said);
            // It is begun anew where another connection commits, and not where its own does.
            for db in [&writer, &source, &writer] {
                said.push(say(db, "DELETE FROM t WHERE rowid % 50 = 7"));
                said.push(say(db, INSERT));
                steps(&backup, &[5, 9], &mut said);
            }
            said.push(say(&source, "BEGIN"));
            said.push(say(&source, INSERT));
            steps(&backup, &[3], &mut said);
            said.push(say(&source, "COMMIT"));
            said.push(say(&writer, "PRAGMA wal_checkpoint(TRUNCATE)"));
            // Nobody else writes the target meanwhile; who reads it sees what it was.
            for sql in ["SELECT count(*) FROM t", "BEGIN IMMEDIATE", "PRAGMA wal_checkpoint"] {
                said.push(say(&watching, sql));
            }
            steps(&backup, &[4, 1000, 1], &mut said);
            drop(backup);
            for db in [&target, &watching] {
                said.push(say(db, "PRAGMA integrity_check; SELECT count(*) FROM t"));
                said.push(say(db, INSERT));
            }
            said
        });
        assert!(said.iter().any(|said| said == "Done 0 of 43"), "{said:?}");
    }
}

#[test]
fn a_backup_waits_for_a_reader_or_a_writer_and_is_given_up() {
    for stock in PAIRS {
        same(stock, |side| {
            let [source, mut target] = source_and_target(side, 4096);
            let (writer, other) = (side.open("source.db"), side.open("target.db"));
            let mut said = vec![say(&other, "BEGIN IMMEDIATE"), say(&other, INSERT)];
            let backup = Backup::new(&source, &mut target).expect("begins");
            steps(&backup, &[5], &mut said);
            said.push(say(&other, "COMMIT; BEGIN; SELECT count(*) FROM t"));
            steps(&backup, &[5], &mut said);
            said.push(say(&writer, "BEGIN EXCLUSIVE"));
            said.push(say(&writer, INSERT));
            steps(&backup, &[5], &mut said);
            said.push(say(&writer, "COMMIT"));
            steps(&backup, &[5], &mut said);
            drop(backup);
            said.push(say(&target, "SELECT count(*) FROM t; PRAGMA integrity_check"));
            said.push(say(&other, "SELECT count(*) FROM t; COMMIT"));
            let backup = Backup::new(&source, &mut target).expect("begins");
            steps(&backup, &[5, -1], &mut said);
            said
        });
    }
}

#[test]
fn a_backup_changes_no_page_size_of_a_database_in_wal_mode() {
    for stock in PAIRS {
        for page_size in [1024, 65536] {
            let said = same(stock, |side| {
                let [source, mut target] = source_and_target(side, page_size);
                let mut said = Vec::new();
                let backup = Backup::new(&source, &mut target).expect("begins");
                steps(&backup, &[5, -1], &mut said);
                drop(backup);
                said.push(say(&target, INSERT));
                said.push(say(&target, "PRAGMA page_size; PRAGMA journal_mode"));
                said
            });
            assert!(said[0].starts_with("error 8 "), "{said:?}");
        }
    }
}

#[test]
fn a_backup_of_a_database_that_is_not_in_wal_mode_stays_in_it() {
    for stock in PAIRS {
        let said = same(stock, |side| {
            let [source, mut target] = source_and_target(side, 4096);
            let mut said = vec![say(&source, "PRAGMA journal_mode=DELETE")];
            steps(&Backup::new(&source, &mut target).expect("begins"), &[9, -1], &mut said);
            said.push(say(&target, "PRAGMA journal_mode"));
            said.push(say(&target, INSERT));
            // And back, into one that is open in mode delete.
            let (target, mut source) = (target, source);
            steps(&Backup::new(&target, &mut source).expect("begins"), &[9, -1], &mut said);
            said.push(say(&source, "SELECT count(*) FROM t; PRAGMA journal_mode"));
            said.push(say(&source, INSERT));
            said
        });
        assert!(said.iter().any(|said| said == "wal"), "{said:?}");
        assert!(said.iter().all(|said| !said.contains("error")), "{said:?}");
    }
}

/// To a plain name, which goes to the VFS of `main`, and to one that names it.
#[test]
fn vacuum_into_copies_what_is_committed() {
    same(&[], |side| {
        let (db, other) = (side.open("app.db"), side.open("app.db"));
        let mut said = vec![say(&db, FILL), say(&other, "BEGIN IMMEDIATE"), say(&other, INSERT)];
        let mut into = |db: &Connection, name: &str| {
            let copied = db.execute("VACUUM INTO ?", [name]);
            said.push(copied.map_or_else(|error| error_of(&error), |_| "copied".into()));
        };
        let path = |name| side.folder.path(name).display().to_string();
        into(&db, &path("plain.db"));
        into(&db, &side.uri("named.db", ""));
        into(&db, &uri(&side.folder.path("stock.db"), "unix", ""));
        into(&other, &path("within a transaction.db"));
        into(&db, &path("plain.db"));
        into(&db, &path("missing/copy.db"));
        say(&other, "COMMIT; BEGIN; SELECT count(*) FROM t");
        say(&db, "DELETE FROM t");
        into(&db, &path("later.db"));
        let reader = side.try_open("app.db", "&mode=ro").expect("opens");
        into(&reader, &path("reader.db"));
        said.push(say(&other, "SELECT count(*) FROM t; COMMIT; VACUUM"));
        for name in ["plain.db", "named.db", "stock.db", "later.db", "reader.db"] {
            let copy = Connection::open(side.uri(name, "")).expect("opens");
            said.push(say(&copy, "PRAGMA integrity_check; SELECT count(*) FROM t"));
            said.push(say(&copy, INSERT));
        }
        said
    });
}

/// A copy in mode wal is two steps: SQLite vacuums into an empty file only.
#[test]
fn a_copy_of_vacuum_into_is_put_into_mode_wal_afterwards() {
    let folder = Folder::new();
    let db = crate::create(&folder, "app.db");
    db.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (1)").expect("commits");
    let name = uri(&folder.path("copy.db"), "dash", "&journal_mode=wal");
    let said = message(db.execute("VACUUM INTO ?", [name]));
    assert!(said.contains("output file already exists"), "{said}");
    std::fs::remove_file(folder.path("copy.db")).expect("it is empty");
    db.execute("VACUUM INTO ?", [uri(&folder.path("copy.db"), "dash", "")]).expect("copies");
    let copy = crate::create(&folder, "copy.db");
    assert_eq!(number(&copy, "SELECT x FROM t"), 1);
    drop(copy);
    crate::at_rest(&folder, "copy.db");
}

/// What is done to `main`, `side` and both, by a connection and by others beside it.
fn over_both(side: &Side) -> Vec<String> {
    side.make("side.db", "");
    let db = side.open("app.db");
    db.execute("ATTACH ? AS side", [side.uri("side.db", "")]).expect("attaches");
    let (main, second) = (side.open("app.db"), side.open("side.db"));
    let both = "INSERT INTO main.t VALUES (zeroblob(5000)); INSERT INTO side.t VALUES (7)";
    let mut said = Vec::new();
    let mut next = |db: &Connection, sql: &str| {
        said.push(say(db, sql));
        said.push(format!("{:?} {:?}", side.sizes("app.db"), side.sizes("side.db")));
    };
    next(&db, &format!("BEGIN; {both}; COMMIT"));
    next(&db, &format!("BEGIN; {both}; ROLLBACK"));
    next(&db, &format!("SAVEPOINT a; {both}; SAVEPOINT b; {both}; ROLLBACK TO b; RELEASE a"));
    next(&db, "PRAGMA main.wal_checkpoint; PRAGMA side.wal_checkpoint(RESTART)");
    // One of them is taken.
    for taken in [&main, &second] {
        next(taken, "BEGIN IMMEDIATE; INSERT INTO t VALUES (1)");
        next(&db, &format!("BEGIN; {both}"));
        next(&db, "COMMIT");
        next(taken, "COMMIT");
        next(&db, "SELECT count(*) FROM main.t; SELECT count(*) FROM side.t");
    }
    // A snapshot of one that is old when the other one is written.
    next(&db, "BEGIN; SELECT count(*) FROM side.t; INSERT INTO main.t VALUES (2)");
    next(&second, "INSERT INTO t VALUES (3)");
    next(&db, "SELECT count(*) FROM side.t; INSERT INTO side.t VALUES (4)");
    next(&db, "COMMIT");
    next(&db, "INSERT INTO side.t SELECT * FROM main.t; DELETE FROM main.t WHERE x = 2");
    next(
        &db,
        "PRAGMA wal_checkpoint(TRUNCATE); PRAGMA main.journal_mode; PRAGMA side.journal_mode",
    );
    next(&db, "PRAGMA side.wal_autocheckpoint=1; PRAGMA side.journal_size_limit=0");
    next(&db, both);
    next(&main, "SELECT count(*) FROM t");
    next(&second, "SELECT count(*) FROM t");
    next(&db, "DETACH side; INSERT INTO t VALUES (9)");
    next(&second, "INSERT INTO t VALUES (10)");
    said
}

#[test]
fn a_transaction_goes_over_databases_of_dash_and_of_stock_sqlite() {
    for stock in [&["side.db"][..], &["app.db"], &[]] {
        let said = same(stock, over_both);
        assert!(said.iter().any(|said| said == "error 5"), "{said:?}");
        assert!(said.iter().any(|said| said.ends_with("error 517")), "{said:?}");
    }
}

#[test]
fn dash_is_asked_about_a_database_that_is_attached_to_a_stock_main() {
    let folder = Folder::new();
    crate::create(&folder, "app.db").execute_batch("CREATE TABLE t(x)").expect("commits");
    let db = folder.stock("main.db");
    db.execute("ATTACH ? AS side", [uri(&folder.path("app.db"), "dash", "")]).expect("attaches");
    let asked = "SELECT dash_engine(), dash_engine('side')";
    assert_eq!(say(&db, asked), "none|wal");
    for x in 0..4 {
        db.execute("INSERT INTO side.t VALUES (?)", [x]).expect("commits");
    }
    let commits = "SELECT value FROM dash_stats('side') WHERE name = 'commits'";
    assert_eq!(number(&db, commits), 4);
    assert_eq!(text(&db, "PRAGMA side.dash_durability"), "host");
    assert_eq!(say(&db, "PRAGMA dash_durability"), "", "stock SQLite knows none");
    assert_eq!(say(&db, "SELECT * FROM dash_stats"), "error 1", "main is not on dash");
    db.close().expect("closes");
    crate::at_rest(&folder, "app.db");
}
