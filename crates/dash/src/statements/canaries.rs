//! What was written without a statement that was told of: a blob handle's writes, or those of
//! statements that the host's own trace hook was told of.
//!
//! - Between two statements of a transaction nobody uses a page, unless a query is open; or SQLite
//!   reads the schema again, which looks the same, and is rare.
//! - A program that writes and has no text is a blob handle's.
//! - Who commits, and who writes first, was told of; or the hook is the host's by now, and stays
//!   its for as long as the connection is there.
//!
//! A connection in exclusive locking mode does not ask whether it may write. There nobody sees who
//! writes first, so pages count, too, that were used before the first statement that writes.

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
    /// Pages were used before that one, and what it means where nobody asks.
    early: Option<Reason>,
    /// The connection has asked for the right to write.
    asked: bool,
    /// Nobody was told of who asked.
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
        *self = Self { lost: self.lost, ..Self::default() };
    }

    /// The hook is the host's.
    pub fn is_lost(&self) -> bool {
        self.lost
    }

    /// A statement that writes begins.
    pub fn writes(&mut self) {
        self.written = true;
    }

    /// A statement has ended, and its transaction goes on.
    pub fn mark(&mut self, statement: &TracedStatement<'_>) {
        self.mark = Some(statement.page_uses());
    }

    /// The next one begins.
    pub fn between(&mut self, statement: &TracedStatement<'_>, buffer: &mut Buffer) {
        let Some(mark) = self.mark.take() else { return };
        let is_known = !self.written && self.early.is_some();
        if is_known || statement.page_uses() == mark {
            return;
        }
        let (mut blob, mut query) = (false, false);
        statement.busy(|other| match other.sql() {
            None if !other.is_read_only() => blob = true,
            _ => query |= other.id() != statement.id(),
        });
        let by_query = query && !blob;
        let reason = if by_query { Reason::OpenQuery } else { Reason::BlobHandle };
        match self.written {
            true => buffer.note(reason),
            false => self.early = Some(reason),
        }
    }

    /// The connection asks for the right to write.
    pub fn asks(&mut self) {
        self.asked = true;
    }

    /// It gives the right up: the transaction is over, or SQLite has only repaired the wal-index or
    /// run a checkpoint, which writes nothing.
    pub fn gives_up(&mut self) {
        (self.asked, self.unseen) = (false, false);
    }

    /// The connection asks, and no statement that was told of is under way. Whether the hook is
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
        if committer.unknown && !self.lost && !self.asked {
            // What was told may be of a transaction that was rolled back since.
            buffer.clear();
        }
        self.lost |= committer.unknown;
        if self.lost {
            return buffer.note(Reason::HookTaken);
        }
        if let (false, Some(reason)) = (self.asked, self.early) {
            buffer.note(reason);
        }
        if committer.blob || (self.unseen && committer.known) {
            buffer.note(Reason::BlobHandle);
        } else if !committer.known {
            buffer.note(Reason::NoStatement);
        }
    }
}
