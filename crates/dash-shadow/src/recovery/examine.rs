//! What is seen of each of the two files, before anything is decided: pure looking. What it makes
//! of them is in [`crate::recovery::classify`].

use crate::file::page_list::{read_units, units_match};
use crate::file::tail::Tail;
use crate::format::header::{Header, Marks};
use crate::format::{BLOCK, CommitBlock, SECTOR_BYTES, State, Unit, first_page};
use crate::mutation::{Mutation, broken};
use dash_engine::error::{Context, Operation, Result};
use dash_engine::io::read_some;
use dash_storage::{File, FileId};

/// What the file named `app.db` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DbKind {
    /// There is none.
    Missing,
    /// It has no bytes: an empty database.
    Empty,
    /// It does not begin with SQLite's header.
    NotSqlite,
    /// It is shorter than its header says: somebody has cut it.
    Cut,
    /// A copy that was made by hand while dash wrote the file that it was made of: pages of two
    /// states.
    TornCopy,
    /// An SQLite database with no commit of ours in this file.
    Plain,
    /// Our commit is there, but somebody else has written since.
    Modified,
    /// It was being written when the power went: pages of two states.
    Torn,
    /// The state after a commit.
    Whole,
    /// The state after a commit whose super-journal still exists.
    Pending,
    /// An older state, marked so: the names on disk are behind, or were changed by hand.
    Superseded,
    /// An older state than others were shown, in its place after a crash: a backup that was put
    /// there.
    Older,
}

/// What the file named `app.db-shadow` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ShadowKind {
    /// There is none.
    Missing,
    /// There is none, and the database was not closed cleanly: it may have held the newest commit.
    Lost,
    /// It has no block of ours that was written into it.
    Unrelated,
    /// It was being written.
    Torn,
    /// The state after a commit that nothing says was superseded.
    Whole,
    /// The same, and its super-journal still exists.
    Pending,
    /// The state after a commit, and what somebody else has written on top of it since: so it was
    /// published, and had the database's name when that was written.
    Modified,
    /// An older state, marked so.
    Superseded,
}

/// How the commits in the two files are related, by their random ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Relation {
    /// The shadow's commit was made on the database's.
    Child,
    /// The shadow's commit is the one the database's was made on, or it vouches for the database's.
    Parent,
    /// The database is not ours, and by SQLite's change counter it was not made on the shadow's
    /// commit.
    Ahead,
    /// None of these, or not known.
    None,
}

/// One file, looked at.
pub struct Found<F> {
    /// The open file.
    pub file: F,
    /// Its SQLite header.
    pub header: Option<Header>,
    /// Its tail.
    pub tail: Tail,
    /// Whether the listed units are as committed; of a long list, after [`Self::examine_quickly`],
    /// whether the header is.
    pub matches: bool,
    /// Whether the checksums of the listed units are still to be looked at.
    unverified: bool,
    /// The listed units, if they are.
    pub units: Vec<Unit>,
}

impl<F: File> Found<F> {
    /// Looks at a file.
    pub fn examine(file: F, name: &str) -> Result<Self> {
        let len = file.metadata().during(Operation::Stat, name)?.len;
        Self::examine_len(file, len, name)
    }

    /// The same, at a file that is known to be `len` bytes long.
    pub fn examine_len(file: F, len: u64, name: &str) -> Result<Self> {
        Self::examine_quickly(file, len, u64::MAX, name)
    }

    /// The same, but leaves the checksums of a list of more than `most` bytes to [`Self::verify`].
    pub fn examine_quickly(file: F, len: u64, most: u64, name: &str) -> Result<Self> {
        // Page 1, as most databases have it: it holds the header, a block, and is in every page
        // list.
        let mut start = [0; BLOCK];
        let read = read_some(&file, &mut start, 0).during(Operation::Read, name)?;
        let header = Header::of(&start[..read]);
        let mut sector = [0; SECTOR_BYTES];
        sector.copy_from_slice(&start[..SECTOR_BYTES]);
        let tail = Tail::beside(&file, len, sector, name)?;
        let mut found =
            Self { file, header, tail, matches: false, unverified: false, units: Vec::new() };
        if let Ok(block) = &found.tail.commit
            && matches!(block.state, State::Whole | State::Prepared)
            && let Some(units) = read_units(&found.file, len, block, name)?
        {
            found.matches = header
                .is_some_and(|header| header.is_fenced() || header.counter() == block.counter);
            found.unverified =
                found.matches && units.iter().map(|unit| unit.len).sum::<u64>() > most;
            if found.matches && !found.unverified {
                found.matches = units_match(&found.file, &units, &start[..read], name)?;
            }
            found.units = units;
        }
        Ok(found)
    }

    /// Looks at the checksums that a quick look left out.
    pub fn verify(&mut self, name: &str) -> Result<()> {
        if std::mem::take(&mut self.unverified) {
            self.matches = units_match(&self.file, &self.units, &[], name)?;
        }
        Ok(())
    }

    /// Device and inode number.
    pub fn id(&self) -> FileId {
        self.file.id()
    }

    /// The commit block, if it was written into this file. `moved`: both files were copied
    /// together, so that neither inode number can be right.
    pub fn block(&self, moved: bool) -> Option<&CommitBlock> {
        if moved { self.tail.commit.as_ref().ok() } else { self.tail.bound(self.id()) }
    }

    /// Whether there is a block of ours, of whatever file, whole or not.
    pub(crate) fn has_block(&self) -> bool {
        let absent = crate::format::BlockError::Absent;
        self.tail.commit.as_ref().err() != Some(&absent)
            || self.tail.intent.as_ref().err() != Some(&absent)
    }

    /// The commit of ours that somebody else has written over (SHADOW-18). SQLite's header and the
    /// block in page 1 are one sector: dash leaves them alike there, or a mark in the header. Stock
    /// SQLite counts its change in the header and carries the block along, also where it has
    /// overwritten the tail. `moved`: both files were copied together.
    pub fn written_over(&self, moved: bool) -> Option<CommitBlock> {
        let header = self
            .header
            .filter(|header| header.is_sqlite() && !header.is_fenced() && !header.is_demoted())?;
        let block = first_page::extract(&self.tail.sector).ok()?;
        let counted = self.tail.commit.as_ref().ok();
        let ours = (moved || block.inode == self.id().inode)
            && matches!(block.state, State::Whole | State::Prepared)
            && counted.is_none_or(|counted| counted.id == block.id);
        // SQLite counts in two places, on from what it finds: damage seldom looks like that.
        let counted_on = (1..1 << 31).contains(&header.counter().wrapping_sub(block.counter));
        let other =
            counted_on && header.size().is_some() && !broken(Mutation::ModifiedTakenForTorn);
        (ours && other).then_some(block)
    }

    /// Whether this is a copy of a file of ours in which pages of the last commit are not as they
    /// were committed, though nobody has written since.
    pub(crate) fn is_torn_copy(&self) -> bool {
        let Ok(block) = &self.tail.commit else {
            return false;
        };
        // Of a list that can't be read nothing is claimed.
        let listed = block.inode != self.id().inode && !self.units.is_empty();
        let of_block = self.header.is_some_and(|header| header.counter() == block.counter);
        listed && of_block && !self.matches
    }

    /// Whether SQLite's header says that there is more.
    pub(crate) fn is_cut(&self) -> bool {
        let size = self.header.filter(Header::is_sqlite).and_then(|header| header.size());
        size.is_some_and(|size| size > self.tail.len)
    }

    /// SQLite's header, if nothing in it is dash's.
    pub(crate) fn unmarked(&self) -> Option<Header> {
        let ours = |header: &Header| header.is_fenced() || header.is_demoted();
        self.header.filter(|header| header.size().is_some() && !ours(header))
    }

    pub(crate) fn fenced(&self) -> bool {
        self.header.is_some_and(|header| header.is_fenced())
    }

    pub(crate) fn demoted(&self) -> bool {
        self.header.is_some_and(|header| header.is_demoted())
    }

    pub(crate) fn protected(&self) -> bool {
        self.header.is_some_and(|header| header.is_protected())
    }
}

/// Does what a quick look at `app.db` left to do, if the name fence stands. Only beside it can dash
/// have been writing the file that may have this name (SHADOW-4); whether somebody else wrote it,
/// its header tells. So a program that only reads what was loaded in one large transaction does not
/// read all of it whenever it opens the database.
pub fn verify_beside_fence<F: File>(
    db: Option<&mut Found<F>>,
    fence: bool,
    name: &str,
) -> Result<()> {
    match db.filter(|_| fence && !broken(Mutation::LongListBelieved)) {
        Some(db) => db.verify(name),
        None => Ok(()),
    }
}

/// Whether `app.db` carries what looks like the mark of a demoted or protected copy and is no mark
/// of ours: a file that dash marked has a block (its first commit puts one there before), if only
/// in page 1, which SQLite's backups copy, or stands beside one that has. SQLite writes no file
/// with that write version.
pub fn written_for_others<F: File>(db: Option<&Found<F>>, shadow: Option<&Found<F>>) -> bool {
    let of_dash =
        |found: &Found<F>| found.has_block() || first_page::extract(&found.tail.sector).is_ok();
    db.is_some_and(|db| db.demoted() || db.protected())
        && ![db, shadow].into_iter().flatten().any(of_dash)
}
