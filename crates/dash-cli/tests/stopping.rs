//! A conversion that is stopped at any moment, politely or not, leaves a whole database.
#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

use std::process::Stdio;
use std::time::Duration;

use super::common::Home;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// When the signal comes, in milliseconds.
const MOMENTS: [u64; 8] = [0, 5, 15, 30, 60, 100, 200, 400];

fn large() -> Home {
    let home = Home::new();
    let db = home.plain();
    db.execute_batch(
        "PRAGMA synchronous=OFF;
         WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
         INSERT INTO t (body) SELECT hex(zeroblob(500)) FROM n",
    )
    .unwrap();
    home
}

fn stop(home: &Home, to: &str, signal: Signal, after: Duration) {
    let mut child = home
        .command(&["convert", "app.db", "--to", to])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(after);
    let process = Pid::from_raw(i32::try_from(child.id()).unwrap());
    kill(process, signal).unwrap();
    child.wait().unwrap();
}

fn every_moment(signal: Signal) {
    let home = large();
    for (round, moment) in MOMENTS.iter().enumerate() {
        let to = if round % 2 == 0 { "shadow" } else { "plain" };
        stop(&home, to, signal, Duration::from_millis(*moment));
        let found = home.sql("PRAGMA integrity_check; SELECT count(*) FROM t");
        assert_eq!(found, "ok\n20200\n", "{signal} after {moment} ms of converting to {to}");
    }
    home.dash(&["convert", "app.db", "--to", "plain"]).is(0);
    assert_eq!(home.stock_rows(), 20_200);
    assert_eq!(home.contents().keys().collect::<Vec<_>>(), ["app.db"]);
}

#[test]
fn ctrl_c_leaves_a_whole_database() {
    every_moment(Signal::SIGINT);
}

#[test]
fn kill_9_leaves_a_whole_database() {
    every_moment(Signal::SIGKILL);
}
