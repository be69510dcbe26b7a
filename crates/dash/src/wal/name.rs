//! The mode among the others, for what has to tell it from them.

use crate::mode::Mode;

/// The mode.
pub const MODE: &dyn Mode = &Wal;

/// See [`MODE`].
pub struct Wal;
