//! The validated upgrade: a transaction that has read goes on to write, though others have
//! committed since (WAL-54). Stock SQLite refuses that whatever they wrote (SQLITE_BUSY_SNAPSHOT,
//! wal.c `sqlite3WalBeginWriteTransaction`).
//!
//! WRITER is held from here on. If no frame behind the snapshot has a page that the connection has
//! read or written, all that it has read is as it is now: the transaction is one that begins now.
//! SQLite is shown the header that it knows, and what it does goes where it belongs ([`viewed`]).

pub(crate) mod reads;
pub(crate) mod view;
mod viewed;

use crate::connection::index::WRITER;
use crate::connection::state::Connection;
use crate::connection::upgrade::view::{Conflict, View};
use crate::frames::Salts;
use crate::index::{self, Index, IndexHeader, decode};
use crate::mutation::{Mutation, broken};
use dash_engine::error::{Error, Result};
use dash_storage::Storage;

/// What a connection of SQLite's has read in the transaction in hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// Nothing: none is under way.
    Nothing,
    /// This database.
    Own,
    /// Several databases.
    Several,
}

impl<S: Storage> Connection<S> {
    /// SQLite has WRITER: goes on to write, where others have committed since it began to read.
    /// `reads`: what it reads, and nothing where it is about to begin. Whatever writes where there
    /// is a view is one that goes on, as SQLite finds the view's header: another connection of a
    /// shared cache, or one whose cursor outlived its transaction. Whether it was upgraded.
    ///
    /// # Errors
    ///
    /// `BusySnapshot` where others wrote what it has read, or that can't be told; WRITER is given
    /// up then. Or a call fails.
    pub fn upgrade_if(&mut self, reads: impl FnOnce() -> Reading) -> Result<bool> {
        let is_old = self.index.read_slot().is_some() && self.is_outdated();
        if self.view.is_none() && !is_old {
            return Ok(false);
        }
        let views = self.view.is_some() && !broken(Mutation::ViewOvertaken);
        let upgraded = match reads() {
            Reading::Nothing if !views => return Ok(false),
            // Their snapshots would be of another time than this one.
            Reading::Several => self.conflicts(Conflict::Several),
            _ => self.try_upgrade(),
        };
        match &upgraded {
            Ok(()) => self.counters.own.upgrades += 1,
            Err(_) => {
                self.counters.own.upgrades_refused += 1;
                self.index_unlock(WRITER)?;
            }
        }
        upgraded.map(|()| true)
    }

    /// What kept the last upgrade from being granted.
    pub fn take_conflict(&mut self) -> Option<Conflict> {
        self.conflict.take()
    }

    fn try_upgrade(&mut self) -> Result<()> {
        let (snapshot, slot) = (self.reads.snapshot, self.index.read_slot());
        // What it would read from here on need not be durable.
        let (Some(raw), Some(slot)) = (snapshot.filter(|_| !self.settings.durable_reads), slot)
        else {
            return self.conflicts(Conflict::Unknown);
        };
        let Some(header) = decode(&raw) else { return self.conflicts(Conflict::Unknown) };
        let (salts, upto) = match &self.view {
            Some(view) => (view.salts, view.upto),
            None => (header.salts, header.mx_frame),
        };
        let unmarked = slot == index::READ;
        let viewed = self.index.open.as_ref().and_then(Index::viewed_header);
        // Its own commits in the view may have given it another size.
        let pages = viewed.as_ref().and_then(decode).map_or(header.pages, |viewed| viewed.pages);
        let now = match self.compare((salts, upto), pages, unmarked)? {
            Ok(now) => now,
            Err(conflict) => return self.conflicts(conflict),
        };
        let Some(index) = &mut self.index.open else { return Err(Error::BusySnapshot) };
        let last = header.mx_frame;
        if self.view.is_none() {
            // Where that can't be it is as in stock.
            if index.begin_view(raw, last, unmarked).is_err() {
                return self.conflicts(Conflict::Unknown);
            }
            let after = if now.salts == salts { last + 1 } else { 1 };
            self.view = Some(View::new(last, after, slot, &now));
        }
        let began = index.viewed_header();
        let first = began.as_ref().and_then(decode).map_or(last, |header| header.mx_frame) + 1;
        if let Some(view) = &mut self.view {
            view.begin(first, began, &now);
        }
        Ok(())
    }

    fn conflicts(&mut self, conflict: Conflict) -> Result<()> {
        self.conflict = Some(conflict);
        Err(Error::BusySnapshot)
    }

    /// Compares what was committed behind frame `upto` of the generation `salts` with what the
    /// connection has read, of a database of `size` pages. The header of now.
    fn compare(
        &mut self,
        (salts, upto): (Salts, u32),
        size: u32,
        unmarked: bool,
    ) -> Result<std::result::Result<IndexHeader, Conflict>> {
        let index = self.index.open.as_mut().filter(|index| !index.is_in_memory());
        let Some(index) = index else { return Ok(Err(Conflict::Unknown)) };
        let Some(now) = index.header().filter(|now| now.mx_frame > 0) else {
            return Ok(Err(Conflict::Unknown));
        };
        // While a reader has no mark nothing is copied, so `-wal` was begun anew once at most, and
        // all before is in the database. While it has one, `-wal` is not begun anew.
        let first = match now.salts == salts {
            true => upto + 1,
            false if unmarked => 1,
            false => return Ok(Err(Conflict::Unknown)),
        };
        // An empty `-wal` says nothing of it.
        let size = match size {
            0 => self.files.database.size()? / u64::from(now.page_size),
            size => size.into(),
        };
        if u64::from(now.pages) != size {
            return Ok(Err(Conflict::Size));
        }
        // SQLite has not looked for anything in the last regions yet.
        index.reach(first.min(now.mx_frame)..=now.mx_frame)?;
        for frame in first..=now.mx_frame {
            match index.page_of(frame) {
                None => return Ok(Err(Conflict::Unknown)),
                Some(page) if self.reads.pages.contains(page) && !broken(Mutation::ReadsUnseen) => {
                    return Ok(Err(Conflict::Page(page)));
                }
                Some(_) => {}
            }
        }
        Ok(Ok(now))
    }
}
