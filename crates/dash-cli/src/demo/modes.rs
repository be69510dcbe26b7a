//! The four modes that the demo compares, and what each is good for whatever disk it runs on.

use std::path::Path;

use dash_bench::row::Row;
use dash_bench::rows::named;
use rusqlite::Connection;

use super::kind::Kind;
use crate::extension::Extension;
use crate::failure::{Failure, Result};

/// One side of every comparison. All commit with `synchronous=FULL`.
#[derive(Debug)]
pub struct Mode {
    /// What README calls it.
    pub name: &'static str,
    /// How it is opened and measured.
    pub row: &'static Row,
    /// Whether dash is loaded for it.
    pub is_dash: bool,
    /// When to take it.
    pub reasons: &'static [Reason],
}

/// A part of the sentence that says when to take a mode.
#[derive(Debug)]
pub struct Reason {
    /// Follows "take it".
    pub text: &'static str,
    /// A run that found others faster here contradicts it.
    pub unless_slower_at: Option<Kind>,
}

const fn always(text: &'static str) -> Reason {
    Reason { text, unless_slower_at: None }
}

const fn unless_slower_at(kind: Kind, text: &'static str) -> Reason {
    Reason { text, unless_slower_at: Some(kind) }
}

/// All, in the order in which they are shown.
pub static MODES: [Mode; 4] = [
    Mode {
        name: "stock DELETE",
        row: named("delete"),
        is_dash: false,
        reasons: &[
            always("where commits are few"),
            always("where no extension can be loaded"),
            always("where a database at rest must be one file that any program may write"),
        ],
    },
    Mode {
        name: "stock WAL",
        row: named("wal"),
        is_dash: false,
        reasons: &[
            always("for large transactions"),
            always("where no extension can be loaded"),
            always("with synchronous=NORMAL where a power loss may take the last commits"),
        ],
    },
    Mode {
        name: "dash shadow",
        row: named("dash-single"),
        is_dash: true,
        reasons: &[
            always("for small commits that no checkpoint may hold up"),
            unless_slower_at(
                Kind::Sessions,
                "for programs that open, change and close a database again and again",
            ),
            always("where there is room for a second copy of the database"),
        ],
    },
    Mode {
        name: "dash wal",
        row: named("dash-wal"),
        is_dash: true,
        reasons: &[
            unless_slower_at(
                Kind::Processes,
                "for many that write at once: they queue in order and share flushes",
            ),
            always("for programs that need WAL mode and every commit durable"),
            always("where there is room for a log of up to 64 MiB"),
        ],
    },
];

/// Opens a database in the mode of a row; an error has dash's own reason with it.
pub fn open(row: &Row, extension: &Extension, path: &Path) -> Result<Connection> {
    row.open(path).map_err(|failure| match extension.last_error() {
        Some(reason) => Failure::new(format!("{failure}: {reason}")),
        None => failure,
    })
}
