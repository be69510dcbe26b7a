//! What the modules of a crate take from each other goes one way, so that each can be read after
//! those it rests on.
//!
//! A module is a file. It takes what `crate::…` and `super::…` name in its code, and what it names
//! of its children. Left out: the root, which only puts names together, as `pub use` does anywhere;
//! and tests.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::allowed::CIRCLES;
use crate::rust::{code, product};
use crate::tree::{crates, files, none, text};

/// What each module of the crate at `home` takes from others of it.
fn imports(home: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let mut sources = BTreeMap::new();
    for path in files(&home.join("src"), ".rs") {
        let relative = path.strip_prefix(home.join("src")).unwrap_or(&path).with_extension("");
        let name = relative.to_string_lossy().replace('/', "::");
        let name = name.strip_suffix("::mod").unwrap_or(&name).to_owned();
        if !matches!(&*name, "lib" | "main") && !name.split("::").any(|part| part == "tests") {
            sources.insert(name, code(product(&text(&path))));
        }
    }
    let known: BTreeSet<_> = sources.keys().cloned().collect();
    let found = |name: &String, code: &String| {
        let modules = taken(name, code, &known).into_iter();
        let modules = modules.filter_map(|path| module_of(&path, &known));
        (name.clone(), modules.filter(|module| module != name).collect())
    };
    sources.iter().map(|(name, code)| found(name, code)).collect()
}

/// Every path in the code of the module `name` that leads to another one of the crate, as from its
/// root; trees of `{}` are taken apart.
fn taken(name: &str, code: &str, known: &BTreeSet<String>) -> Vec<String> {
    let code = without_exports(code);
    let mut found = Vec::new();
    let mut from = |base: &str, start: &str| {
        for (at, _) in code.match_indices(start) {
            let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
            let rest = &code[at + start.len()..];
            if !code[..at].ends_with(is_path) && !rest.starts_with("super::") {
                branches(base, rest, &mut found);
            }
        }
    };
    from("", "crate::");
    let (mut above, mut path) = (name, String::new());
    while let Some((parent, _)) = above.rsplit_once("::") {
        path.push_str("super::");
        from(parent, &path);
        above = parent;
    }
    path.push_str("super::");
    from("", &path);
    let children = known.iter().filter_map(|other| other.strip_prefix(name)?.strip_prefix("::"));
    for child in children.filter(|child| !child.contains("::")) {
        from(&format!("{name}::{child}"), &format!("{child}::"));
    }
    found
}

/// `code` without its `pub use …;`.
fn without_exports(code: &str) -> String {
    let mut kept = String::new();
    let mut rest = code;
    while let Some(at) = ["pub use ", "pub(crate) use ", "pub(super) use "]
        .iter()
        .filter_map(|start| rest.find(start))
        .min()
    {
        kept.push_str(&rest[..at]);
        rest = rest[at..].split_once(';').map_or("", |(_, rest)| rest);
    }
    kept + rest
}

/// The paths of the tree that `rest` begins with; returns what is behind it.
fn branches<'a>(before: &str, rest: &'a str, found: &mut Vec<String>) -> &'a str {
    let rest = rest.trim_start();
    if let Some(mut rest) = rest.strip_prefix('{') {
        loop {
            rest = branches(before, rest, found).trim_start();
            // Also `x as y`: up to the next branch.
            rest = rest.find([',', '}']).map_or("", |at| &rest[at..]);
            match rest.strip_prefix(',') {
                Some(next) => rest = next,
                None => return rest.strip_prefix('}').unwrap_or(""),
            }
        }
    }
    let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
    let path = format!("{before}::{}", &rest[..end]);
    match rest[end..].strip_prefix("::") {
        Some(more) if more.starts_with(|c: char| c.is_alphabetic() || c == '_' || c == '{') => {
            branches(&path, more, found)
        }
        _ => {
            found.push(path.trim_start_matches("::").to_owned());
            &rest[end..]
        }
    }
}

/// The module that a path leads into: the longest beginning that is one.
fn module_of(path: &str, known: &BTreeSet<String>) -> Option<String> {
    let mut path = path;
    loop {
        if known.contains(path) {
            return Some(path.to_owned());
        }
        path = path.rsplit_once("::")?.0;
    }
}

/// The modules that can be reached from `from`, itself only if there is a circle.
fn reached(imports: &BTreeMap<String, BTreeSet<String>>, from: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut next = vec![from.to_owned()];
    while let Some(module) = next.pop() {
        for taken in imports.get(&module).into_iter().flatten() {
            if found.insert(taken.clone()) {
                next.push(taken.clone());
            }
        }
    }
    found
}

/// The modules that are part of a circle, each with all of that circle.
fn circles(imports: &BTreeMap<String, BTreeSet<String>>) -> BTreeMap<String, BTreeSet<String>> {
    let reached: BTreeMap<_, _> =
        imports.keys().map(|name| (name.clone(), reached(imports, name))).collect();
    let both = |a: &str, b: &str| reached.get(a).is_some_and(|from| from.contains(b));
    let circle = |name: &String, from: &BTreeSet<String>| {
        let circle: BTreeSet<_> = from.iter().filter(|other| both(other, name)).cloned().collect();
        (name.clone(), circle)
    };
    reached
        .iter()
        .map(|(name, from)| circle(name, from))
        .filter(|(_, all)| !all.is_empty())
        .collect()
}

#[test]
fn modules_take_from_each_other_one_way_only() {
    let (mut new, mut gone) = (Vec::new(), Vec::new());
    for home in crates() {
        let name = home.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let circles = circles(&imports(&home));
        let listed: Vec<_> = CIRCLES.iter().filter(|circle| circle.in_crate == name).collect();
        for (module, circle) in &circles {
            let known = |part: &String| listed.iter().any(|listed| listed.has(part));
            let as_listed = listed.iter().any(|listed| circle.iter().all(|part| listed.has(part)));
            // The newcomer is the offender; where there is none, two circles have become one.
            if !as_listed && (!known(module) || circle.iter().all(known)) {
                let circle: Vec<_> = circle.iter().map(String::as_str).collect();
                new.push(format!("{name}: {module}, in the circle {}", circle.join(", ")));
            }
        }
        for module in listed.iter().flat_map(|listed| listed.modules) {
            if !circles.contains_key(*module) {
                gone.push(format!("{name}: {module}"));
            }
        }
    }
    none(&new, "a new circle of imports");
    none(&gone, "these are in no circle any more: strike them from CIRCLES");
}

#[test]
fn a_circle_is_found_through_trees_of_imports() {
    let code =
        "use crate::a::{self, b::{C, D as E}, f}; fn g() { crate::h::i(); } pub(crate) fn j() {}";
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let known = names(&["x", "x::y", "x::y::z"]);
    assert_eq!(
        taken("x::y", code, &known),
        ["a::self", "a::b::C", "a::b::D", "a::f", "h::i"],
        "from the root"
    );
    let code = "use super::k; use super::super::l; use z::m; pub use z::{n, o}; pub mod z;";
    assert_eq!(taken("x::y", code, &known), ["x::k", "l", "x::y::z::m"], "from beside");
    let imports = BTreeMap::from([
        ("a".to_owned(), names(&["b"])),
        ("b".to_owned(), names(&["c"])),
        ("c".to_owned(), names(&["b"])),
    ]);
    let found: Vec<_> = circles(&imports).into_keys().collect();
    assert_eq!(found, ["b", "c"]);
}
