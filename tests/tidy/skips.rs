//! A test that can't run says so in one way, and a machine that must run all of them finds out. A
//! test with a long form is run in it.

use dash_testing::Need;

use crate::rust::{Kind, prose};
use crate::tree::{none, root, shown, sources, text};

/// Where the one way is.
const HOME: &str = "crates/dash-testing/src/skip.rs";

#[test]
fn every_skip_goes_through_the_one_function() {
    // In two halves, so that this file passes its own test.
    let word = ["ski", "pped: "].concat();
    let mut offenders = Vec::new();
    for path in sources() {
        let source = text(&path);
        for (kind, line, literal) in prose(&source) {
            let tells = kind == Kind::Literal && literal.to_lowercase().contains(&word);
            let place = shown(&path);
            if tells && place != HOME {
                offenders.push(format!("{}:{line}: {literal}", shown(&path)));
            }
        }
    }
    none(&offenders, "call dash_testing::skip: else nobody learns of it");
}

#[test]
fn what_ci_may_leave_out_is_what_a_test_may_need() {
    let script = text(&root().join(".ci/needs"));
    // `try WORD …`, also behind `||`, and the words of `for kind in …; do`.
    let words = |line: &str| -> Vec<String> {
        let line = line.trim_start();
        let tried = line.strip_prefix("try ").or_else(|| Some(line.split_once("|| try ")?.1));
        let kinds = line.strip_prefix("for kind in ").map(|kinds| kinds.trim_end_matches("; do"));
        let word = tried.and_then(|rest| rest.split(' ').next());
        kinds
            .into_iter()
            .flat_map(|kinds| kinds.split(' '))
            .chain(word)
            .map(str::to_owned)
            .collect()
    };
    let mut tried: Vec<_> = script.lines().flat_map(words).collect();
    tried.retain(|word| !word.starts_with('"'));
    let known: Vec<_> = Need::ALL.iter().map(|need| need.word()).collect();
    // Cargo builds the examples and the program whatever the machine is.
    let is_built = |word: &str| matches!(word, "examples" | "sqlite-dash");
    let is_tried = |word: &str| is_built(word) || tried.iter().any(|tried| tried == word);
    let untried = known.iter().filter(|word| !is_tried(word));
    let untried: Vec<_> = untried.map(|word| (*word).to_owned()).collect();
    none(&untried, "tests may skip for want of these, and .ci/needs does not try them");
    let unknown: Vec<_> =
        tried.into_iter().filter(|word| !known.contains(&word.as_str())).collect();
    none(&unknown, ".ci/needs tries these, and no test skips for want of them");
}

#[test]
fn ci_runs_the_tests_in_their_long_form() {
    let script = text(&root().join(".ci/run"));
    let at = |line: &str| script.lines().position(|found| found == line);
    let (long, tests) = (at("export DASH_LONG=1"), at("cargo test --workspace"));
    assert!(long.is_some() && long < tests, "{long:?}, {tests:?}");
}
