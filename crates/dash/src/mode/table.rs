//! A table of modes, and what can be looked up in it.

use dash_ffi::Result;

use super::{Mode, Parameter, Place};

/// Names of modes that dash is to have.
const NOT_YET: [&str; 1] = ["inpage"];

/// The modes there are; the first is taken where nobody asks for one.
pub struct Modes(pub &'static [&'static dyn Mode]);

impl Modes {
    /// The mode where nobody asks for one: that which the file keeps, or that in which others have
    /// it before it says so, or else the first.
    ///
    /// # Errors
    ///
    /// `SQLITE_CANTOPEN` if it can't be looked at.
    pub fn left_in(&self, place: &Place<'_>) -> Result<&'static dyn Mode> {
        for mode in self.all() {
            if mode.recognises(place)? {
                return Ok(self.other_that_holds(mode, place)?.unwrap_or(mode));
            }
        }
        for mode in self.all() {
            if mode.is_open_elsewhere(place)? {
                return Ok(mode);
            }
        }
        Ok(self.0[0])
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &'static dyn Mode> {
        self.0.iter().copied()
    }

    /// The modes of other engines than this one's.
    pub fn others(&self, mode: &'static dyn Mode) -> impl Iterator<Item = &'static dyn Mode> {
        self.all().filter(move |other| other.base() != mode.base())
    }

    /// The one among them of which something lies there that was not closed.
    ///
    /// # Errors
    ///
    /// `SQLITE_CANTOPEN` if it can't be looked at.
    pub fn other_that_holds(
        &self,
        mode: &'static dyn Mode,
        place: &Place<'_>,
    ) -> Result<Option<&'static dyn Mode>> {
        for other in self.others(mode) {
            if other.holds(place)? {
                return Ok(Some(other));
            }
        }
        Ok(None)
    }

    /// The mode of this name; case does not matter.
    pub fn named(&self, name: &str) -> Option<&'static dyn Mode> {
        let name = name.to_ascii_lowercase();
        self.all().find(|mode| mode.names().contains(&name.as_str()))
    }

    /// All names that can be chosen, for messages.
    fn names(&self) -> String {
        self.all().flat_map(Mode::names).copied().collect::<Vec<_>>().join(", ")
    }

    /// What is said about a name that is no mode's.
    pub fn unknown(&self, name: &str) -> String {
        let lower = name.to_ascii_lowercase();
        match NOT_YET.into_iter().find(|name| *name == lower) {
            Some(name) => format!(
                "journal_mode={name} isn't available in dash yet; available: {} (a commit in mode shadow is durable with one flush)",
                self.names()
            ),
            None => format!("no such journal_mode: {name}; there are {}", self.names()),
        }
    }

    /// The URI parameters of all modes.
    pub fn parameters(&self) -> impl Iterator<Item = &'static Parameter> {
        self.all().flat_map(Mode::parameters)
    }

    /// The URI parameters that mean nothing in this mode, each with one where they do.
    pub fn foreign(
        &self,
        mode: &'static dyn Mode,
    ) -> impl Iterator<Item = (&'static Parameter, &'static dyn Mode)> {
        let own: Vec<_> = self
            .all()
            .filter(|other| *other == mode || mode.is_form_of() == Some(*other))
            .flat_map(|mode| mode.parameters().iter().map(|parameter| parameter.name))
            .collect();
        let of = |mode: &'static dyn Mode| mode.parameters().iter().map(move |it| (it, mode));
        self.all().flat_map(of).filter(move |(parameter, _)| !own.contains(&parameter.name))
    }

    /// The PRAGMAs of all modes, each with its mode.
    pub fn pragmas(&self) -> impl Iterator<Item = (&'static str, &'static dyn Mode)> {
        self.all().flat_map(|mode| mode.pragmas().iter().map(move |name| (*name, mode)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modes::MODES;

    #[test]
    fn every_name_is_one_modes() {
        let names: Vec<_> = MODES.all().flat_map(Mode::names).collect();
        for name in &names {
            assert_eq!(names.iter().filter(|other| other == &name).count(), 1, "{name}");
            assert!(MODES.named(name).is_some() && MODES.named(&name.to_uppercase()).is_some());
        }
        assert_eq!(MODES.named("shadwo"), None);
        for name in NOT_YET {
            assert_eq!(MODES.named(name), None, "{name} is in the table");
            assert!(MODES.unknown(name).contains("isn't available"));
        }
    }

    #[test]
    fn what_is_a_modes_own_is_called_so() {
        let parameters = MODES.parameters().map(|parameter| parameter.name);
        for name in parameters.chain(MODES.pragmas().map(|(name, _)| name)) {
            assert!(name.starts_with("dash_"), "{name}");
        }
        let mut engines: Vec<_> = MODES.all().map(Mode::engine).collect();
        engines.sort_unstable();
        engines.dedup();
        assert_eq!(engines.len(), MODES.all().count());
    }
}
