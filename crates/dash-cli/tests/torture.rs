//! `sqlite-dash torture` ends with a verdict, and refuses a run that would try nothing.
#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

use dash_testing::long::moment;

use super::common::Home;

#[test]
fn a_name_of_nothing_stops_before_anything_runs() {
    let home = Home::new();
    for engine in ["bogus", "shadow/singel", "shadow/single/513"] {
        for ring in ["sim", "fs", "faults", "kill"] {
            let run = home.dash(&["torture", "--ring", ring, "--engine", engine, "--seconds", "1"]);
            assert_eq!(run.is(2).says("there are").says("shadow/").out(), "");
        }
        home.dash(&["torture", "--engine", engine]).is(2).says("shadow/single");
    }
}

#[test]
fn a_folder_that_is_not_there_is_one_error() {
    let home = Home::new();
    let run = home.dash(&["torture", "--ring", "kill", "--dir", "missing", "--seconds", "1"]);
    let run = run.is(2).says("missing");
    assert_eq!(run.errors().lines().count(), 1, "{}", run.errors());
    assert_eq!(run.out(), "");
}

#[test]
fn a_run_that_tried_nothing_is_no_good_news() {
    let home = Home::new();
    home.dash(&["torture", "--seconds", "0"]).is(2);
    // The page size of the case is not that of the engine.
    let case = ["--engine", "shadow/single/4096", "--case", "pair/page=512"];
    let run = home.dash(&[&["torture", "--ring", "sim"], &case[..]].concat());
    let run = run.is(2).says("nothing was tried");
    assert!(!run.out().contains("no failure"), "{}", run.out());
}

#[test]
fn a_run_ends_with_a_verdict() {
    let home = Home::new();
    let case = ["--engine", "shadow/single/512", "--case", "attached/page=512"];
    let run = home.dash(&[&["torture", "--ring", "sim"], &case[..]].concat()).is(0);
    assert_eq!(run.out().lines().last(), Some("no failure in 1 case"), "{}", run.out());
}

/// On files that somebody has forged no tool crashes, touches what is others', or prints commands
/// to a terminal or a shell. SEC S2-2, S2-3, S2-7, S2-10
#[test]
fn tools_do_no_harm_with_forged_files() {
    let home = Home::new();
    let seconds = moment("4", "20");
    let part = ["--ring", "faults", "--engine", "wal/tools", "--seconds", seconds];
    home.dash(&[&["torture"], &part[..]].concat()).is(0);
}
