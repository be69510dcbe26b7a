//! Words that make a reader look back: a sentence that begins with "who" or "those" lacks its noun,
//! and "the same" says nothing to somebody who has not read what is above.

use crate::allowed::HEADLESS;
use crate::rust::{Kind, prose};
use crate::tree::{crates, files, text};

/// What a sentence of a comment should not begin with.
const BEGINNINGS: [&str; 8] =
    ["The same", "Who ", "Whoever ", "Those ", "Those,", "What is not", "As above", "So does"];

/// How many sentences of the comments in `source` begin like that.
fn headless(source: &str) -> usize {
    let mut comment = String::new();
    for (kind, _, piece) in prose(source) {
        if kind == Kind::Comment {
            let text = piece.trim_start_matches(['/', '!', ' ']);
            let is_next = comment.is_empty() || comment.ends_with(['.', ':']);
            comment.push_str(if is_next { "\n" } else { " " });
            comment.push_str(text);
        }
    }
    let text = comment.replace(". ", ".\n").replace(": ", ":\n");
    text.lines().filter(|line| BEGINNINGS.iter().any(|start| line.starts_with(start))).count()
}

#[test]
fn sentences_say_their_noun() {
    let sources = crates().into_iter().flat_map(|home| files(&home.join("src"), ".rs"));
    let found: usize = sources.map(|path| headless(&text(&path))).sum();
    assert!(found <= HEADLESS, "{found} comments begin with {BEGINNINGS:?}; {HEADLESS} did before");
    assert!(found + 10 > HEADLESS, "{found} are left: lower HEADLESS");
}

#[test]
fn a_sentence_without_its_noun_is_found() {
    let source = "/// A lock. Who waits\n/// for it, waits.\nfn a() {}\n// The same, of b.\n";
    assert_eq!(headless(source), 2);
    assert_eq!(headless("/// A process that waits\n/// Who is a part of it.\nfn a() {}"), 0);
}
