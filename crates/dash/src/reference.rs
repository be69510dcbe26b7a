//! REFERENCE.md, which says what every name means that a user can write or read: of each mode its
//! names, PRAGMAs and parameters; the functions; the tables, their columns and counters.

use crate::modes::MODES;

const REFERENCE: &str = include_str!("../REFERENCE.md");

/// What a counter of `dash_stats` counts in a mode, in the words of REFERENCE.md; the unit first.
pub fn meaning(engine: &str, name: &str) -> Option<String> {
    let engine = MODES.all().find(|mode| mode.engine() == engine)?.base().engine();
    let heading = format!("### `dash_stats(name, value, meaning, total)` in mode `{engine}`\n");
    let (_, section) = REFERENCE.split_once(&heading)?;
    let (section, _) = section.split_once("\n#")?;
    section.lines().find_map(|line| {
        let mut cells = line.split('|').map(str::trim).skip(1);
        let (counter, unit, counts) = (cells.next()?, cells.next()?, cells.next()?);
        let is_it = counter.trim_matches('`') == name;
        is_it.then(|| plain(&format!("{unit}: {counts}")))
    })
}

/// Without what Markdown has besides the text: code marks, and where links lead.
fn plain(text: &str) -> String {
    let text = text.replace('`', "");
    let mut parts = text.split("](");
    let first = parts.next().unwrap_or_default().to_owned();
    let linked = parts.fold(first, |text, part| {
        let behind = part.split_once(')').map_or("", |(_, behind)| behind);
        text + behind
    });
    linked.replace('[', "")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::mode::Mode;
    use crate::{functions, tables, toy};

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

    #[test]
    fn a_counter_is_explained_in_its_mode() {
        let unit = |engine| meaning(engine, "commits").map(|text| text.starts_with("transactions"));
        assert_eq!([unit("shadow"), unit("wal"), unit("statement")], [Some(true); 3]);
        assert_eq!(meaning("wal", "exchanges"), None);
        let linked = meaning("wal", "not_carried").expect("is there");
        assert!(linked.contains("replay (dash-statement/FORMAT.md), such as form 3"), "{linked}");
    }
}
