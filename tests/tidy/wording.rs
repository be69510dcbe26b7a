//! Words that make a reader look back: a sentence that begins with "who" or "those" lacks its noun,
//! and "the same" says nothing to somebody who has not read what is above.

use crate::allowed::HEADLESS;
use crate::rust::{Kind, prose};
use crate::tree::{crates, files, none, others, shown, text};

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

/// What a sentence of a document should not begin with.
const IN_DOCUMENTS: [&str; 4] = ["Who ", "Whoever ", "Whom ", "Those "];

/// The sentences of a document that begin like that: of its prose, items and cells of tables.
fn nounless(document: &str) -> Vec<String> {
    let mut sentences = String::new();
    for line in document.lines() {
        let text = line.trim_start().trim_start_matches("- ");
        let goes_on =
            !text.is_empty() && text == line.trim_start() && !line.starts_with(['|', '#']);
        sentences.push(if goes_on { ' ' } else { '\n' });
        sentences.push_str(&text.replace('|', "\n"));
    }
    let sentences = sentences.replace(". ", ".\n");
    let sentences = sentences.lines().map(str::trim);
    let starts = |sentence: &&str| IN_DOCUMENTS.iter().any(|start| sentence.starts_with(start));
    sentences.filter(starts).map(str::to_owned).collect()
}

#[test]
fn sentences_of_documents_say_their_noun() {
    let documents = others().into_iter().filter(|path| {
        path.extension().is_some_and(|ending| ending == "md") && !path.ends_with("CHANGELOG.md")
    });
    let found = documents.flat_map(|path| {
        let found = nounless(&text(&path)).into_iter();
        found.map(|sentence| format!("{}: {sentence}", shown(&path))).collect::<Vec<_>>()
    });
    none(&found.collect::<Vec<_>>(), "say the noun: \"a process that waits\", not \"who waits\"");
}

#[test]
fn a_sentence_without_its_noun_is_found() {
    let source = "/// A lock. Who waits\n/// for it, waits.\nfn a() {}\n// The same, of b.\n";
    assert_eq!(headless(source), 2);
    assert_eq!(headless("/// A process that waits\n/// Who is a part of it.\nfn a() {}"), 0);
    assert_eq!(nounless("A lock. Who waits\nfor it, waits.\n\n| a | Those of b |\n").len(), 2);
    assert_eq!(nounless("A process waits. The one\nWho is told.").len(), 0);
}
