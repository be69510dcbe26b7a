//! What was written without a statement that was told of: a blob handle's writes, or those of
//! statements that the host's own trace hook was told of.
//!
//! - Between two statements of a transaction nobody uses a page, unless a query is open; or SQLite
//!   reads the schema again, which looks the same, and is rare.
//! - A program that writes and has no text is a blob handle's.
//! - Who commits, and who writes first, was told of; or the hook is the host's by now, and stays
//!   its for as long as the connection is there.

use dash_ffi::{TracedStatement, Watched};
use dash_statement::{Buffer, Reason};

use super::kind::Kind;

/// Of one connection.
#[derive(Default)]
pub struct Canaries {
    /// Uses of pages when a statement ended, in a transaction.
    mark: Option<i32>,
    /// A statement that writes was told of.
    written: bool,
    /// Nobody was told of what wrote first.
    unseen: bool,
    /// The hook is the host's.
    lost: bool,
}

/// The statements that are under way when the last frame is written.
#[derive(Default)]
pub struct Committer {
    known: bool,
    unknown: bool,
    blob: bool,
}

impl Committer {
    /// One of them; `known`: it was told of.
    pub fn look(&mut self, statement: &TracedStatement<'_>, known: bool) {
        match statement.sql() {
            // A full-text index has one open that reads.
            None => self.blob |= !statement.is_read_only(),
            Some(sql) if !statement.is_read_only() || Kind::of(sql).may_commit() => {
                self.known |= known;
                self.unknown |= !known;
            }
            Some(_) => {}
        }
    }
}

impl Canaries {
    /// Another transaction.
    pub fn start(&mut self) {
        (self.mark, self.written, self.unseen) = (None, false, false);
    }

    /// A statement that writes begins.
    pub fn writes(&mut self) {
        self.written = true;
    }

    /// A statement has ended, and its transaction goes on. Before the first one that writes there
    /// is another sign, and SQLite reads schemas.
    pub fn mark(&mut self, statement: &TracedStatement<'_>) {
        self.mark = self.written.then(|| statement.page_uses());
    }

    /// The next one begins.
    pub fn between(&mut self, statement: &TracedStatement<'_>, buffer: &mut Buffer) {
        let Some(mark) = self.mark.take() else { return };
        if statement.page_uses() == mark {
            return;
        }
        let (mut blob, mut query) = (false, false);
        statement.busy(|other| match other.sql() {
            None if !other.is_read_only() => blob = true,
            _ => query |= other.id() != statement.id(),
        });
        let by_query = query && !blob;
        buffer.note(if by_query { Reason::OpenQuery } else { Reason::BlobHandle });
    }

    /// The connection writes, and no statement that was told of is under way. Whether the hook is
    /// found lost by that.
    pub fn unseen_writer(&mut self, watched: &Watched<'_>) -> bool {
        let mut committer = Committer::default();
        watched.busy(|statement| committer.look(statement, false));
        let was = self.lost;
        self.lost |= committer.unknown;
        self.unseen = !self.lost;
        self.lost && !was
    }

    /// Its last frame is about to be written.
    pub fn at_commit(&mut self, committer: &Committer, buffer: &mut Buffer) {
        self.lost |= committer.unknown;
        if self.lost {
            buffer.note(Reason::HookTaken);
        } else if committer.blob || (self.unseen && committer.known) {
            buffer.note(Reason::BlobHandle);
        } else if !committer.known {
            buffer.note(Reason::NoStatement);
        }
    }
}
