//! What a user sees: PRAGMAs, URI parameters, functions, tables.

mod common;
use common::*;

#[test]
fn journal_mode_answers_shadow_and_stays_shadow_in_the_file() {
    let folder = Folder::new();
    let db = folder.open("app.db");
    assert_eq!(text(&db, "PRAGMA journal_mode"), "shadow");
    assert_eq!(text(&db, "PRAGMA journal_mode=SHADOW"), "shadow");
    assert_eq!(text(&db, "PRAGMA main.journal_mode"), "shadow");
    db.execute_batch("CREATE TABLE t(x)").expect("commits");
    drop(db);
    assert!(folder.exists("app.db-shadow"));
    assert!(!folder.exists("app.db-journal") && !folder.exists("app.db-wal"));
    assert_eq!(text(&folder.open("app.db"), "PRAGMA journal_mode"), "shadow");
}

#[test]
fn modes_without_an_engine_change_nothing_and_say_so() {
    let folder = Folder::new();
    let db = folder.open("app.db");
    db.execute_batch("CREATE TABLE t(x)").expect("commits");
    for mode in ["INPAGE", "inpage"] {
        assert_eq!(text(&db, &format!("PRAGMA journal_mode={mode}")), "shadow");
        let said = last_error(&db);
        assert!(said.contains(&mode.to_lowercase()) && said.contains("isn't available"), "{said}");
    }
    db.execute_batch("INSERT INTO t VALUES (1)").expect("commits");
}

#[test]
fn an_unknown_journal_mode_changes_nothing_and_the_right_ones_are_named() {
    let folder = Folder::new();
    let db = folder.open("app.db");
    assert_eq!(text(&db, "PRAGMA journal_mode=shadwo"), "shadow");
    let said = last_error(&db);
    assert!(said.contains("shadwo") && said.contains("shadow, wal, statement, delete"), "{said}");
}

#[test]
fn counters_have_the_total_of_all_connections_beside_them() {
    for parameters in ["", "&journal_mode=wal"] {
        let folder = Folder::new();
        let open = || folder.try_open("app.db", parameters).expect("opens");
        let commits = |db: &Connection| {
            let told = "SELECT value || ' of ' || total FROM dash_stats WHERE name = 'commits'";
            text(db, told)
        };
        let (first, second) = (open(), open());
        first.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (1)").expect("commits");
        second.execute_batch("INSERT INTO t VALUES (2)").expect("commits");
        let own = number(&first, "SELECT value FROM dash_stats WHERE name = 'commits'");
        assert_eq!(commits(&first), format!("{own} of {}", own + 1), "{parameters}");
        assert_eq!(commits(&second), format!("1 of {}", own + 1), "{parameters}");
        // What somebody did who is gone counts as long as anybody stays.
        drop(first);
        assert_eq!(commits(&second), format!("1 of {}", own + 1), "{parameters}");
        assert_eq!(commits(&open()), format!("0 of {}", own + 1), "{parameters}");
        let gauges = "SELECT count(*) FROM dash_stats WHERE name IN
            ('sequence', 'kept_bytes', 'log_size', 'window', 'log', 'direct') AND total IS NOT NULL";
        assert_eq!(number(&second, gauges), 0, "{parameters}");
        drop(second);
        assert_eq!(commits(&open()), "0 of 0", "{parameters}");
    }
}

/// What is answered after a success would be taken for the reason of the next trouble.
#[test]
fn an_error_is_forgotten_where_the_thread_goes_on() {
    let folder = Folder::new();
    let shadow = folder.open("shadow.db");
    shadow.execute_batch("CREATE TABLE t(x)").expect("commits");
    let wal = folder.try_open("wal.db", "&journal_mode=wal").expect("opens");
    wal.execute_batch("CREATE TABLE t(x)").expect("commits");
    // Other tests of this process fail meanwhile, too.
    let is_known = |db: &Connection| last_error(db).contains("now_and_then");
    let fail = || {
        let failed = folder.try_open("other.db", "&dash_commit=now_and_then");
        assert_eq!(code(failed), ErrorCode::CannotOpen);
        assert!(is_known(&shadow));
    };
    for db in [&shadow, &wal] {
        fail();
        assert_eq!(number(db, "SELECT count(*) FROM t"), 0);
        assert!(is_known(db));
        // Another thread's successes are not this one's.
        std::thread::scope(|scope| {
            scope.spawn(|| drop(folder.open("other.db").execute_batch("CREATE TABLE t(x)")));
        });
        assert!(is_known(db));
        db.execute_batch("BEGIN IMMEDIATE; COMMIT").expect("begins to write");
        assert!(!is_known(db));
    }
    fail();
    assert!(!is_known(&folder.open("shadow.db")));
}

#[test]
fn journal_mode_delete_leaves_a_plain_file_and_the_connection_goes_on() {
    let folder = Folder::new();
    for mode in ["delete", "truncate", "persist", "memory", "off"] {
        let name = format!("{mode}.db");
        let db = folder.open(&name);
        db.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)")
            .expect("commits");
        assert_eq!(text(&db, &format!("PRAGMA journal_mode={mode}")), mode);
        assert_eq!(text(&db, "SELECT dash_engine()"), "plain");
        assert!(!folder.exists(&format!("{name}-shadow")));
        assert!(!folder.exists(&format!("{name}-dash")));
        db.execute_batch("INSERT INTO t VALUES (3)").expect("commits");
        assert_eq!(number(&db, "SELECT count(*) FROM t"), 3);
        // A stock writer is no longer kept out.
        let stock = folder.stock(&name);
        stock.execute_batch("INSERT INTO t VALUES (4)").expect("commits");
        assert_eq!(number(&db, "SELECT count(*) FROM t"), 4);
        drop(stock);
        // And back.
        assert_eq!(text(&db, "PRAGMA journal_mode=shadow"), "shadow");
        db.execute_batch("INSERT INTO t VALUES (5)").expect("commits");
        assert_eq!(text(&db, "SELECT dash_engine()"), "shadow");
        whole(&db);
        drop(db);
        let stock = folder.stock(&name);
        assert_eq!(number(&stock, "SELECT count(*) FROM t"), 5);
        whole(&stock);
    }
}

#[test]
fn the_mode_can_be_left_only_between_transactions_and_alone() {
    let folder = Folder::new();
    let db = folder.open("app.db");
    db.execute_batch("CREATE TABLE t(x)").expect("commits");
    db.execute_batch("BEGIN; INSERT INTO t VALUES (1)").expect("writes");
    let said = message(db.execute_batch("PRAGMA journal_mode=delete"));
    assert!(said.contains("within a transaction"), "{said}");
    db.execute_batch("COMMIT").expect("commits");
    let other = folder.open("app.db");
    let said = message(db.execute_batch("PRAGMA journal_mode=delete"));
    assert!(said.contains("another connection"), "{said}");
    db.execute_batch("INSERT INTO t VALUES (2)").expect("commits");
    assert_eq!(number(&other, "SELECT count(*) FROM t"), 2);
    drop(other);
    assert_eq!(text(&db, "PRAGMA journal_mode=delete"), "delete");
    // Others of this process join the mode that is there.
    let other = folder.open("app.db");
    assert_eq!(text(&other, "SELECT dash_engine()"), "plain");
    other.execute_batch("INSERT INTO t VALUES (3)").expect("commits");
    assert_eq!(number(&db, "SELECT count(*) FROM t"), 3);
    let said = message(folder.try_open("app.db", "&journal_mode=shadow"));
    assert!(said.contains("unable to open"), "{said}");
    assert!(last_error(&db).contains("as a plain file"), "{}", last_error(&db));
}

#[test]
fn dash_commit_is_asked_and_set_and_misspellings_are_errors() {
    let folder = Folder::new();
    let db = folder.try_open("app.db", "&dash_commit=exclusive").expect("opens");
    assert_eq!(text(&db, "PRAGMA dash_commit"), "exclusive");
    for mode in ["single", "paper", "exclusive"] {
        assert_eq!(text(&db, &format!("PRAGMA dash_commit={mode}")), mode);
        assert_eq!(text(&db, "PRAGMA dash_commit"), mode);
        db.execute_batch(&format!("CREATE TABLE {mode}(x)")).expect("commits");
    }
    let said = message(db.execute_batch("PRAGMA dash_commit=double"));
    assert!(said.contains("single, paper, exclusive"), "{said}");
    let said = message(db.execute_batch("PRAGMA dash_comit"));
    assert!(said.contains("dash_commit"), "{said}");
}

#[test]
fn an_exclusive_session_under_paper_is_exclusive() {
    let folder = Folder::new();
    let db = folder.try_open("app.db", "&dash_commit=paper").expect("opens");
    assert_eq!(text(&db, "PRAGMA locking_mode=exclusive"), "exclusive");
    assert_eq!(text(&db, "PRAGMA dash_commit"), "exclusive");
    assert_eq!(text(&db, "PRAGMA locking_mode=normal"), "normal");
    assert_eq!(text(&db, "PRAGMA dash_commit"), "paper");
}

#[test]
fn a_bad_parameter_fails_the_open_with_the_right_names() {
    let folder = Folder::new();
    let scratch = Connection::open_in_memory().expect("opens");
    for (parameters, hint) in [
        ("&journal_mode=inpage", "isn't available in dash yet"),
        ("&journal_mode=shadwo", "shadow, wal, statement, delete, truncate"),
        ("&journalmode=shadow", "did you mean journal_mode"),
        ("&dash_default=delete", "there is only shadow"),
        ("&dash_durability=most", "host, full, device, none"),
        ("&dash_commit=twice", "single, paper, exclusive"),
        ("&dash_engine=shadow", "dash_commit"),
        ("&dash_filesystem=nfs", "there is any"),
        ("&dash_filesytem=any", "did you mean dash_filesystem"),
        ("&nolock=1", "immutable=1"),
    ] {
        assert_eq!(code(folder.try_open("app.db", parameters)), ErrorCode::CannotOpen);
        let said = last_error(&scratch);
        assert!(said.contains(hint), "{parameters}: {said}");
        assert!(!folder.exists("app.db"), "{parameters}");
    }
    for parameters in ["&cache=private&mode=rwc&psow=0", "&their_own=1", "&journal_mode=shadow"] {
        let db = folder.try_open("app.db", parameters).expect(parameters);
        assert_eq!(text(&db, "SELECT dash_engine()"), "shadow");
        db.execute_batch("CREATE TABLE IF NOT EXISTS t(x); INSERT INTO t VALUES (1)")
            .expect("commits");
    }
}

#[test]
fn functions_tell_the_version_and_the_engine() {
    let folder = Folder::new();
    let memory = Connection::open_in_memory().expect("opens");
    assert_eq!(text(&memory, "SELECT dash_engine()"), "none");
    assert_eq!(text(&memory, "SELECT dash_version()"), env!("CARGO_PKG_VERSION"));
    let stock = folder.stock("stock.db");
    assert_eq!(text(&stock, "SELECT dash_engine()"), "none");
    stock
        .execute("ATTACH ? AS side", [uri(&folder.path("side.db"), "dash", "")])
        .expect("attaches");
    assert_eq!(text(&stock, "SELECT dash_engine('side')"), "shadow");
    assert_eq!(text(&stock, "SELECT dash_engine('nowhere')"), "none");
    assert_eq!(text(&stock, "PRAGMA side.journal_mode"), "shadow");
}

#[test]
fn tables_count_and_time_each_database() {
    let folder = Folder::new();
    let db = folder.open("app.db");
    db.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)")
        .expect("commits");
    let stat =
        |name: &str| number(&db, &format!("SELECT value FROM dash_stats WHERE name='{name}'"));
    assert_eq!((stat("commits"), stat("exchanges"), stat("unflushed_commits")), (3, 3, 0));
    db.execute_batch("PRAGMA synchronous=OFF; INSERT INTO t VALUES (3)").expect("commits");
    assert_eq!((stat("commits"), stat("unflushed_commits")), (4, 1));
    assert_eq!(number(&db, "SELECT count FROM dash_latency WHERE op='commit'"), 4);
    assert_eq!(
        number(
            &db,
            "SELECT p50 > 1 AND p50 <= p999 AND p999 <= max*1.02 FROM dash_latency WHERE op='flush'"
        ),
        1
    );
    assert_eq!(number(&db, "SELECT count(*) FROM dash_latency WHERE op='read'"), 0);
    assert_eq!(text(&db, "PRAGMA dash_time_reads=on"), "on");
    db.execute("ATTACH ? AS side", [uri(&folder.path("side.db"), "dash", "")]).expect("attaches");
    db.execute_batch("CREATE TABLE side.u(x)").expect("commits");
    assert_eq!(number(&db, "SELECT value FROM dash_stats('side') WHERE name='commits'"), 1);
    assert_eq!(
        number(&db, "SELECT value FROM dash_stats WHERE schema='side' AND name='commits'"),
        1
    );
    let memory = Connection::open_in_memory().expect("opens");
    let said = message(memory.query_row("SELECT * FROM dash_stats", [], |_| Ok(())));
    assert!(said.contains("?vfs=dash"), "{said}");
}

#[test]
fn a_parameter_of_the_uri_that_is_given_as_a_pragma_is_told_where_it_belongs() {
    let folder = Folder::new();
    let db = folder.open("app.db");
    let said = message(db.execute_batch("PRAGMA dash_rest=100"));
    assert!(said.contains("file:app.db?vfs=dash&dash_rest=100"), "{said}");
}

/// In mode shadow; mode wal has its own test.
#[test]
fn dash_stats_say_what_a_database_waits_for_that_is_to_come_to_rest() {
    let folder = Folder::new();
    folder.open("app.db").execute_batch("CREATE TABLE t(x)").expect("makes");
    let open = |rest| folder.try_open("app.db", &format!("&dash_rest={rest}")).expect("opens");
    let commit = |db: &Connection| db.execute_batch("INSERT INTO t VALUES (1)").expect("commits");
    let rest = |db: &Connection| text(db, "SELECT value FROM dash_stats WHERE name='rest'");
    let (late, soon) = (open("3600000"), open("10"));
    commit(&late);
    assert_eq!(rest(&late), "soon");
    soon.execute_batch("BEGIN; SELECT * FROM t").expect("reads");
    assert_eq!(rest(&late), "transaction");
    soon.execute_batch("COMMIT").expect("ends");
    assert_eq!(rest(&late), "soon");
    drop(late);
    dash_testing::names::wait_for_rest(&folder.path("app.db"));
    assert_eq!(rest(&soon), "at rest");
    let never = open("off");
    assert_eq!(rest(&never), "at rest");
    commit(&never);
    assert_eq!((rest(&never), rest(&soon)), ("off".to_owned(), "soon".to_owned()));
}
