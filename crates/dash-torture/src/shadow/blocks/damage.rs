//! Every single bit, and every length.

use dash_shadow::format::{COMMIT_MAGIC, CommitBlock, TAIL_LEN, list_len};
use dash_simulated::Machine;

use super::original::{Original, flip_word, put, resize};
use super::verdict::{self, Verdict};
use crate::random::mix;
use crate::sim::content::Stock;
use crate::sim::subject::Subject;

/// SQLite's header, which carries marks in the copy that is not current.
const HEADER: u64 = 100;
/// Words of the memory that connections share; its file is the coordination file.
const WORDS: usize = 4096;
/// Words of it that all connections use, and a few entries of readers.
const BUSY_WORDS: usize = 128;
/// Every so many cases the database is written after it was opened.
const FURTHER: u64 = 16;

/// A file of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// `app.db`.
    Database,
    /// `app.db-shadow`.
    Shadow,
}

impl Which {
    fn path(self) -> &'static str {
        match self {
            Self::Database => "/app.db",
            Self::Shadow => "/app.db-shadow",
        }
    }
}

/// A damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage {
    /// A bit of a file, counted from its first byte's lowest.
    Bit(Which, u64),
    /// A file has another length.
    Length(Which, u64),
    /// A bit of the shared memory, which a kill leaves behind.
    Shared(u64),
    /// The coordination file has another length.
    SharedLength(u64),
}

impl Damage {
    /// In words, as in `--case`.
    pub fn name(self) -> String {
        match self {
            Self::Bit(which, bit) => format!("bit/{which:?}/{bit}"),
            Self::Length(which, len) => format!("length/{which:?}/{len}"),
            Self::Shared(bit) => format!("bit/shared/{bit}"),
            Self::SharedLength(len) => format!("length/shared/{len}"),
        }
        .to_lowercase()
    }

    /// All that metadata can suffer in a database.
    pub fn all(original: &Original) -> Vec<Self> {
        let mut all = Vec::new();
        for which in [Which::Database, Which::Shadow] {
            let Some(bytes) = original.machine.file_view(which.path()) else { continue };
            let len = bytes.len() as u64;
            let tail = tail(&bytes);
            let header = 0..HEADER.min(len);
            for byte in header.chain(tail..len) {
                all.extend((0..8).map(|bit| Self::Bit(which, byte * 8 + bit)));
            }
            // Pages of the database itself are SQLite's; those of the shadow are a copy.
            let pages = if which == Which::Database { tail..tail } else { 0..tail };
            let lengths = pages.step_by(61).chain(tail..len).chain(len + 1..len + 600);
            all.extend(lengths.map(|len| Self::Length(which, len)));
        }
        if original.machine.file_view("/app.db-dash").is_some() {
            all.extend((0..BUSY_WORDS as u64 * 64).map(Self::Shared));
            let rest = BUSY_WORDS as u64..WORDS as u64;
            all.extend(rest.map(|word| Self::Shared(word * 64 + mix(word) % 64)));
            all.extend((0..WORDS as u64 * 8).step_by(37).map(Self::SharedLength));
        }
        all
    }

    fn does(self, machine: &Machine) -> std::io::Result<()> {
        match self {
            Self::Bit(which, bit) => {
                let bytes = machine.file_view(which.path()).unwrap_or_default();
                let at = usize::try_from(bit / 8).unwrap_or(usize::MAX);
                let byte = bytes.get(at).copied().unwrap_or_default() ^ (1 << (bit % 8));
                put(machine, which.path(), bit / 8, &[byte])
            }
            Self::Length(which, len) => resize(machine, which.path(), len),
            Self::Shared(bit) => {
                let word = usize::try_from(bit / 64).unwrap_or(usize::MAX);
                flip_word(machine, "/app.db-dash", WORDS, word, 1 << (bit % 64))
            }
            Self::SharedLength(len) => resize(machine, "/app.db-dash", len),
        }
    }

    /// Does it to a copy; whether that was opened nevertheless.
    ///
    /// # Errors
    ///
    /// What must never happen.
    pub fn run(
        self,
        subject: &dyn Subject,
        original: &Original,
        number: u64,
    ) -> Result<bool, String> {
        let machine = original.copy(subject);
        self.does(&machine).map_err(|error| format!("damaging: {error}"))?;
        let seen_by_stock = verdict::stock(&machine);
        match verdict::of(subject, &machine, original, number.is_multiple_of(FURTHER))? {
            Verdict::Refused => Ok(false),
            Verdict::Opened(content) if original.allowed.contains(&content) => Ok(true),
            // The header of `app.db` is SQLite's: what it says of a plain file any SQLite believes.
            Verdict::Opened(content)
                if self.is_in_header() && seen_by_stock == Stock::Content(content.clone()) =>
            {
                Ok(true)
            }
            Verdict::Torn(_) if self.is_in_header() && seen_by_stock != Stock::Refused => Ok(true),
            other => Err(format!("{other:?}, where {:?} may be", original.allowed)),
        }
    }

    fn is_in_header(self) -> bool {
        matches!(self, Self::Bit(Which::Database, bit) if bit < HEADER * 8)
    }
}

/// Where the tail of a file begins: its list area, if it has one, and its two blocks.
fn tail(bytes: &[u8]) -> u64 {
    let len = bytes.len() as u64;
    let block = bytes.len().saturating_sub(4096);
    let lists = match CommitBlock::decode(&bytes[block..]) {
        Ok(block) => list_len(block.unit_count as usize),
        Err(_) if bytes[block..].starts_with(&COMMIT_MAGIC) => 4096,
        Err(_) => 0,
    };
    len.saturating_sub(TAIL_LEN + lists)
}
