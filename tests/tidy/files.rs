//! What every file begins with, how long it may be, and words that have no place in it.

use std::path::PathBuf;

use crate::tree::{none, others, shown, sources, text};

/// Lines a file may have.
const LONGEST: usize = 400;
/// Columns of a comment; a table's row may be wider.
const WIDEST: usize = 100;
/// Words that mean "not finished"; in two halves, so that this file passes its own test.
const UNFINISHED: [(&str, &str); 4] =
    [("TO", "DO"), ("FIX", "ME"), ("unimpl", "emented!"), ("to", "do!(")];
/// Folders that exist on one machine only.
const PLACES: [(&str, &str); 2] = [("/wo", "rk/"), ("/ro", "ot/")];

#[test]
fn every_source_file_says_first_what_it_is() {
    let silent = |path: &PathBuf| {
        let text = text(path);
        let first = text.lines().find(|line| !line.is_empty()).unwrap_or_default();
        !(first.starts_with("//!") || first.starts_with("#![doc = include_str!("))
    };
    let offenders: Vec<_> = sources().into_iter().filter(silent).map(|path| shown(&path)).collect();
    none(&offenders, "these files do not open with //! and what they own");
}

#[test]
fn no_source_file_is_longer_than_a_reader_can_hold() {
    let offenders: Vec<_> = sources()
        .into_iter()
        .map(|path| (text(&path).lines().count(), shown(&path)))
        .filter(|(lines, _)| *lines >= LONGEST)
        .map(|(lines, name)| format!("{name}: {lines} lines"))
        .collect();
    none(&offenders, "one idea a file, under 400 lines");
}

#[test]
fn no_comment_is_wider_than_a_reader_takes_in() {
    let is_wide = |line: &str| {
        let comment = line.trim_start().strip_prefix("//");
        let text = comment.map(|text| text.trim_start_matches(['/', '!', ' ']));
        text.is_some_and(|text| !text.starts_with('|')) && line.chars().count() > WIDEST
    };
    let mut offenders = Vec::new();
    for path in sources() {
        for (number, line) in text(&path).lines().enumerate().filter(|(_, line)| is_wide(line)) {
            offenders.push(format!("{}:{}: {line}", shown(&path), number + 1));
        }
    }
    none(&offenders, "wrap these comments at 100 columns");
}

#[test]
fn nothing_is_left_unfinished() {
    let mut offenders = Vec::new();
    for path in sources() {
        for (number, line) in text(&path).lines().enumerate() {
            // The hidden lines of an example in the documentation need not do anything.
            let hidden = line.starts_with("//! #") || line.trim_start().starts_with("/// #");
            if !hidden && UNFINISHED.iter().any(|(a, b)| line.contains(&format!("{a}{b}"))) {
                offenders.push(format!("{}:{}: {}", shown(&path), number + 1, line.trim()));
            }
        }
    }
    none(&offenders, "finish it, or say in words what is not there");
}

#[test]
fn no_file_knows_the_machine_it_was_written_on() {
    let mut offenders = Vec::new();
    for path in sources().into_iter().chain(others()) {
        let text = text(&path);
        if PLACES.iter().any(|(a, b)| text.contains(&format!("{a}{b}"))) {
            offenders.push(shown(&path));
        }
    }
    none(&offenders, "these files name a folder of one machine");
}
