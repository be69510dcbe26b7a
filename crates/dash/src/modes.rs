//! The journal modes of dash: a new one is a line here.

use crate::mode::Modes;
use crate::{plain, shadow, wal};

/// All of them; the first is taken where nobody asks for one.
pub static MODES: Modes = Modes(&[
    shadow::MODE,
    wal::MODE,
    wal::statement::MODE,
    plain::MODE,
    #[cfg(test)]
    crate::toy::MODE,
]);
