//! The layout of the coordination file: what its words mean. Connections of different layouts don't
//! share a database: the second one is refused, by name. One that a crash left behind is made
//! anew.

use dash_engine::coordination::{DASH, LAYOUT, WAL_LAYOUTS};
use dash_engine::error::Error;

/// Raise it whenever a word gets another meaning. In every layout the first word is the mark, and
/// that of a commit that failed stays where it is ([`crate::shared::failed`]): it outlives them
/// all.
const NUMBER: u64 = 6;

/// First word of one that is laid out as here.
pub const MARK: u64 = DASH | NUMBER;

/// Whose words they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Nobody's yet.
    None,
    /// Laid out as here.
    Ours,
    /// By a dash that lays them out in another way: which one.
    Other(u64),
}

impl Layout {
    /// What the first word says.
    pub fn of(word: u64) -> Self {
        match word {
            MARK => Self::Ours,
            _ if word & !LAYOUT == DASH => Self::Other(word & LAYOUT),
            _ => Self::None,
        }
    }

    /// What a connection is told that comes to one of another layout.
    pub fn refusal(self, db: &str) -> Option<Error> {
        let Self::Other(other) = self else {
            return None;
        };
        if other >= WAL_LAYOUTS {
            return Some(Error::Held(format!("{db} is open in mode wal: close it there first")));
        }
        let whose = if other < NUMBER { "an older dash" } else { "a newer dash" };
        Some(Error::CantOpen(format!(
            "{db} is open in {whose}, which shares it in another way (layout {other}; this one has layout {NUMBER}): \
             close it there first, or use that version here, too"
        )))
    }
}
