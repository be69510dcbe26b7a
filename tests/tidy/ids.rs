//! Every id that is cited is defined, once, in the FORMAT.md or HISTORY.md of an engine:
//! `- **T5** …`. Every document that is cited is in the repository. What a user reads has no id in
//! it.

use std::collections::{BTreeMap, BTreeSet};

use crate::rust::{Kind, product, prose};
use crate::tree::{crates, files, none, others, root, shown, sources, text};

/// Here T with a number is the paper's name of a workload with as many tables.
const WORKLOADS: [&str; 2] = ["crates/dash-lab/", "benches/"];

/// The words of `text`, each with the number of its line.
pub(crate) fn words(text: &str) -> Vec<(usize, String)> {
    let part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '%');
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let words = line.split(|c| !part(c)).map(|word| word.trim_end_matches('-').to_owned());
        found.extend(words.filter(|word| !word.is_empty()).map(|word| (number + 1, word)));
    }
    found
}

/// Words like `SHADOW-3`.
pub(crate) fn is_invariant(word: &str) -> bool {
    word.split_once('-').is_some_and(|(name, number)| {
        matches!(name, "LOG" | "SHADOW" | "WAL" | "STATEMENT" | "INPAGE")
            && number.parse::<u32>().is_ok()
    })
}

/// Words like `SHADOW-3`, `SEC3`, `FT3`, or any single letter with a number of one or two digits.
fn is_id(word: &str) -> bool {
    let letters = word.trim_end_matches(|c: char| c.is_ascii_digit());
    let digits = word.len() - letters.len();
    let short = letters.len() == 1 && letters.chars().all(|c| c.is_ascii_uppercase());
    is_invariant(word) || (short || matches!(letters, "FT" | "SEC")) && matches!(digits, 1 | 2)
}

/// The ids that the documents of the engines define, with the documents that do.
fn defined() -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<_, Vec<_>> = BTreeMap::new();
    let home = root().join("crates");
    for format in ["FORMAT.md", "HISTORY.md"].iter().flat_map(|name| files(&home, name)) {
        for line in text(&format).lines() {
            let id = line.strip_prefix("- **").and_then(|rest| rest.split_once("** "));
            if let Some((id, sentence)) = id
                && is_id(id)
                && !sentence.is_empty()
            {
                found.entry(id.to_owned()).or_default().push(shown(&format));
            }
        }
    }
    found
}

/// Whether the file of a crate is there for tests only.
fn is_test(name: &str) -> bool {
    name.contains("/tests/") || name.ends_with("/tests.rs")
}

/// What is said in words in every file: file, line, text; code aside.
fn said() -> Vec<(String, usize, String)> {
    let mut found = Vec::new();
    for path in sources() {
        let source = text(&path);
        let pieces = prose(&source).into_iter();
        found.extend(pieces.map(|(_, line, said)| (shown(&path), line, said.to_owned())));
    }
    found.extend(others().iter().map(|path| (shown(path), 1, text(path))));
    found
}

#[test]
fn every_id_that_is_cited_is_defined_once() {
    let defined = defined();
    let mut offenders: Vec<_> = defined
        .iter()
        .filter(|(_, places)| places.len() > 1)
        .map(|(id, places)| format!("{id}: defined more than once: {}", places.join(", ")))
        .collect();
    for (name, first, said) in said() {
        if WORKLOADS.iter().any(|folder| name.starts_with(folder)) {
            continue;
        }
        for (line, word) in words(&said) {
            if is_id(&word) && !defined.contains_key(&word) {
                offenders.push(format!("{name}:{}: {word}", first + line - 1));
            }
        }
    }
    none(
        &offenders,
        "define these in a FORMAT.md or HISTORY.md, one sentence each, or don't cite them",
    );
}

#[test]
fn every_id_that_is_defined_has_a_test_that_cites_it() {
    let mut unmet: BTreeSet<_> = defined().into_keys().collect();
    for path in sources() {
        let (name, source) = (shown(&path), text(&path));
        let is_test = name.starts_with("tests/") || is_test(&name);
        let tests = if is_test { &source } else { &source[product(&source).len()..] };
        for (_, _, said) in prose(tests) {
            words(said).iter().for_each(|(_, word)| {
                unmet.remove(word);
            });
        }
    }
    let unmet: Vec<_> = unmet.into_iter().collect();
    none(&unmet, "a test that attacks these, or would see them again, cites them");
}

#[test]
fn every_document_that_is_cited_is_in_the_repository() {
    let known: BTreeSet<_> = ["README.md".to_owned(), "CHANGELOG.md".to_owned()]
        .into_iter()
        .chain(others().iter().filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())))
        .collect();
    let part = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    let mut offenders = Vec::new();
    for (name, first, said) in said() {
        for (number, line) in said.lines().enumerate() {
            for word in line.split(|c| !part(c)).map(|word| word.trim_end_matches('.')) {
                if word.len() > 3 && word.ends_with(".md") && !known.contains(word) {
                    offenders.push(format!("{name}:{}: {word}", first + number));
                }
            }
        }
    }
    none(&offenders, "these documents are not in the repository");
}

#[test]
fn no_user_reads_an_id() {
    let mut offenders = Vec::new();
    for path in crates().iter().flat_map(|home| files(&home.join("src"), ".rs")) {
        let name = shown(&path);
        if is_test(&name) || WORKLOADS.iter().any(|folder| name.starts_with(folder)) {
            continue;
        }
        let source = text(&path);
        for (kind, line, said) in prose(product(&source)) {
            if kind == Kind::Literal && words(said).iter().any(|(_, word)| is_id(word)) {
                offenders.push(format!("{name}:{line}: {said}"));
            }
        }
    }
    none(&offenders, "say it in words: these strings have an id in them");
}
