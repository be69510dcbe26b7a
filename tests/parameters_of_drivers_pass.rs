//! FT16: a driver leaves parameters of its own in the URI that it hands to SQLite, above all Go's
//! `_journal_mode=WAL`. They are none of dash's business; what is, or nearly is, must be spelt
//! right.

mod suite;

use rusqlite::Connection;
use suite::peers::last_error;
use suite::sql::run;

#[test]
fn whatever_go_python_or_sqlite_itself_write_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    suite::load();
    for more in [
        "&_journal_mode=WAL",
        "&_journal=WAL&_timeout=5000&_fk=true",
        "&_busy_timeout=5000&_txlock=immediate&_synchronous=NORMAL&_foreign_keys=on",
        "&_pragma=journal_mode(WAL)&_pragma=busy_timeout(5000)&_time_format=sqlite",
        "&cache=private&mode=rwc&psow=1&modeof=%2Fetc%2Fhosts",
        "&journal=wal&dashboard=1&synchronous=normal",
    ] {
        let db = Connection::open(suite::uri(&path, more))
            .unwrap_or_else(|error| panic!("{more}: {error}; {}", last_error()));
        assert_eq!(suite::one::<String>(&db, "PRAGMA journal_mode"), "shadow", "{more}");
        run(&db, "CREATE TABLE IF NOT EXISTS t(x); INSERT INTO t VALUES (1)");
    }
}

#[test]
fn what_looks_like_one_of_dash_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    suite::load();
    for (more, meant) in [
        ("&jornal_mode=shadow", "journal_mode"),
        ("&journalmode=shadow", "journal_mode"),
        ("&Journal_Mode=shadow", "journal_mode"),
        ("&dash_comit=paper", "dash_commit"),
        ("&dahs_commit=paper", "dash_commit"),
        ("&_dash_commit=paper", "dash_commit"),
        (
            "&dash_engine=shadow",
            "journal_mode, dash_backup, dash_filesystem, dash_commit, dash_default, dash_kept_limit",
        ),
    ] {
        let refused = Connection::open(suite::uri(&path, more));
        assert!(refused.is_err(), "{more}");
        let said = last_error();
        assert!(said.contains("no such parameter") && said.contains(meant), "{more}: {said}");
        assert!(!path.exists(), "{more}");
    }
}
