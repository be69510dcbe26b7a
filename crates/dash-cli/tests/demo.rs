//! `sqlite-dash demo` on data of its own, on a copy of a user's file and on recorded SQL. What is
//! checked are counts and that everything is shown, never times.
#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::common::{Home, Run};
use dash_testing::mounts::has_loop_devices;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const MODES: [&str; 4] = ["stock DELETE", "stock WAL", "dash shadow", "dash wal"];

/// The part of the output from the line that begins with `title` to the next empty line.
fn part(run: &Run, title: &str) -> String {
    let out = run.out();
    let lines = out.lines().skip_while(|line| !line.starts_with(title));
    let part: Vec<_> = lines.take_while(|line| !line.is_empty()).collect();
    assert!(!part.is_empty(), "{title}: {out}");
    part.join("\n")
}

/// What a part says of a mode: the words after its name.
fn row(part: &str, mode: &str) -> Vec<String> {
    let of_mode = |line: &str| line.trim_start().strip_prefix(mode).map(str::to_owned);
    let rest = part.lines().find_map(of_mode).unwrap_or_else(|| panic!("{mode}: {part}"));
    rest.split_whitespace().map(str::to_owned).collect()
}

fn finds_what_was_acknowledged(run: &Run) {
    let kills = part(run, "Writers killed");
    for mode in MODES {
        let row = row(&kills, mode);
        let [_, acknowledged, found, check] = &row[..] else { panic!("{row:?}") };
        assert_eq!(acknowledged, found, "{mode}");
        assert_ne!(acknowledged, "0", "{mode}");
        assert_eq!(check, "ok", "{mode}");
    }
}

#[test]
fn every_mode_is_shown_at_what_each_is_best_at_and_nothing_is_left_behind() {
    let home = Home::new();
    let run = home.dash(&["demo", "--seconds", "1", "--svg", "chart.svg"]).is(0);
    for title in ["One writer", "8 processes at once", "Sessions"] {
        let part = part(&run, title);
        for mode in MODES {
            let row = row(&part, mode);
            let rate: u64 = row[0].replace(',', "").parse().unwrap();
            assert!(rate > 0 && row[1].starts_with('='), "{part}");
        }
        assert!(part.contains("most commits: "), "{part}");
    }
    finds_what_was_acknowledged(&run);
    for mode in MODES {
        assert!(run.out().lines().any(|line| line.starts_with(mode) && line.contains("Take it ")));
    }
    let coloured = |c: char| c == '\x1b' || c == '\u{2588}';
    assert!(!run.out().contains(coloured), "colours and blocks are for terminals");
    let left = home.contents();
    assert_eq!(left.keys().collect::<Vec<_>>(), ["chart.svg"]);
    let chart = String::from_utf8_lossy(&left["chart.svg"]).into_owned();
    assert!(chart.starts_with("<svg ") && chart.ends_with("</svg>\n"), "{chart}");
    let bars = |class: &str| {
        chart.lines().filter(|line| line.starts_with("<rect x=") && line.contains(class)).count()
    };
    assert_eq!((bars("\"stock\""), bars("\"dash\"")), (6, 6), "{chart}");
}

/// On a device of the demo's own the counts are what README says they are.
#[test]
fn flushes_are_counted_exactly_where_nobody_else_writes() {
    if !has_loop_devices() {
        return;
    }
    let home = Home::new();
    let run = home.dash(&["demo", "--seconds", "1", "--on", "memory"]).is(0).says("exact");
    let flushes = |title: &str, mode: &str| -> f64 {
        let row = row(&part(&run, title), mode);
        // The last two columns of these parts are flushes and KiB.
        row[row.len() - 2].parse().unwrap()
    };
    let is_about = |flushes: f64, wanted: f64| (flushes - wanted).abs() < 0.25;
    assert!(is_about(flushes("One writer", "stock DELETE"), 4.0), "{}", run.out());
    assert!(is_about(flushes("One writer", "dash shadow"), 1.0), "{}", run.out());
    assert!(is_about(flushes("One writer", "dash wal"), 1.0), "{}", run.out());
    for mode in ["stock DELETE", "stock WAL"] {
        let more = flushes("Sessions", mode) - flushes("Sessions", "dash shadow");
        assert!(more > 0.5, "{mode}: {}", run.out());
    }
}

#[test]
fn a_copy_of_the_users_file_is_used_and_the_file_is_not_touched() {
    let home = Home::new();
    home.shadowed();
    let before = home.contents();
    let run = home.dash(&["demo", "app.db", "--seconds", "1"]).is(0).says("on copies of app.db");
    finds_what_was_acknowledged(&run);
    assert_eq!(before, home.contents());
}

#[test]
fn a_log_that_belongs_to_the_users_file_is_read_and_not_touched() {
    let home = Home::new();
    let db = home.plain();
    db.query_row("PRAGMA journal_mode=WAL", [], |_| Ok(())).unwrap();
    db.execute_batch("INSERT INTO t (body) VALUES ('in the log')").unwrap();
    let before = home.contents();
    home.dash(&["demo", "app.db", "--seconds", "1"]).is(0);
    assert_eq!(before, home.contents());
}

#[test]
fn a_folder_with_a_benchset_is_replayed_with_its_failures_counted() {
    let home = Home::new();
    fs::create_dir_all(home.file("trace/benchset")).unwrap();
    fs::write(
        home.file("trace/loading.sql"),
        "CREATE TABLE a (x UNIQUE);\nCREATE TABLE b (x);\nNONSENSE;",
    )
    .unwrap();
    fs::write(home.file("trace/benchset/0.sql"), "BEGIN EXCLUSIVE;\nINSERT INTO a VALUES (1)\nCOMMIT;\nINSERT INTO a VALUES (1);\nSELECT * FROM a").unwrap();
    fs::write(
        home.file("trace/benchset/1.sql"),
        "PRAGMA synchronous=OFF;\nINSERT INTO b VALUES (';');\nSELECT nonsense\n",
    )
    .unwrap();
    let run = home
        .dash(&["demo", "--replay", "trace"])
        .is(0)
        .says("2 connections at the same time")
        .says("1 statements of the loading files fail")
        .says("1 statements are left out");
    let part = part(&run, "Recorded SQL of trace");
    for mode in MODES {
        assert_eq!(row(&part, mode).last().map(String::as_str), Some("2"), "{part}");
    }
    finds_what_was_acknowledged(&run);
}

#[test]
fn a_folder_of_plain_files_is_replayed() {
    let home = Home::new();
    fs::create_dir(home.file("trace")).unwrap();
    fs::write(
        home.file("trace/x_load.sql"),
        "CREATE TABLE a (x);\n/* ; */\nINSERT INTO a\nVALUES (0);",
    )
    .unwrap();
    fs::write(
        home.file("trace/x.sql"),
        "UPDATE a\nSET x = x + 1;\nPRAGMA user_version;;\nUPDATE a SET x = x + 1",
    )
    .unwrap();
    let run = home.dash(&["demo", "--replay", "trace"]).is(0);
    let part = part(&run, "Recorded SQL of trace: 3 transactions on 1 connection");
    assert!(MODES.iter().all(|mode| row(&part, mode)[0] != "0"), "{part}");
}

#[test]
fn wrong_arguments_say_what_is_wrong() {
    let home = Home::new();
    home.dash(&["demo", "nothing.db"]).is(2).says("nothing.db is not a file");
    home.dash(&["demo", "--replay", "."]).is(2).says("has nothing to replay");
    home.dash(&["demo", "--dir", "nowhere"]).is(2).says("--dir");
    home.dash(&["demo", "--svg", "nowhere/chart.svg"]).is(2).says("--svg");
    home.dash(&["demo", "--seconds", "0"]).is(2);
}

/// Whether there is something in the demo's folder.
fn has_begun(home: &Home) -> bool {
    let in_it = |entry: fs::DirEntry| fs::read_dir(entry.path()).ok()?.flatten().next();
    fs::read_dir(home.path()).unwrap().flatten().find_map(in_it).is_some()
}

#[test]
fn ctrl_c_stops_a_demo_and_removes_its_folder() {
    let home = Home::new();
    let mut demo = home
        .command(&["demo", "--seconds", "1000"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while !has_begun(&home) {
        assert!(begun.elapsed() < Duration::from_secs(60), "it makes nothing");
        std::thread::sleep(Duration::from_millis(5));
    }
    let process = Pid::from_raw(i32::try_from(demo.id()).unwrap());
    kill(process, Signal::SIGINT).unwrap();
    assert_eq!(demo.wait().unwrap().code(), Some(2));
    assert!(home.contents().is_empty(), "{:?}", home.contents().keys());
}
