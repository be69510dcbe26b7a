//! In mode shadow a stock reader that stays in a transaction keeps the commit after the next one
//! waiting (SHADOW-3, T12). Who it is, and since when the commit has waited, is said by
//! `dash_last_error()`, the log and `dash_readers`.

mod suite;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use dash_testing::machine::{has_sqlite3, runs};
use dash_testing::{Need, skip};
use rusqlite::Connection;
use suite::error_log::{listen, log};
use suite::parts::{self, Part, again};
use suite::peers::Session;
use suite::sql::run;

const BUSY: i32 = 5;
const ADD: &str = "INSERT INTO t VALUES (1)";

fn made(path: &Path) -> Connection {
    let db = suite::open(path);
    run(&db, "CREATE TABLE t(x)");
    run(&db, ADD);
    db.busy_timeout(Duration::ZERO).expect("sets");
    db
}

fn reads(path: &Path) -> Session {
    let mut stock = Session::stock(path);
    stock.must("BEGIN");
    stock.must("SELECT count(*) FROM t");
    stock
}

/// What is said of the commit that has to wait.
fn held(db: &Connection) -> String {
    run(db, ADD); // the next one passes
    let error = db.execute_batch(ADD).expect_err("somebody reads");
    assert_eq!(error.sqlite_error().map(|error| error.extended_code), Some(BUSY), "{error}");
    parts::last_error()
}

fn readers(db: &Connection, kind: &str) -> Vec<u32> {
    let sql = "SELECT pid FROM dash_readers WHERE kind=?1 AND (kind='dash' OR \
               since IS NULL AND frame IS NULL AND kept_bytes IS NULL) ORDER BY pid";
    let mut rows = db.prepare(sql).expect("prepares");
    let rows = rows.query_map([kind], |row| row.get(0)).expect("reads");
    rows.map(|pid| pid.expect("a number")).collect()
}

/// Debian's command-line program, in a read transaction.
struct Shell(Child);

impl Shell {
    fn reads(path: &Path) -> Self {
        let mut command = Command::new("sqlite3");
        command.arg(path).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut shell = command.spawn().expect("starts");
        let input = shell.stdin.as_mut().expect("piped");
        writeln!(input, "BEGIN; SELECT count(*) FROM t;").expect("listens");
        let mut said = String::new();
        let output = shell.stdout.as_mut().expect("piped");
        BufReader::new(output).read_line(&mut said).expect("answers");
        assert!(said.trim().parse::<u32>().is_ok(), "{said}");
        Self(shell)
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn by_its_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let db = made(&path);
    let mut stock = reads(&path);
    assert_eq!(readers(&db, "stock"), [stock.id()]);
    assert_eq!(readers(&db, "dash"), [std::process::id()]);
    let said = held(&db);
    let who = format!("(stock SQLite, process {})", stock.id());
    assert!(said.contains(&who) && said.contains("mode wal"), "{said}");
    // A reader of dash is in nobody's way, and is not named.
    assert!(!said.contains("dash on a connection"), "{said}");
    stock.must("COMMIT");
    assert_eq!(readers(&db, "stock"), []);
    run(&db, ADD);
    run(&db, ADD);
}

#[test]
fn and_so_are_several() {
    if !has_sqlite3() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let db = made(&path);
    let (stock, shell) = (reads(&path), Shell::reads(&path));
    let mut both = [stock.id(), shell.0.id()];
    both.sort_unstable();
    assert_eq!(readers(&db, "stock"), both);
    let said = held(&db);
    for id in both {
        assert!(said.contains(&format!("stock SQLite, process {id}")), "{said}");
    }
}

#[test]
fn with_how_long_the_commit_has_waited() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let db = made(&path);
    let _stock = reads(&path);
    db.busy_timeout(Duration::from_millis(2500)).expect("sets");
    let said = held(&db);
    assert!(said.contains("the commit has waited") && !said.contains("for 0 s"), "{said}");
}

#[test]
fn also_where_it_is_in_the_same_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let db = made(&path);
    let stock = Connection::open(&path).expect("opens");
    run(&stock, "BEGIN; SELECT count(*) FROM t");
    let said = held(&db);
    let own = std::process::id();
    assert!(said.contains(&format!("(stock SQLite, in this process, {own})")), "{said}");
    assert_eq!(readers(&db, "stock"), [own]);
}

/// The one that may only read locks as stock SQLite does, and no process is known by its locks.
#[test]
fn and_what_is_no_stock_reader_is_not_called_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let db = made(&path);
    let reader = Session::dash(&path, Part { parameters: "&mode=ro", ..Part::default() });
    let mut reader = reader.expect("opens");
    reader.must("BEGIN");
    reader.must("SELECT count(*) FROM t");
    let said = held(&db);
    assert!(said.contains("(dash on a connection that may only read)"), "{said}");
    assert_eq!(readers(&db, "stock"), []);
    reader.must("COMMIT");
    run(&db, ADD);
    run(&db, ADD);
    let mut mapped = Session::dash(&path, Part::default()).expect("opens");
    mapped.must("PRAGMA mmap_size=1000000");
    mapped.must("BEGIN");
    mapped.must("SELECT count(*) FROM t");
    let said = held(&db);
    let who = format!("(dash with mapped pages (mmap_size), process {})", mapped.id());
    assert!(said.contains(&who), "{said}");
}

/// In another container it has no number that means something here.
#[test]
fn or_as_of_another_pid_namespace() {
    let apart = ["--pid", "--fork", "--mount-proc"];
    if !runs("unshare", &[&apart[..], &["true"]].concat()) {
        skip(Need::Root, "no pid namespace can be made");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    made(&path).close().expect("closes");
    let inside = again("session", &path, Part::default());
    let mut command = Command::new("unshare");
    command.args(apart).arg(inside.get_program()).args(inside.get_args());
    command.envs(inside.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let mut dash = Session::begin(command).expect("opens");
    let _stock = reads(&path);
    assert_eq!(dash.must("SELECT pid, kind FROM dash_readers WHERE kind='stock'"), "0,stock");
    dash.must("PRAGMA busy_timeout=0");
    dash.must(ADD);
    dash.sql(ADD).expect_err("somebody reads");
    let said = dash.must("SELECT dash_last_error()");
    assert!(said.contains("(stock SQLite, process 0 (of another pid namespace))"), "{said}");
}

/// In mode wal it keeps nobody waiting; but `-wal` grows, and nobody knew.
#[test]
fn and_in_mode_wal_who_keeps_the_log_growing() {
    listen();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("app.db");
    let db = made(&path);
    run(&db, "PRAGMA journal_mode=wal");
    let stock = reads(&path);
    log();
    for _ in 0..20 {
        run(&db, "INSERT INTO t VALUES (zeroblob(4000000))");
    }
    let said: Vec<_> = log().into_iter().filter(|line| line.contains("app.db-wal has ")).collect();
    assert_eq!(said.len(), 1, "{said:?}");
    let who = format!("process {} (", stock.id());
    assert!(said[0].contains(&who) && said[0].contains("has been reading"), "{said:?}");
}
