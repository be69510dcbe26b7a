//! Protocol `paper` of mode statement: what carries a commit, how that is said, and chosen.

use super::common::*;

/// A database in the protocol, whose log is in use.
fn begun(folder: &Folder) -> Connection {
    let db = folder.try_open("app.db", "&journal_mode=statement&dash_commit=paper").expect("opens");
    db.execute_batch(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, v UNIQUE); INSERT INTO t(v) VALUES ('first');
         CREATE TABLE l(x); CREATE TRIGGER g AFTER DELETE ON l BEGIN SELECT 1; END",
    )
    .expect("commits");
    db
}

fn stat(db: &Connection, name: &str) -> i64 {
    number(db, &format!("SELECT value FROM dash_stats WHERE name = '{name}'"))
}

fn word(db: &Connection, name: &str) -> Option<String> {
    word_of(db, &format!("SELECT value FROM dash_stats WHERE name = '{name}'"))
}

fn word_of(db: &Connection, sql: &str) -> Option<String> {
    db.query_row(sql, [], |row| row.get(0)).expect("a row")
}

#[test]
fn what_provably_replays_is_carried_by_its_statements() {
    let folder = Folder::new();
    let db = begun(&folder);
    assert_eq!(text(&db, "PRAGMA dash_commit"), "paper");
    let before = (stat(&db, "carried"), stat(&db, "frames"), stat(&db, "records"));
    db.execute("INSERT INTO t(v) VALUES (?)", ["second"]).expect("commits");
    db.execute_batch("BEGIN; UPDATE t SET v = 2 WHERE id = 2; DELETE FROM t WHERE id = 1; COMMIT")
        .expect("commits");
    let after = (stat(&db, "carried"), stat(&db, "frames"), stat(&db, "records"));
    assert_eq!(after, (before.0 + 2, before.1, before.2 + 2));
    let log = folder.path("app.db");
    let history = dash_wal::history::History::read(&dash_storage::real::Real, &log);
    let commits = history.expect("reads").expect("a log").commits_behind(0).expect("whole");
    let carried: Vec<_> = commits.iter().rev().take(2).map(|commit| commit.carried).collect();
    assert_eq!(carried, [true, true]);
}

#[test]
fn and_what_does_not_is_counted_by_reason() {
    let folder = Folder::new();
    let db = begun(&folder);
    let carried = stat(&db, "carried");
    let reasons = || word(&db, "not_carried").expect("in this protocol");
    for (sql, reason) in [
        ("INSERT INTO t(v) VALUES (random())", "function 1"),
        ("INSERT INTO l VALUES (1)", "trigger 1"),
        ("UPDATE t SET v = v || 'x'", "form"),
        ("ALTER TABLE t ADD COLUMN w", "form"),
    ] {
        db.execute_batch(sql).expect(sql);
        assert!(reasons().contains(reason), "{sql}: {}", reasons());
    }
    assert_eq!(stat(&db, "carried"), carried);
    // By the schema as it is since.
    db.execute_batch("INSERT INTO t(v, w) VALUES (3, 4)").expect("commits");
    assert_eq!(stat(&db, "carried"), carried + 1);
    let other = folder.try_open("app.db", "&journal_mode=wal").expect("opens");
    other.execute_batch("CREATE INDEX e ON t(abs(w))").expect("commits");
    // The first one is prepared again, as SQLite finds the other schema; that is no reason.
    db.execute_batch("INSERT INTO t(v, w) VALUES (5, 6)").expect("commits");
    db.execute_batch("INSERT INTO t(v, w) VALUES (7, 8)").expect("commits");
    assert_eq!(stat(&db, "carried"), carried + 1, "{}", reasons());
    assert!(reasons().contains("expression 2"), "{}", reasons());
}

#[test]
fn it_is_chosen_by_the_connection() {
    let folder = Folder::new();
    let db = begun(&folder);
    assert_eq!(text(&db, "PRAGMA dash_commit=single"), "single");
    assert_eq!(word(&db, "not_carried"), None);
    let carried = stat(&db, "carried");
    db.execute_batch("INSERT INTO t(v) VALUES (7)").expect("commits");
    assert_eq!(stat(&db, "carried"), carried);
    assert_eq!(text(&db, "PRAGMA dash_commit='Paper'"), "paper");
    db.execute_batch("INSERT INTO t(v) VALUES (8)").expect("commits");
    assert_eq!(stat(&db, "carried"), carried + 1);
    let refused = db.execute_batch("PRAGMA dash_commit=exclusive").expect_err("no such one");
    assert!(refused.to_string().contains("in mode statement there are single, paper"), "{refused}");
    assert!(folder.try_open("app.db", "&journal_mode=statement&dash_commit=exclusive").is_err());
    assert!(last_error(&db).contains("there are single, paper"), "{}", last_error(&db));
    // In mode wal there is none.
    let other = folder.try_open("app.db", "").expect("opens");
    assert_eq!(text(&other, "PRAGMA journal_mode=STATEMENT"), "statement");
    let refused = message(other.execute_batch("PRAGMA dash_commit=paper"));
    assert!(refused.contains("are not seen") && refused.contains("in its URI"), "{refused}");
    assert_eq!(text(&other, "PRAGMA dash_commit"), "single");
    assert_eq!(text(&other, "PRAGMA dash_commit=single"), "single");
    other.execute_batch("INSERT INTO t(v) VALUES (9)").expect("commits");
    assert_eq!(stat(&other, "carried"), 0, "opened in another mode, nobody was told of it");
    assert_eq!(text(&other, "PRAGMA journal_mode=WAL"), "wal");
    assert_eq!(word(&other, "not_carried"), None);
}

/// A log that somebody else wrote runs nothing that reaches beyond the database's pages.
#[test]
fn what_was_planted_is_not_run() {
    let folder = Folder::new();
    let db = begun(&folder);
    let insert = format!("INSERT INTO t(v) VALUES ('{}')", "x".repeat(200));
    db.execute_batch(&insert).expect("commits");
    let other = folder.path("planted.db");
    for planted in [None, Some(format!("ATTACH '{}' AS o", other.display()))] {
        let cut = Folder::new();
        for name in ["app.db", "app.db-wal", "app.db-dashlog"] {
            std::fs::copy(folder.path(name), cut.path(name)).expect("copies");
        }
        std::fs::create_dir(cut.path("app.db-journal")).expect("the name fence");
        let wal = cut.path("app.db-wal");
        let len = std::fs::metadata(&wal).expect("is there").len();
        let wal = std::fs::OpenOptions::new().write(true).open(wal).expect("opens");
        wal.set_len(len - 1).expect("cuts the last frame off");
        if let Some(planted) = &planted {
            plant(&cut.path("app.db-dashlog"), &insert, planted);
        }
        let opened = cut.try_open("app.db", "&journal_mode=wal");
        match planted {
            None => {
                let rows = number(&opened.expect("recovers"), "SELECT count(*) FROM t");
                assert_eq!(rows, 2);
            }
            Some(_) => {
                assert!(opened.is_err());
                let said = last_error(&db);
                assert!(said.contains("none that dash writes"), "{said}");
                assert!(said.contains("--discard"), "{said}");
                assert!(!other.exists(), "another file was made");
            }
        }
    }
}

/// Puts another text in the place of one in a record of a log, with the checksum that belongs to
/// it (dash-log/FORMAT.md).
fn plant(log: &std::path::Path, text: &str, planted: &str) {
    let mut bytes = std::fs::read(log).expect("reads");
    let at = bytes.windows(text.len()).rposition(|part| part == text.as_bytes()).expect("is there");
    bytes[at..at + text.len()].fill(b' ');
    bytes[at..at + planted.len()].copy_from_slice(planted.as_bytes());
    let magic = b"\xFF\xFF\xFF\xFFDSHL";
    let start = bytes[..at].windows(magic.len()).rposition(|part| part == magic).expect("a record");
    let length = u32::from_le_bytes(bytes[start + 32..start + 36].try_into().expect("four"));
    bytes[start + 12..start + 16].fill(0);
    let record = start..start + usize::try_from(length).expect("fits");
    let sum = crc32fast::hash(&bytes[record]);
    bytes[start + 12..start + 16].copy_from_slice(&sum.to_le_bytes());
    std::fs::write(log, bytes).expect("writes");
}

/// A schema that somebody writes by hand, and says nothing of, is not what SQLite goes by.
#[test]
fn a_schema_written_by_hand_proves_nothing() {
    let folder = Folder::new();
    let db = begun(&folder);
    db.execute_batch("INSERT INTO t(v) VALUES (7)").expect("commits");
    let carried = stat(&db, "carried");
    let other = folder.try_open("app.db", "&journal_mode=wal").expect("opens");
    other
        .execute_batch("PRAGMA writable_schema=ON; DELETE FROM sqlite_schema WHERE name = 'g'")
        .expect("commits");
    db.execute_batch("INSERT INTO t(v) VALUES (8)").expect("commits");
    assert_eq!(stat(&db, "carried"), carried);
    db.execute_batch("CREATE TABLE other(x)").expect("commits");
    db.execute_batch("INSERT INTO t(v) VALUES (9)").expect("commits");
    assert_eq!(stat(&db, "carried"), carried + 1);
}

/// SQLite takes names in single quotes, an empty statement before another one, and a copy that is
/// put there; and what is temporary comes before what is not.
#[test]
fn what_is_temporary_proves_nothing_whoever_made_it() {
    let columns = "t(id INTEGER PRIMARY KEY, v)";
    let texts = ["CREATE TABLE 'temp'.", "; CREATE TEMP TABLE ", "CREATE/**/TEMPORARY TABLE "];
    for made in texts.map(Some).into_iter().chain([None]) {
        let folder = Folder::new();
        let mut db = begun(&folder);
        match made {
            Some(made) => db.execute_batch(&format!("{made}{columns}")).expect("makes it"),
            None => {
                let other = Connection::open_in_memory().expect("opens");
                other.execute_batch(&format!("CREATE TABLE {columns}")).expect("makes it");
                let put = rusqlite::backup::Backup::new_with_names(&other, "main", &mut db, "temp");
                put.expect("begins").step(-1).expect("copies");
            }
        }
        let carried = stat(&db, "carried");
        db.execute_batch("BEGIN; CREATE TABLE k(x); INSERT INTO t VALUES (7, 7); COMMIT")
            .expect("commits");
        db.execute_batch("BEGIN; INSERT INTO k VALUES (1); INSERT INTO t VALUES (8, 8); COMMIT")
            .expect("commits");
        assert_eq!(number(&db, "SELECT count(*) FROM main.t WHERE id > 1"), 0, "{made:?}");
        assert_eq!(stat(&db, "carried"), carried, "{made:?}");
        let reasons = word(&db, "not_carried").expect("in this protocol");
        assert!(reasons.contains("temporary 2"), "{made:?}: {reasons}");
    }
}

/// Also where its table is named in single quotes.
#[test]
fn a_table_that_a_foreign_key_leads_to_is_left_out() {
    let folder = Folder::new();
    let db = begun(&folder);
    db.execute_batch("CREATE TABLE c(r REFERENCES 't')").expect("commits");
    let carried = stat(&db, "carried");
    db.execute_batch("DELETE FROM t WHERE id = 1").expect("commits");
    assert_eq!(stat(&db, "carried"), carried);
    let reasons = word(&db, "not_carried").expect("in this protocol");
    assert!(reasons.contains("foreign_key 1"), "{reasons}");
}

/// What was asked for means something here.
#[test]
fn an_open_in_the_protocol_is_no_error() {
    let folder = Folder::new();
    let db = begun(&folder);
    // Other tests have messages, too.
    let its = format!("{} is in mode", folder.path("app.db").display());
    let said = || word_of(&db, "SELECT dash_last_error()").is_some_and(|said| said.contains(&its));
    assert!(!said());
    let other = folder.try_open("app.db", "&journal_mode=statement&dash_commit=paper");
    assert!(!said());
    drop(other.expect("opens"));
}

#[test]
fn who_only_reads_has_no_protocol() {
    let folder = Folder::new();
    let db = begun(&folder);
    let reader = folder.try_open("app.db", "&mode=ro&journal_mode=statement&dash_commit=paper");
    let reader = reader.expect("opens");
    assert_eq!(number(&reader, "SELECT count(*) FROM t"), 1);
    for sql in ["PRAGMA dash_commit", "PRAGMA dash_commit=paper"] {
        let refused = message(reader.execute_batch(sql));
        assert!(refused.contains("for reading only"), "{sql}: {refused}");
    }
    assert_eq!(word(&reader, "not_carried"), None);
    drop(db);
}
