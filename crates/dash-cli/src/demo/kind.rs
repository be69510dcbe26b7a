//! What can be compared.

/// A comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Commits of one connection that stays open.
    Writer,
    /// Commits of several processes at the same time.
    Processes,
    /// Open, update, close.
    Sessions,
    /// The user's own SQL.
    Recorded,
}

impl Kind {
    /// For the end of a sentence.
    pub fn short(self) -> &'static str {
        match self {
            Self::Writer => "with one writer",
            Self::Processes => "with eight processes",
            Self::Sessions => "at open, update, close",
            Self::Recorded => "at this SQL",
        }
    }

    /// The heading over failed statements, where there can be any.
    pub fn errors(self) -> Option<&'static str> {
        match self {
            Self::Writer | Self::Sessions => None,
            Self::Processes => Some("locked"),
            Self::Recorded => Some("failed"),
        }
    }
}
