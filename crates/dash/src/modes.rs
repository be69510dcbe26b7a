//! The journal modes of dash: a new one is a line here.

use crate::mode::{Mode, Parameter};
use crate::{plain, shadow};

/// All of them; the first is taken where nobody asks for one.
pub static MODES: &[&dyn Mode] = &[
    shadow::MODE,
    plain::MODE,
    #[cfg(test)]
    crate::toy::MODE,
];

/// Names of modes that dash is to have.
const NOT_YET: [&str; 3] = ["wal", "statement", "inpage"];

/// The mode of this name; case does not matter.
pub fn named(name: &str) -> Option<&'static dyn Mode> {
    let name = name.to_ascii_lowercase();
    MODES.iter().copied().find(|mode| mode.names().contains(&name.as_str()))
}

/// All names that can be chosen, for messages.
pub fn names() -> String {
    let names: Vec<_> = MODES.iter().flat_map(|mode| mode.names()).copied().collect();
    names.join(", ")
}

/// What is said about a name that is no mode's.
pub fn unknown(name: &str) -> String {
    let lower = name.to_ascii_lowercase();
    match NOT_YET.into_iter().find(|name| *name == lower) {
        Some(name) => format!(
            "journal_mode={name} isn't available in dash yet; available: {} (a commit in mode shadow is durable with one flush)",
            names()
        ),
        None => format!("no such journal_mode: {name}; there are {}", names()),
    }
}

/// The URI parameters of all modes.
pub fn parameters() -> impl Iterator<Item = &'static Parameter> {
    MODES.iter().flat_map(|mode| mode.parameters())
}

/// The PRAGMAs of all modes, each with its mode.
pub fn pragmas() -> impl Iterator<Item = (&'static str, &'static dyn Mode)> {
    MODES.iter().flat_map(|mode| mode.pragmas().iter().map(move |name| (*name, *mode)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_one_modes() {
        let names: Vec<_> = MODES.iter().flat_map(|mode| mode.names()).collect();
        for name in &names {
            assert_eq!(names.iter().filter(|other| other == &name).count(), 1, "{name}");
            assert!(named(name).is_some() && named(&name.to_uppercase()).is_some());
        }
        assert_eq!(named("shadwo"), None);
        for name in NOT_YET {
            assert_eq!(named(name), None, "{name} is in the table");
            assert!(unknown(name).contains("isn't available"));
        }
    }

    #[test]
    fn what_is_a_modes_own_is_called_so() {
        let own =
            parameters().map(|parameter| parameter.name).chain(pragmas().map(|(name, _)| name));
        for name in own {
            assert!(name.starts_with("dash_"), "{name}");
        }
        let mut engines: Vec<_> = MODES.iter().map(|mode| mode.engine()).collect();
        engines.sort_unstable();
        engines.dedup();
        assert_eq!(engines.len(), MODES.len());
    }
}
