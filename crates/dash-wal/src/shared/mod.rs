//! What the connections of all processes share: the coordination file, its locks, and what they
//! tell each other.

pub(crate) mod commits;
pub(crate) mod coordination;
pub(crate) mod entries;
pub(crate) mod generation;
pub(crate) mod locks;
