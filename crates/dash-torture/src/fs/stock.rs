//! The modes in which stock SQLite writes as a guest, and what each of them promises.

use fastrand::Rng;

use super::kind::Kind;

const JOURNALS: [&str; 6] = ["delete", "truncate", "persist", "memory", "off", "wal"];
const LEVELS: [&str; 4] = ["off", "normal", "full", "extra"];

/// When a power loss may leave a torn file, by no fault of dash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Torn {
    /// Never: a journal or a log stands by.
    Never,
    /// Until the commit has returned.
    WhileWriting,
    /// Until somebody has flushed the file.
    UntilFlushed,
}

/// A `journal_mode` and a `synchronous`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mode {
    /// `journal_mode`.
    pub journal: &'static str,
    /// `synchronous`.
    pub synchronous: &'static str,
}

impl Mode {
    /// Any of them; those without a journal file more often than others.
    pub fn draw(rng: &mut Rng) -> Self {
        let synchronous = LEVELS[[0, 1, 2, 2, 3][rng.usize(..5)]];
        Self { journal: JOURNALS[[0, 0, 1, 2, 3, 3, 4, 4, 5][rng.usize(..9)]], synchronous }
    }

    /// The same level in the journal mode that SQLite says is in force.
    pub fn in_force(self, journal: &str) -> Option<Self> {
        let journal = JOURNALS.into_iter().find(|name| *name == journal)?;
        Some(Self { journal, ..self })
    }

    /// Whether a commit that returned survives a power loss. With `delete` the name of the journal
    /// may come back, unless the folder is flushed (`extra`).
    pub fn is_durable(self) -> bool {
        !matches!(
            (self.journal, self.synchronous),
            (_, "off") | ("delete" | "truncate" | "wal", "normal") | ("delete", "full")
        )
    }

    /// When the file may be torn. With `normal` the journal's pages and the count of them are
    /// flushed at once, and its checksum looks at every 200th byte only. Where a file may show old
    /// blocks, a `-wal` that was deleted after a checkpoint may come back with a part of what it
    /// held, which is older than the database then.
    pub fn torn(self, kind: Kind) -> Torn {
        match (self.journal, self.synchronous) {
            (_, "off") => Torn::UntilFlushed,
            ("wal", _) if kind.shows_old_blocks() => Torn::UntilFlushed,
            ("wal", _) => Torn::Never,
            ("memory" | "off", _) | (_, "normal") => Torn::WhileWriting,
            _ => Torn::Never,
        }
    }

    /// Whether a process may be killed in the middle of a commit.
    pub fn survives_kills(self) -> bool {
        !matches!(self.journal, "memory" | "off")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_promises_what_it_flushes() {
        let mode = |journal, synchronous| Mode { journal, synchronous };
        let torn = |journal, synchronous| mode(journal, synchronous).torn(Kind::Ext4Ordered);
        for synchronous in ["full", "extra"] {
            assert!(mode("memory", synchronous).is_durable());
            assert_eq!(torn("memory", synchronous), Torn::WhileWriting);
            assert!(mode("wal", synchronous).is_durable());
            assert_eq!(torn("truncate", synchronous), Torn::Never);
            assert_eq!(torn("wal", synchronous), Torn::Never);
        }
        assert!(mode("delete", "extra").is_durable() && !mode("delete", "full").is_durable());
        for journal in JOURNALS {
            assert!(!mode(journal, "off").is_durable());
            assert_eq!(torn(journal, "off"), Torn::UntilFlushed);
        }
        assert!(!mode("off", "full").survives_kills());
    }
}
