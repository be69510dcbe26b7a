//! `dash_rest` in mode shadow: a database comes to rest while programs have it open, and whoever is
//! killed then leaves what stock SQLite reads and writes.

mod common;
use common::*;

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use dash_testing::names;
use dash_testing::roles::{Role, role, say, told};

const ROLE: &str = "a_process_that_commits";
/// As soon as may be.
const SOON: &str = "&dash_rest=10";
/// Never in a test.
const LATE: &str = "&dash_rest=3600000";
/// Beside a database that somebody has open.
const OPEN: &str = "app.db-dash";
const FENCE: &str = "app.db-journal";

#[test]
#[ignore = "a role of the tests below"]
fn a_process_that_commits() {
    let Some(argument) = role(ROLE) else { return };
    let (what, folder) = argument.split_once(' ').expect("two words");
    register();
    let rest = if what == "exits" { LATE } else { SOON };
    let db = Connection::open(uri(&Path::new(folder).join("app.db"), "dash", rest)).expect("opens");
    db.busy_timeout(Duration::from_secs(20)).expect("sets");
    if what == "idles" {
        say("acknowledged", 0);
        let _ = told();
        return;
    }
    if what == "dies" {
        db.execute_batch("PRAGMA cache_spill=1; PRAGMA cache_size=1").expect("sets");
        commit(&db, 3);
        let many = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM n WHERE x < 20000) \
                    INSERT INTO t SELECT randomblob(900) FROM n";
        db.execute_batch("BEGIN").expect("begins");
        db.execute_batch(many).expect("spills");
    } else {
        commit(&db, 3);
    }
    let count = "SELECT count(*) FROM t WHERE typeof(x)='integer'";
    say("acknowledged", number(&db, count));
    let _ = told();
    if what == "exits" {
        // Nothing is closed.
        std::process::exit(0);
    }
}

fn start(folder: &Folder, what: &str) -> Role {
    Role::start(ROLE, format!("{what} {}", folder.path(".").display()))
}

fn commit(db: &Connection, times: usize) {
    for _ in 0..times {
        db.execute_batch("INSERT INTO t VALUES (1)").expect("commits");
    }
}

fn count(db: &Connection) -> i64 {
    number(db, "SELECT count(*) FROM t")
}

fn wait_for_rest(folder: &Folder) {
    names::wait_for_rest(&folder.path("app.db"));
    assert!(!folder.exists(FENCE), "the name fence stands");
}

fn database() -> Folder {
    let folder = Folder::new();
    let db = folder.open("app.db");
    db.execute_batch("CREATE TABLE t(x)").expect("makes");
    db.close().expect("closes");
    folder
}

/// Stock SQLite finds all commits, and makes another one; then dash does.
fn is_plain(folder: &Folder, commits: i64) {
    assert!(!folder.exists(FENCE), "the name fence stands");
    let stock = folder.stock("app.db");
    assert_eq!(count(&stock), commits);
    whole(&stock);
    commit(&stock, 1);
    stock.close().expect("closes");
    let db = folder.open("app.db");
    assert_eq!(count(&db), commits + 1);
    commit(&db, 1);
    whole(&db);
}

#[test]
fn then_a_kill_leaves_a_plain_database() {
    let folder = database();
    let mut child = start(&folder, "commits");
    let commits = child.hear("acknowledged").parse().expect("a number");
    wait_for_rest(&folder);
    child.kill();
    is_plain(&folder, commits);
}

#[test]
fn and_at_the_end_of_a_process_that_closes_nothing() {
    let folder = database();
    let mut child = start(&folder, "exits");
    let commits = child.hear("acknowledged").parse().expect("a number");
    assert!(folder.exists(OPEN) && folder.exists(FENCE), "it is at rest");
    child.tell("exit");
    child.finish();
    assert!(!folder.exists(OPEN));
    is_plain(&folder, commits);
}

/// Not under way for good: stock SQLite may write then, and dash sees it, and goes on.
#[test]
fn stock_sqlite_writes_meanwhile_and_dash_goes_on() {
    for journal in ["delete", "memory", "truncate", "off"] {
        let folder = database();
        let db = folder.try_open("app.db", SOON).expect("opens");
        let stock = folder.stock("app.db");
        assert_eq!(text(&stock, &format!("PRAGMA journal_mode={journal}")), journal);
        let mut prepared = db.prepare("SELECT count(*) FROM t").expect("prepares");
        for round in 1..=3 {
            commit(&db, 4);
            wait_for_rest(&folder);
            stock.busy_timeout(Duration::from_secs(5)).expect("sets");
            commit(&stock, 1);
            let seen: i64 = prepared.query_row([], |row| row.get(0)).expect("reads");
            assert_eq!(seen, 5 * round, "{journal}");
            assert_eq!(count(&stock), 5 * round, "{journal}");
        }
        whole(&db);
        assert!(number(&db, "SELECT value FROM dash_stats WHERE name='rests'") >= 3);
        assert!(number(&db, "SELECT value FROM dash_stats WHERE name='commits'") >= 12);
    }
}

/// The header's version bytes alone don't tell: they are what they were in SQLite's cache.
#[test]
fn what_was_written_meanwhile_is_seen_whatever_the_header_counts() {
    use std::os::unix::fs::FileExt;
    let folder = database();
    let db = folder.try_open("app.db", SOON).expect("opens");
    commit(&db, 3);
    assert_eq!(number(&db, "SELECT sum(x) FROM t"), 3);
    wait_for_rest(&folder);
    let file = || std::fs::File::options().read(true).write(true).open(folder.path("app.db"));
    let mut version = [0; 16];
    file().expect("opens").read_exact_at(&mut version, 24).expect("reads");
    folder.stock("app.db").execute_batch("UPDATE t SET x = 2").expect("commits");
    let file = file().expect("opens");
    file.write_all_at(&version, 24).expect("writes");
    file.write_all_at(&version[..4], 92).expect("writes");
    drop(file);
    assert_eq!(number(&db, "SELECT sum(x) FROM t"), 6);
    commit(&db, 1);
    assert_eq!(number(&db, "SELECT sum(x) FROM t"), 7);
    whole(&db);
}

#[test]
fn unless_that_is_off() {
    let folder = database();
    let db = folder.try_open("app.db", "&dash_rest=off").expect("opens");
    commit(&db, 3);
    // Nor by another one that is not to be kept open.
    let other = folder.try_open("app.db", SOON).expect("opens");
    commit(&other, 1);
    std::thread::sleep(Duration::from_millis(1500));
    assert!(folder.exists(OPEN) && folder.exists(FENCE), "it has come to rest");
    assert_eq!(number(&db, "SELECT value FROM dash_stats WHERE name='rests'"), 0);
    for (rest, why) in [("9", "from 10 to 3600000, or off"), ("soon", "or off")] {
        let refused = folder.try_open("app.db", &format!("&dash_rest={rest}"));
        assert!(refused.is_err(), "{rest}");
        assert!(last_error(&db).contains(why), "{}", last_error(&db));
    }
}

/// Nothing has to be brought to rest where nothing was written. But who has only read does not keep
/// the database from it when others write.
#[test]
fn who_reads_no_more_keeps_nobody_from_it() {
    let folder = database();
    let db = folder.try_open("app.db", SOON).expect("opens");
    assert_eq!(count(&db), 0);
    wait_for_rest(&folder);
    let mut child = start(&folder, "commits");
    let commits = child.hear("acknowledged").parse().expect("a number");
    wait_for_rest(&folder);
    child.kill();
    is_plain(&folder, commits);
    assert_eq!(count(&db), commits + 2);
    db.close().expect("closes");
    // Who goes on reading is left alone.
    let late = folder.try_open("app.db", "&dash_rest=2000").expect("opens");
    let rests = "SELECT value FROM dash_stats WHERE name='rests'";
    for _ in 0..60 {
        assert_eq!(count(&late), commits + 2);
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(number(&late, rests), 0);
    wait_for_rest(&folder);
    assert_eq!(number(&late, rests), 1);
}

/// Whoever has only read tidies up after a writer that was killed.
#[test]
fn an_idle_sibling_cleans_up_after_a_killed_worker() {
    for (what, late) in [("exits", 0), ("dies", 0), ("exits", 500), ("dies", 500)] {
        let folder = database();
        let db = folder.try_open("app.db", SOON).expect("opens");
        let mut child = start(&folder, what);
        let commits: i64 = child.hear("acknowledged").parse().expect("a number");
        assert_eq!(count(&db), commits);
        // Also if it has been at rest itself for long.
        std::thread::sleep(Duration::from_millis(late));
        child.kill();
        wait_for_rest(&folder);
        is_plain(&folder, commits);
        assert_eq!(count(&db), commits + 2);
    }
}

/// Nor does who has it open and never uses it.
#[test]
fn who_has_never_used_it_keeps_nobody_from_it() {
    let folder = database();
    let mut idle = start(&folder, "idles");
    idle.hear("acknowledged");
    let db = folder.try_open("app.db", SOON).expect("opens");
    commit(&db, 2);
    wait_for_rest(&folder);
    idle.kill();
    is_plain(&folder, 2);
}

/// A transaction keeps it from resting; its end does not have to be a commit.
#[test]
fn not_while_somebody_is_in_a_transaction() {
    let folder = database();
    let db = folder.try_open("app.db", SOON).expect("opens");
    let other = folder.try_open("app.db", SOON).expect("opens");
    for begin in ["BEGIN; SELECT * FROM t", "BEGIN IMMEDIATE"] {
        commit(&other, 2);
        db.execute_batch(begin).expect("begins");
        std::thread::sleep(Duration::from_millis(1300));
        assert!(folder.exists(OPEN), "{begin}");
        db.execute_batch("ROLLBACK").expect("ends");
        wait_for_rest(&folder);
    }
    let exclusive = folder.try_open("app.db", SOON).expect("opens");
    exclusive.execute_batch("PRAGMA locking_mode=exclusive").expect("sets");
    commit(&exclusive, 2);
    std::thread::sleep(Duration::from_millis(1300));
    assert!(folder.exists(OPEN), "exclusive");
    commit(&exclusive, 1);
    exclusive.close().expect("closes");
    assert_eq!(count(&db), 7);
    whole(&db);
}

/// SHADOW-16, SHADOW-25: a stock program that has had it open for an odd number of commits gets its
/// file back, and no journal of another one is taken for a hot one.
#[test]
fn a_stock_program_that_stays_gets_its_name_back() {
    let folder = database();
    let db = folder.try_open("app.db", SOON).expect("opens");
    commit(&db, 1);
    for commits in [1, 2, 3] {
        wait_for_rest(&folder);
        let stock = folder.stock("app.db");
        let before = count(&stock);
        let inode = || folder.path("app.db").metadata().expect("exists").ino();
        let its = inode();
        commit(&db, commits);
        wait_for_rest(&folder);
        assert_eq!(inode(), its, "{commits} commits");
        let other = folder.stock("app.db");
        other.execute_batch("BEGIN; INSERT INTO t VALUES (1)").expect("writes");
        assert_eq!(count(&stock), before + i64::try_from(commits).expect("small"));
        other.execute_batch("COMMIT").expect("commits");
        commit(&stock, 1);
        assert_eq!(count(&db), count(&stock));
        whole(&db);
        commit(&db, 1);
    }
}

/// Mapped pages keep nobody from resting, and are mapped anew after it.
#[test]
fn mapped_reads_see_what_stock_sqlite_wrote() {
    let folder = database();
    let db = folder.try_open("app.db", SOON).expect("opens");
    db.execute_batch("PRAGMA mmap_size=10000000").expect("sets");
    let stock = folder.stock("app.db");
    for round in 1..=3 {
        commit(&db, 3);
        assert_eq!(count(&db), 4 * round - 1);
        wait_for_rest(&folder);
        commit(&stock, 1);
        assert_eq!(count(&db), 4 * round);
    }
    assert_eq!(number(&db, "PRAGMA mmap_size"), 10_000_000);
}

/// SQLite's cache, and the schema that it knows, are of the file that was there before.
#[test]
fn a_file_that_was_replaced_meanwhile_is_taken_as_it_is() {
    let folder = database();
    let db = folder.try_open("app.db", SOON).expect("opens");
    commit(&db, 3);
    let version = number(&db, "PRAGMA schema_version");
    wait_for_rest(&folder);
    for name in ["app.db", "app.db-shadow"] {
        std::fs::remove_file(folder.path(name)).expect("removes");
    }
    let refused = message(db.execute_batch("INSERT INTO t VALUES (1)"));
    assert!(refused.contains("unable to open"), "{refused}");
    let stock = folder.stock("app.db");
    stock.execute_batch("CREATE TABLE u(a, b)").expect("makes");
    assert_eq!(number(&stock, "PRAGMA schema_version"), version, "it would be noticed anyway");
    commit_to_u(&stock);
    stock.close().expect("closes");
    assert_eq!(message(db.execute_batch("INSERT INTO t VALUES (1)")), "no such table: t");
    commit_to_u(&db);
    assert_eq!(number(&db, "SELECT sum(b) FROM u"), 4);
    whole(&db);
    db.close().expect("closes");
    assert_eq!(number(&folder.stock("app.db"), "SELECT sum(b) FROM u"), 4);
}

fn commit_to_u(db: &Connection) {
    db.execute_batch("INSERT INTO u VALUES (1, 2)").expect("commits");
}

/// Whoever comes back after others have chosen mode wal follows.
#[test]
fn a_change_of_the_mode_at_rest_is_followed() {
    let folder = database();
    let db = folder.try_open("app.db", SOON).expect("opens");
    commit(&db, 3);
    wait_for_rest(&folder);
    let stock = folder.stock("app.db");
    assert_eq!(text(&stock, "PRAGMA journal_mode=wal"), "wal");
    commit(&stock, 1);
    stock.close().expect("closes");
    assert_eq!(count(&db), 4);
    assert_eq!(text(&db, "SELECT dash_engine()"), "wal");
    commit(&db, 1);
    whole(&db);
}

/// Two connections that come and go, and stock SQLite that writes in between.
#[test]
fn nothing_is_lost_where_it_rests_between_any_two_commits() {
    let folder = database();
    let dbs = [SOON, SOON, "&dash_rest=20"].map(|rest| {
        let db = folder.try_open("app.db", rest).expect("opens");
        db.busy_timeout(Duration::from_secs(20)).expect("sets");
        db
    });
    let stock = folder.stock("app.db");
    stock.busy_timeout(Duration::from_secs(20)).expect("sets");
    for round in 0..24_i64 {
        if round % 8 == 7 {
            wait_for_rest(&folder);
            commit(&stock, 1);
        } else {
            let db = &dbs[usize::try_from(round % 3).expect("small")];
            commit(db, 1);
            std::thread::sleep(Duration::from_millis(
                u64::try_from(round * 7 % 40).expect("small"),
            ));
        }
        assert_eq!(count(&dbs[0]), round + 1);
    }
    dbs.iter().for_each(whole);
}
