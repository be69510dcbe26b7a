//! The names that `PRAGMA journal_mode` and the URI parameter `journal_mode` take.

/// The names that can be chosen, for messages.
pub const NAMES: &str = "shadow, delete, truncate, persist, memory, off";

/// What a user may ask of `journal_mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JournalMode {
    /// The engine `shadow`.
    Shadow,
    /// One of SQLite's own rollback modes: the file is a plain SQLite file.
    Plain,
    /// A mode of dash, or SQLite's WAL, that there is no engine for.
    NotYet(&'static str),
}

impl JournalMode {
    /// The mode of this name; case does not matter.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            "shadow" => Self::Shadow,
            "delete" | "truncate" | "persist" | "memory" | "off" => Self::Plain,
            "wal" => Self::NotYet("wal"),
            "statement" => Self::NotYet("statement"),
            "inpage" => Self::NotYet("inpage"),
            _ => return None,
        })
    }
}

/// What is said about a mode that there is no engine for.
pub fn not_yet(name: &str) -> String {
    format!(
        "journal_mode={name} isn't available in dash yet; available: {NAMES} (a commit in mode shadow is durable with one flush)"
    )
}

/// What is said about a name that is none.
pub fn unknown(name: &str) -> String {
    format!("no such journal_mode: {name}; there are {NAMES}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_in_the_message_is_a_mode() {
        for name in NAMES.split(", ") {
            assert!(
                !matches!(JournalMode::from_name(name), None | Some(JournalMode::NotYet(_))),
                "{name}"
            );
        }
        assert_eq!(JournalMode::from_name("SHADOW"), Some(JournalMode::Shadow));
        assert_eq!(JournalMode::from_name("shadwo"), None);
    }
}
