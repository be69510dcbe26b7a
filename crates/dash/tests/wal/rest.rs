//! `dash_rest`: a database comes to rest while it is open, and whoever is killed then leaves what
//! stock SQLite reads and writes.

use std::path::Path;
use std::time::Duration;

use dash_testing::names::wait_until_gone;
use dash_testing::roles::{Role, role, say};

use crate::common::*;
use crate::create;

const ROLE: &str = "rest::a_process_that_commits";

#[test]
#[ignore = "a role of the tests below"]
fn a_process_that_commits() {
    let Some(argument) = role(ROLE) else { return };
    let (what, folder) = argument.split_once(' ').expect("two words");
    register();
    // Left by a return from `main`, it never comes to rest by itself.
    let rest = if what == "exits" { "&dash_rest=3600000" } else { "" };
    let db = Connection::open(uri(&Path::new(folder).join("app.db"), "dash", rest)).expect("opens");
    db.busy_timeout(Duration::from_secs(20)).expect("sets");
    if what == "idles" {
        whole(&db);
    } else {
        commit(&db, 12);
    }
    say("acknowledged", number(&db, "SELECT count(*) FROM t"));
    let _ = dash_testing::roles::told();
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

fn is_fenced(folder: &Folder) -> bool {
    folder.path("app.db-journal").is_dir()
}

fn wait_for_rest(folder: &Folder) {
    wait_until_gone(&folder.path("app.db-journal"), "it does not come to rest");
}

#[test]
fn dash_stats_say_what_it_waits_for() {
    let folder = Folder::new();
    create(&folder, "app.db").execute_batch("CREATE TABLE t(x)").expect("makes");
    let late = folder.try_open("app.db", "&dash_rest=3600000").expect("opens");
    let rest = |db: &Connection| text(db, "SELECT value FROM dash_stats WHERE name='rest'");
    assert_eq!(rest(&late), "at rest");
    commit(&late, 12);
    assert_eq!(rest(&late), "soon");
    let never = folder.try_open("app.db", "&dash_rest=off").expect("opens");
    never.execute_batch("BEGIN IMMEDIATE").expect("begins");
    assert_eq!((rest(&late), rest(&never)), ("writer".to_owned(), "off".to_owned()));
    never.execute_batch("COMMIT").expect("ends");
    assert_eq!(rest(&late), "soon");
}

/// Whoever has the most patience is not waited for once it is closed, and where others commit not
/// even before.
#[test]
fn the_shortest_time_that_is_chosen_counts() {
    let folder = Folder::new();
    create(&folder, "app.db").execute_batch("CREATE TABLE t(x)").expect("makes");
    let late = folder.try_open("app.db", "&dash_rest=3600000").expect("opens");
    let soon = folder.try_open("app.db", "&dash_rest=10").expect("opens");
    commit(&late, 12);
    assert!(is_fenced(&folder));
    drop(late);
    wait_for_rest(&folder);
    let late = folder.try_open("app.db", "&dash_rest=3600000").expect("opens");
    commit(&late, 12);
    assert!(is_fenced(&folder));
    commit(&soon, 1);
    wait_for_rest(&folder);
}

fn database() -> Folder {
    let folder = Folder::new();
    let db = create(&folder, "app.db");
    db.execute_batch("CREATE TABLE t(x)").expect("makes");
    db.close().expect("closes");
    folder
}

/// Stock SQLite finds all commits, and makes another one; then dash does.
fn is_plain(folder: &Folder, commits: i64) {
    assert!(!is_fenced(folder), "the name fence stands");
    let stock = folder.stock("app.db");
    assert_eq!(number(&stock, "SELECT count(*) FROM t"), commits);
    whole(&stock);
    commit(&stock, 1);
    stock.close().expect("closes");
    let db = folder.open("app.db");
    assert_eq!(number(&db, "SELECT count(*) FROM t"), commits + 1);
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
    assert!(is_fenced(&folder), "no session has begun");
    child.tell("exit");
    child.finish();
    is_plain(&folder, commits);
}

/// Not under way for good: it goes on, and comes to rest again.
#[test]
fn and_goes_on_whenever_somebody_commits() {
    let folder = database();
    let db = folder.open("app.db");
    for round in 1..=3 {
        commit(&db, 20);
        wait_for_rest(&folder);
        let stock = folder.stock("app.db");
        assert_eq!(number(&stock, "SELECT count(*) FROM t"), 20 * round);
        assert_eq!(code(stock.execute_batch("INSERT INTO t VALUES (1)")), ErrorCode::DatabaseBusy);
    }
    assert!(number(&db, "SELECT value FROM dash_stats WHERE name='rests'") > 0);
}

#[test]
fn unless_that_is_off() {
    let folder = database();
    let db = folder.try_open("app.db", "&dash_rest=off").expect("opens");
    commit(&db, 3);
    assert!(is_fenced(&folder));
    std::thread::sleep(Duration::from_millis(1500));
    assert!(is_fenced(&folder), "it has come to rest");
    for (rest, why) in [("9", "from 10 to 3600000, or off"), ("soon", "or off")] {
        let refused = folder.try_open("app.db", &format!("&dash_rest={rest}"));
        assert!(refused.is_err(), "{rest}");
        assert!(last_error(&db).contains(why), "{}", last_error(&db));
    }
}

/// Whoever has only read tidies up, too.
#[test]
fn by_whoever_has_read_since() {
    let folder = database();
    let db = folder.open("app.db");
    let mut child = start(&folder, "exits");
    let commits: i64 = child.hear("acknowledged").parse().expect("a number");
    assert_eq!(number(&db, "SELECT count(*) FROM t"), commits);
    child.kill();
    wait_for_rest(&folder);
    assert_eq!(number(&db, "SELECT value FROM dash_stats WHERE name='rests'"), 1);
    db.close().expect("closes");
    is_plain(&folder, commits);
}

/// Whoever is killed beside a process that has committed, too, is tidied up after by that one.
#[test]
fn also_after_another_process_was_killed() {
    let folder = database();
    let db = folder.open("app.db");
    commit(&db, 12);
    let mut child = start(&folder, "commits");
    let commits: i64 = child.hear("acknowledged").parse().expect("a number");
    child.kill();
    wait_for_rest(&folder);
    assert_eq!(number(&db, "SELECT count(*) FROM t"), commits);
    db.close().expect("closes");
    is_plain(&folder, commits);
}
