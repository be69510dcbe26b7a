//! Processes that want to write at the same time all get to: who has waited longest is next, also
//! beside a process that commits without a pause. Where waiting is polling, that one has the lock
//! again before anybody looks.

mod suite;

use std::path::Path;
use std::time::{Duration, Instant};

use dash_testing::roles::{Role, role, say};
use nix::sys::signal::{Signal, kill};
use rusqlite::Connection;
use suite::sql::{run, stat};

/// Commits that a writer may have to let pass. Each holds the lock for [`HELD`], and who waits is
/// in line after three milliseconds, so it is a handful; the rest is for a machine with other
/// things to do. Who polls meets the lock free once in some thousand commits.
const MOST_BETWEEN: i64 = 400;
const HELD: Duration = Duration::from_millis(1);
const PATIENCE: Duration = Duration::from_secs(60);

fn made(path: &Path) -> Connection {
    let db = opened(path);
    run(&db, "CREATE TABLE log(id INTEGER PRIMARY KEY, who)");
    db
}

fn opened(path: &Path) -> Connection {
    let db = suite::open(path);
    db.busy_timeout(Duration::from_secs(20)).expect("sets");
    db
}

/// The longest row of commits by others before or between those of `who`.
fn longest_wait(db: &Connection, who: i64) -> i64 {
    let sql = "SELECT max(id - before) - 1 FROM
        (SELECT id, lag(id, 1, (SELECT min(id) - 1 FROM log)) OVER (ORDER BY id) AS before FROM log WHERE who = ?)";
    db.query_row(sql, [who], |row| row.get(0)).expect("it has committed")
}

#[test]
#[ignore = "a role of the tests below"]
fn a_process_that_commits_without_a_pause() {
    let Some(argument) = role("a_process_that_commits_without_a_pause") else { return };
    let (who, path) = argument.split_once(' ').expect("who and where");
    let who: i64 = who.parse().expect("a number");
    let db = opened(path.as_ref());
    for commits in 0.. {
        run(&db, &format!("BEGIN IMMEDIATE; INSERT INTO log(who) VALUES ({who})"));
        std::thread::sleep(HELD);
        run(&db, "COMMIT");
        if commits == 20 {
            say("busy", who);
        }
    }
}

fn greedy(who: i64, path: &Path) -> Role {
    let path = path.to_str().expect("text");
    Role::start("a_process_that_commits_without_a_pause", format!("{who} {path}"))
}

#[test]
fn beside_one_that_commits_without_a_pause() {
    const TIMES: i64 = 20;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let db = made(&path);
    let mut other = greedy(2, &path);
    other.hear("busy");
    for time in 1..=TIMES {
        // The other one has the lock again by then.
        std::thread::sleep(2 * HELD);
        run(&db, "INSERT INTO log(who) VALUES (1)");
        let most = longest_wait(&db, 1);
        assert!(most <= MOST_BETWEEN, "{most} commits before commit {time}");
    }
    other.kill();
    assert_eq!(suite::one::<i64>(&db, "SELECT count(*) FROM log WHERE who = 1"), TIMES);
    eprintln!("at most {} commits in between", longest_wait(&db, 1));
    suite::check(&db);
}

#[test]
fn and_so_do_four_that_all_do() {
    const WHO: [i64; 4] = [1, 2, 3, 4];
    const EACH: i64 = 60;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let db = made(&path);
    let processes = WHO.map(|who| greedy(who, &path));
    let begun = Instant::now();
    let enough = format!(
        "SELECT count(*) FROM (SELECT who FROM log GROUP BY who HAVING count(*) >= {EACH})"
    );
    while suite::one::<i64>(&db, &enough) < 4 {
        assert!(begun.elapsed() < PATIENCE, "somebody does not get the lock");
        std::thread::sleep(Duration::from_millis(10));
    }
    processes.into_iter().for_each(Role::kill);
    // From when all were there.
    run(
        &db,
        "DELETE FROM log WHERE id < (SELECT max(first) FROM (SELECT min(id) AS first FROM log GROUP BY who))",
    );
    let most = WHO.map(|who| longest_wait(&db, who));
    eprintln!("at most {most:?} commits in between");
    assert!(most.iter().all(|&most| most <= MOST_BETWEEN), "{most:?} commits between two");
    suite::check(&db);
}

#[test]
#[ignore = "a role of the test below"]
fn a_process_that_waits() {
    let Some(path) = role("a_process_that_waits") else { return };
    let db = opened(path.as_ref());
    run(&db, "SELECT count(*) FROM log");
    say("waiting", std::process::id());
    run(&db, "INSERT INTO log(who) VALUES (2)");
    say("done", "");
}

/// Commits while somebody waits who does not come when it is his turn: `signal` has just been sent
/// to him.
fn commits_beside(signal: Signal) -> (i64, i64) {
    const ROUNDS: i64 = 4;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("app.db");
    let db = made(&path);
    for _ in 0..ROUNDS {
        run(&db, "BEGIN IMMEDIATE; INSERT INTO log(who) VALUES (1)");
        let mut waiter = Role::start("a_process_that_waits", &path);
        let id = nix::unistd::Pid::from_raw(waiter.hear("waiting").parse().expect("a number"));
        // By then its busy handler sleeps for tens of milliseconds at a time.
        std::thread::sleep(Duration::from_millis(100));
        kill(id, signal).expect("it is ours");
        std::thread::sleep(Duration::from_millis(5));
        run(&db, "COMMIT");
        for _ in 0..100 {
            run(&db, "INSERT INTO log(who) VALUES (1)");
        }
        if signal == Signal::SIGSTOP {
            kill(id, Signal::SIGCONT).expect("it is ours");
            waiter.hear("done");
            waiter.finish();
        } else {
            waiter.kill();
        }
    }
    suite::check(&db);
    (stat(&db, "missed_handovers"), ROUNDS)
}

#[test]
fn who_is_stopped_while_it_waits_delays_one_commit_and_gets_its_turn_later() {
    let (missed, rounds) = commits_beside(Signal::SIGSTOP);
    assert!((1..=rounds).contains(&missed), "{missed} commits were delayed in {rounds} rounds");
}

#[test]
fn who_is_killed_while_it_waits_delays_nobody() {
    let (missed, rounds) = commits_beside(Signal::SIGKILL);
    assert_eq!(missed, 0, "commits were delayed in {rounds} rounds");
}

#[test]
fn and_who_is_alone_hands_nothing_over() {
    let folder = tempfile::tempdir().unwrap();
    let db = made(&folder.path().join("app.db"));
    for _ in 0..100 {
        run(&db, "INSERT INTO log(who) VALUES (1)");
    }
    assert_eq!((stat(&db, "handovers"), stat(&db, "missed_handovers")), (0, 0));
}
