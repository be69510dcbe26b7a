//! Why what is known of a transaction may not be all of it, or not enough to run it again.

/// A reason. Its number is its place in the list, and is never given to another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Reason {
    /// A blob handle.
    BlobHandle,
    /// A query was open.
    OpenQuery,
    /// Another trace hook.
    HookTaken,
    /// No hook from the beginning.
    OpenedBefore,
    /// A program inside a statement.
    OtherProgram,
    /// No more memory.
    Full,
    /// Values that could not be read.
    Unreadable,
    /// A pointer was bound.
    Pointer,
    /// More than one database.
    SeveralDatabases,
    /// Nothing that SQLite calls a statement.
    NoStatement,
    /// The host's SQLite.
    HostLacks,
    /// A mistake of dash's.
    Failed,
    /// The log's record was too small.
    NoRoom,
}

impl Reason {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 13] = [
        Self::BlobHandle,
        Self::OpenQuery,
        Self::HookTaken,
        Self::OpenedBefore,
        Self::OtherProgram,
        Self::Full,
        Self::Unreadable,
        Self::Pointer,
        Self::SeveralDatabases,
        Self::NoStatement,
        Self::HostLacks,
        Self::Failed,
        Self::NoRoom,
    ];

    /// What it says to people.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::BlobHandle => {
                "pages were used where no statement was at work: by a blob handle, or to read the schema again"
            }
            Self::OpenQuery => {
                "pages were used between two statements while a query was open: by the query, or by a blob handle"
            }
            Self::HookTaken => "the host has taken the trace hook, by which statements are seen",
            Self::OpenedBefore => {
                "statements of this connection are not seen: it was opened before the extension was loaded, or its main database without dash_statements=on"
            }
            Self::OtherProgram => {
                "a function, a virtual table or a PRAGMA ran statements of its own inside a statement"
            }
            Self::Full => "the transaction ran more than there is memory for",
            Self::Unreadable => "the values of a statement could not be read",
            Self::Pointer => "a pointer was bound, which means nothing outside the program",
            Self::SeveralDatabases => "the transaction wrote more than one database",
            Self::NoStatement => {
                "the database was written by something that is no statement, such as a backup"
            }
            Self::HostLacks => {
                "this SQLite was built without what is needed to see statements and their values (SQLITE_OMIT_DEPRECATED or SQLITE_OMIT_TRACE), as it is in better-sqlite3 and mattn/go-sqlite3"
            }
            Self::Failed => "dash failed while it looked at a statement",
            Self::NoRoom => "not recorded: no room in the record of the log",
        }
    }
}

/// A set of reasons.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reasons(u32);

impl Reasons {
    /// Adds one.
    pub fn add(&mut self, reason: Reason) {
        self.0 |= 1 << reason as u8;
    }

    /// Whether one is among them.
    #[must_use]
    pub const fn has(self, reason: Reason) -> bool {
        self.0 & (1 << reason as u8) != 0
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Those that are there.
    pub fn iter(self) -> impl Iterator<Item = Reason> {
        Reason::ALL.into_iter().filter(move |reason| self.has(*reason))
    }

    /// Bit i is the reason with number i.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// The set of these bits; `None` where one of them is no reason's.
    #[must_use]
    pub const fn of_bits(bits: u32) -> Option<Self> {
        if bits >> Reason::ALL.len() == 0 { Some(Self(bits)) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_its_number_and_a_sentence_of_its_own() {
        for (number, reason) in Reason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, number);
            let same = Reason::ALL.iter().filter(|other| other.sentence() == reason.sentence());
            assert_eq!(same.count(), 1, "{reason:?}");
        }
        assert_eq!(Reasons::of_bits(1 << Reason::ALL.len()), None);
    }
}
