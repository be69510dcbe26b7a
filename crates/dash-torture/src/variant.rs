//! A way to commit that an engine has and that is told apart on the command line.

/// A variant of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Variant {
    /// Its name, behind the engine's: the `paper` of `shadow/paper`.
    pub name: &'static str,
    /// What it is.
    pub what: &'static str,
    /// The URI parameters that ask the loaded extension for it. `None`: it is tried on the
    /// simulated machine only.
    pub uri: Option<&'static str>,
    /// Whether a commit stands on each flush that it makes: if one of them fails, so does the
    /// commit.
    pub every_flush_counts: bool,
}
