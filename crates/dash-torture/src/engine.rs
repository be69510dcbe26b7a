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
    /// The endings of the names of the files beside `app.db` that content may be in.
    fn beside(&self) -> &'static [&'static str];

    /// The endings of all names beside `app.db` that a killed process may leave on the disk.
    fn may_be_left(&self) -> &'static [&'static str];

    /// Whether processes left something that the next opener has to see to.
    ///
    /// # Errors
    ///
    /// What can't be read, in words.
    fn needs_recovery(&self, database: &Path) -> Result<bool, String>;

    /// What programs say to this engine only.
    fn statements(&self) -> &'static Statements {
        const NONE: &Statements = &Statements { settings: &[], maintenance: &[], levels: &[] };
        NONE
    }

    /// What an error says that leaves it to the user which of two states counts, after a stock
    /// process wrote on an older one; `None`: no stock process is let in to do that.
    fn choice(&self) -> Option<&'static str>;

    /// Whether a database is at rest once the last connection of the engine has closed it, though
    /// others read it.
    fn rests_beside_readers(&self) -> bool;

    /// Whether a commit is seen before it is durable, and so also one that could not be made so.
    fn shows_failed_commits(&self) -> bool;

    /// Whether a durable commit makes durable, too, what others have left unflushed in the
    /// database.
    fn commits_flush_the_database(&self) -> bool;

    /// Whether dash has all of a database's file of this ending in another place, if the file
    /// system has lost its blocks.
    fn has_copy_of(&self, ending: &str, database: &Path) -> bool;

    /// Whether a database at rest can be read where nothing may be written.
    fn reads_without_writing(&self) -> bool;
}

/// Statements that mean something to one engine.
#[derive(Debug)]
pub struct Statements {
    /// Settings of a connection, for each new one in a program.
    pub settings: &'static [&'static str],
    /// What leaves the content as it is.
    pub maintenance: &'static [&'static str],
    /// How durable commits may be. The first is what connections begin with.
    pub levels: &'static [Level],
}

/// How durable commits are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Level {
    /// The statements that ask for it.
    pub sql: &'static str,
    /// Whether a power loss leaves a commit that was acknowledged, with all before it.
    pub is_durable: bool,
    /// Whether something may be torn at this level, but as long as the database is open in which
    /// somebody was promised something.
    pub needs_a_promise: bool,
}

impl Level {
    /// What a power loss leaves is there, and all before it.
    pub const fn durable(sql: &'static str) -> Self {
        Self { sql, is_durable: true, needs_a_promise: false }
    }

    /// The last ones may be lost, and tear nothing.
    pub const fn lazy(sql: &'static str) -> Self {
        Self { sql, is_durable: false, needs_a_promise: false }
    }
}
