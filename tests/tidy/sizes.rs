//! How large a crate and a document may be: a reader has to hold them. The lists only sink. What
//! needs more room changes the list in the same commit, and the commit says why.

use std::path::Path;

use crate::allowed::{LINES, WORDS};
use crate::rust::product;
use crate::tree::{crates, files, none, root, shown, text};

/// What has become so much smaller is listed by its new size.
const SLACK: usize = 50;

/// Fails for each that is larger than its entry, is far smaller, or has none.
fn hold(found: Vec<(String, usize)>, listed: &[(&str, usize)], unit: &str) {
    let mut offenders = Vec::new();
    for (name, size) in &found {
        match listed.iter().find(|(listed, _)| listed == name).map(|(_, most)| *most) {
            Some(most) if *size > most => {
                offenders.push(format!("{name}: {size} {unit}, {most} are allowed"));
            }
            Some(most) if *size + SLACK < most => {
                offenders.push(format!("{name}: {size} {unit}, lower the {most} of the list"));
            }
            Some(_) => {}
            None => offenders.push(format!("{name}: {size} {unit}, and not in the list")),
        }
    }
    let is_gone = |name: &str| !found.iter().any(|(found, _)| found == name);
    let gone = listed.iter().filter(|(name, _)| is_gone(name));
    offenders.extend(gone.map(|(name, _)| format!("{name} is gone: strike it from the list")));
    none(&offenders, "make it smaller, or change tests/tidy/allowed.rs and say why");
}

#[test]
fn no_crate_grows_unseen() {
    let is_test = |path: &Path| {
        path.components().any(|part| part.as_os_str() == "tests") || path.ends_with("tests.rs")
    };
    let size = |home: &Path| {
        let sources = files(&home.join("src"), ".rs").into_iter();
        let sources = sources.filter(|path| !is_test(path.strip_prefix(home).unwrap_or(path)));
        sources.map(|path| product(&text(&path)).lines().count()).sum()
    };
    let name = |home: &Path| home.file_name().unwrap_or_default().to_string_lossy().into_owned();
    hold(crates().iter().map(|home| (name(home), size(home))).collect(), LINES, "lines");
}

#[test]
fn no_document_grows_unseen() {
    let places = [root().join("crates"), root().join(".github"), root().join("README.md")];
    let documents = places.iter().flat_map(|place| match place.is_dir() {
        true => files(place, ".md"),
        false => vec![place.clone()],
    });
    let words = documents.map(|path| (shown(&path), text(&path).split_whitespace().count()));
    hold(words.collect(), WORDS, "words");
}
