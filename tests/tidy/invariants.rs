//! Invariants are cited by the code that upholds them and by tests that attack them.

use std::collections::BTreeSet;

use crate::ids::{is_invariant, words};
use crate::tree::{files, none, root, shown, text};

#[test]
fn every_invariant_has_code_that_upholds_it_and_a_test_that_attacks_it() {
    let mut offenders = Vec::new();
    for format in files(&root().join("crates"), "FORMAT.md") {
        let Some(home) = format.parent() else {
            continue;
        };
        let ids = invariants(&text(&format));
        let (mut code, mut tests) = (BTreeSet::new(), BTreeSet::new());
        for path in files(&home.join("src"), ".rs") {
            let text = text(&path);
            let (upholds, attacks) = text.split_once("#[cfg(test)]").unwrap_or((&text, ""));
            let is_test = path.file_name().is_some_and(|name| name == "tests.rs");
            if is_test {
                tests.extend(invariants(&text))
            } else {
                code.extend(invariants(upholds))
            }
            tests.extend(invariants(attacks));
        }
        let torture = root().join("crates/dash-torture/tests");
        for folder in [home.join("tests"), torture, root().join("tests")] {
            for path in files(&folder, ".rs") {
                tests.extend(invariants(&text(&path)));
            }
        }
        offenders.extend(
            ids.difference(&code).map(|id| format!("{id}: no code of {} cites it", shown(home))),
        );
        offenders.extend(ids.difference(&tests).map(|id| format!("{id}: no test cites it")));
    }
    none(
        &offenders,
        "an invariant of a FORMAT.md is cited where it is upheld and where it is attacked",
    );
}

fn invariants(text: &str) -> BTreeSet<String> {
    words(text).into_iter().map(|(_, word)| word).filter(|word| is_invariant(word)).collect()
}
