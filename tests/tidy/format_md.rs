//! The files and functions that an engine's FORMAT.md points at exist: `file.rs` `function`.

use std::path::Path;

use crate::rust::code;
use crate::tree::{files, none, root, shown, text};

/// The sources of the crate at `home`, and of what engines are built of, that are called `name`,
/// as code only.
fn called(home: &Path, name: &str) -> Vec<String> {
    ["src", "tests", "../dash-engine/src"]
        .iter()
        .flat_map(|folder| files(&home.join(folder), ".rs"))
        .filter(|path| path.ends_with(name))
        .map(|path| code(&text(&path)))
        .collect()
}

/// Whether `code` declares `name`: a function, type, constant or variant.
fn declares(code: &str, name: &str) -> bool {
    let ends = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    code.lines().map(str::trim_start).any(|line| {
        let declared = ["fn ", "const ", "static ", "struct ", "enum ", "trait ", "type "]
            .iter()
            .filter_map(|keyword| line.split_once(keyword))
            .any(|(_, rest)| rest.strip_prefix(name).is_some_and(ends));
        let variant = name.starts_with(char::is_uppercase)
            && line.strip_prefix(name).is_some_and(|rest| rest.starts_with([',', '(', ' ']));
        declared || variant
    })
}

/// What `document` names in code, as pairs of a file and the name beside it, if any.
fn pointers(document: &str) -> Vec<(String, Option<String>)> {
    let document = document.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut found = Vec::new();
    let mut file: Option<&str> = None;
    let mut between = "";
    for (number, part) in document.split('`').enumerate() {
        if number % 2 == 0 {
            between = part;
            continue;
        }
        let name = part.rsplit("::").next().unwrap_or(part);
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
        let beside = between.len() <= 24 && !between.contains(['|', '.', ';', '(', ')']);
        if part.ends_with(".rs") {
            file = Some(part);
            found.push((part.to_owned(), None));
        } else if let Some(file) = file.filter(|_| is_name && beside) {
            found.push((file.to_owned(), Some(name.to_owned())));
        } else {
            file = None;
        }
    }
    found
}

#[test]
fn every_file_and_function_that_a_format_names_exists() {
    let mut offenders = Vec::new();
    for format in files(&root().join("crates"), "FORMAT.md") {
        let Some(home) = format.parent() else {
            continue;
        };
        for (file, name) in pointers(&text(&format)) {
            let sources = called(home, &file);
            match name {
                _ if sources.is_empty() => {
                    offenders.push(format!("{}: there is no {file}", shown(&format)));
                }
                Some(name) if !sources.iter().any(|code| declares(code, &name)) => {
                    offenders.push(format!("{}: {file} has no {name}", shown(&format)));
                }
                _ => {}
            }
        }
    }
    none(&offenders, "these pointers lead nowhere");
}

#[test]
fn a_pointer_is_a_file_and_the_names_beside_it() {
    let found = pointers("`a.rs`\n`b`: `C::d`, at last `e` | `f`, (`g.rs`) and `h.rs` `I` (`j`)");
    let shown: Vec<_> =
        found.iter().map(|(file, name)| (&**file, name.as_deref().unwrap_or("-"))).collect();
    assert_eq!(
        shown,
        [
            ("a.rs", "-"),
            ("a.rs", "b"),
            ("a.rs", "d"),
            ("a.rs", "e"),
            ("g.rs", "-"),
            ("h.rs", "-"),
            ("h.rs", "I"),
        ]
    );
}
