//! REFERENCE.md has every name that a user can write: of each mode its names, PRAGMAs and
//! parameters; the functions; the tables and their columns.

use std::collections::BTreeSet;

use crate::mode::Mode;
use crate::modes::MODES;
use crate::{functions, tables, toy};

const REFERENCE: &str = include_str!("../REFERENCE.md");

fn names_of(mode: &dyn Mode) -> Vec<&'static str> {
    let parameters = mode.parameters().iter().map(|parameter| parameter.name);
    let mut names: Vec<_> = mode.names().iter().chain(mode.pragmas()).copied().collect();
    names.extend(parameters.chain([mode.engine()]));
    names
}

#[test]
fn the_reference_has_every_name() {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words: BTreeSet<_> = REFERENCE.split(|c| !is_word(c)).collect();
    let c = |name: &'static core::ffi::CStr| name.to_str().expect("ASCII");
    let mut names: Vec<&str> = functions::ALL.iter().map(|function| c(function.name)).collect();
    for table in tables::ALL {
        names.push(c(table.name));
        names.extend(table.columns);
    }
    for mode in MODES.all().filter(|mode| *mode != toy::MODE) {
        names.extend(names_of(mode));
    }
    let absent: Vec<_> = names.iter().filter(|name| !words.contains(**name)).collect();
    assert!(absent.is_empty(), "REFERENCE.md lacks {absent:?}");
    assert!(names_of(toy::MODE).iter().any(|name| !words.contains(name)), "it can't fail");
}
