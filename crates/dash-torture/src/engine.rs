//! What an engine is to the rings. [`crate::engines`] has a line for each.

use std::path::Path;

use crate::faults::part::Part;
use crate::sim::subject::Subject;
use crate::variant::Variant;

/// The variant of every engine that the extension has: programs in which stock SQLite takes part.
pub const GUESTS: &str = "guests";

/// An engine.
pub trait Engine: Sync {
    /// The engine on simulated storage.
    fn subject(&self) -> &'static dyn Subject;

    /// The engine as a mode of the loaded extension; `None`: the extension does not have it, and
    /// the rings that load the extension leave it out.
    fn loaded(&self) -> Option<&'static dyn Loaded>;

    /// The parts of the ring `faults` that only this engine has.
    fn parts(&self) -> &'static [Part];

    /// Its name: the first word of all names on the command line, and what `PRAGMA journal_mode`
    /// calls it.
    fn name(&self) -> &'static str {
        self.subject().engine()
    }

    /// Its variants.
    fn variants(&self) -> &'static [Variant] {
        self.subject().variants()
    }

    /// The variants that the loaded extension has, each with its URI parameters.
    fn loaded_variants(&self) -> Vec<(&'static Variant, &'static str)> {
        let has_uri = |variant: &'static Variant| variant.uri.map(|uri| (variant, uri));
        match self.loaded() {
            Some(_) => self.variants().iter().filter_map(has_uri).collect(),
            None => Vec::new(),
        }
    }
}

/// An engine as the loaded extension has it: what the rings ask about its files.
pub trait Loaded: Sync {
    /// The endings of the names of the files beside `app.db` that belong to a database at rest.
    fn beside(&self) -> &'static [&'static str];

    /// The endings of all names beside `app.db` that a killed process may leave on the disk.
    fn may_be_left(&self) -> &'static [&'static str];

    /// Whether processes left something that the next opener has to see to.
    ///
    /// # Errors
    ///
    /// What can't be read, in words.
    fn needs_recovery(&self, database: &Path) -> Result<bool, String>;
}
