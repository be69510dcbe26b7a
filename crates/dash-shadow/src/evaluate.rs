//! What each of the two files is found to be, before anything is decided: pure looking.

use dash_storage::{File, FileId};

use crate::error::{Context, Operation, Result};
use crate::format::{BLOCK, CommitBlock, SECTOR_BYTES, State, Unit};
use crate::header::Header;
use crate::mutation::{Mutation, broken};
use crate::page_list::{read_units, units_match};
use crate::tail::{Tail, has_buried_tail, read_some};

/// What the file named `app.db` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DbKind {
    /// There is none.
    Missing,
    /// It has no bytes: an empty database.
    Empty,
    /// It does not begin with SQLite's header.
    NotSqlite,
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
}

/// What the file named `app.db-shadow` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ShadowKind {
    /// There is none.
    Missing,
    /// It has no block of ours that was written into it.
    Alien,
    /// It was being written.
    Torn,
    /// The state after a commit that nothing says was superseded.
    Whole,
    /// The same, and its super-journal still exists.
    Pending,
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
    /// Neither, or not known.
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
    /// Whether the listed units are as committed; of a long list, after [`Self::glance`], whether the
    /// header is.
    pub matches: bool,
    /// Whether the checksums of the listed units are still to be looked at.
    unverified: bool,
    /// The listed units, if they are.
    pub units: Vec<Unit>,
}

impl<F: File> Found<F> {
    /// Looks at a file.
    pub fn look(file: F, name: &str) -> Result<Self> {
        let len = file.metadata().during(Operation::Stat, name)?.len;
        Self::look_at(file, len, name)
    }

    /// The same, at a file that is known to be `len` bytes long.
    pub fn look_at(file: F, len: u64, name: &str) -> Result<Self> {
        Self::glance(file, len, u64::MAX, name)
    }

    /// The same, but leaves the checksums of a list of more than `most` bytes to [`Self::verify`].
    pub fn glance(file: F, len: u64, most: u64, name: &str) -> Result<Self> {
        // Page 1, as most databases have it: it holds the header, a block, and is in every page list.
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

    /// Looks at the checksums that a glance left out.
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

    fn fenced(&self) -> bool {
        self.header.is_some_and(|header| header.is_fenced())
    }

    fn demoted(&self) -> bool {
        self.header.is_some_and(|header| header.is_demoted())
    }
}

/// Does what a glance at `app.db` left to do, if the name fence stands. Only beside it can dash have been
/// writing the file that may have this name (SHADOW-4); whether somebody else wrote it, its header tells. So
/// a program that only reads what was loaded in one large transaction does not read all of it
/// whenever it opens the database.
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

/// Both files, classified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// What `app.db` is.
    pub db: DbKind,
    /// What `app.db-shadow` is.
    pub shadow: ShadowKind,
    /// How they are related.
    pub relation: Relation,
}

/// Whether both files carry blocks of one pair written under other inode numbers: the folder was
/// copied or restored as a whole.
pub fn moved_together<F: File>(db: Option<&Found<F>>, shadow: Option<&Found<F>>) -> bool {
    let (Some(db), Some(shadow)) = (db, shadow) else {
        return false;
    };
    match (&db.tail.commit, &shadow.tail.commit) {
        (Ok(a), Ok(b)) => {
            a.pair == b.pair
                && a.inode != db.id().inode
                && b.inode != shadow.id().inode
                && a.slot != b.slot
        }
        _ => false,
    }
}

/// Classifies both files. `fence`: the name fence stands, so `app.db` may have been in the middle
/// of a write of ours; without it a difference is somebody else's write (SHADOW-4). `failed`: id of a
/// commit that was reported as failed (SHADOW-13). `exists` tells whether a super-journal does.
pub fn classify<F: File>(
    db: Option<&Found<F>>,
    shadow: Option<&Found<F>>,
    fence: bool,
    failed: u64,
    exists: &mut dyn FnMut(&CommitBlock) -> Result<bool>,
) -> Result<Verdict> {
    let moved = moved_together(db, shadow);
    let db_block = db.and_then(|found| found.block(moved));
    let shadow_block = shadow.and_then(|found| found.block(moved));
    let same_pair = match (db_block, shadow_block) {
        (Some(a), Some(b)) => a.pair == b.pair,
        _ => true,
    };
    let relation = relate(db, db_block, shadow_block.filter(|_| same_pair));
    let shadow_kind = match shadow {
        None => ShadowKind::Missing,
        Some(found) => match shadow_block.filter(|_| same_pair) {
            None if found.fenced() && found.tail.bound_intent(found.id()).is_some() => {
                ShadowKind::Torn
            }
            None => ShadowKind::Alien,
            Some(block) if matches!(block.state, State::Superseded | State::Settled) => {
                superseded(found, block)
            }
            Some(_) if !found.matches || found.fenced() => ShadowKind::Torn,
            Some(block) if block.id == failed => ShadowKind::Torn,
            Some(_) if found.demoted() => ShadowKind::Superseded,
            Some(block) if block.state == State::Prepared && exists(block)? => ShadowKind::Pending,
            Some(_) => ShadowKind::Whole,
        },
    };
    let db_kind = match db {
        None => DbKind::Missing,
        Some(found) if found.tail.len == 0 => DbKind::Empty,
        Some(found) if found.fenced() => DbKind::Torn,
        Some(found) => {
            let blank = found.header.is_none_or(|header| header.0.iter().all(|&byte| byte == 0));
            let damaged = Err(crate::format::BlockError::Damaged);
            let intent = found.tail.bound_intent(found.id()).is_some()
                || found.tail.commit.as_ref().map(drop).map_err(|error| *error) == damaged
                || found.tail.intent.as_ref().map(drop).map_err(|error| *error) == damaged;
            match db_block {
                _ if blank && fence => DbKind::Torn,
                _ if !found.header.is_some_and(|header| header.is_sqlite()) => DbKind::NotSqlite,
                None if fence
                    && (intent || has_buried_tail(&found.file, found.tail.len, "app.db")?) =>
                {
                    DbKind::Torn
                }
                None => DbKind::Plain,
                Some(block) if matches!(block.state, State::Superseded | State::Settled) => {
                    let same = found.header.is_some_and(|header| header.counter() == block.counter);
                    match (same, fence) {
                        (true, _) => DbKind::Superseded,
                        (false, true) => DbKind::Torn,
                        (false, false) => DbKind::Modified,
                    }
                }
                Some(_) if !found.matches => {
                    if fence {
                        DbKind::Torn
                    } else {
                        DbKind::Modified
                    }
                }
                Some(block)
                    if block.state == State::Prepared
                        && relation != Relation::Parent
                        && exists(block)? =>
                {
                    DbKind::Pending
                }
                Some(_) => DbKind::Whole,
            }
        }
    };
    Ok(Verdict { db: db_kind, shadow: shadow_kind, relation })
}

/// A shadow whose block says that it is an older state: is it still?
fn superseded<F: File>(found: &Found<F>, block: &CommitBlock) -> ShadowKind {
    let Some(header) = found.header.filter(|header| !header.is_fenced()) else {
        return ShadowKind::Torn;
    };
    let in_flight = block.vouched.map(|vouched| vouched.counter.wrapping_add(1));
    match block.state {
        _ if header.counter() == block.counter => ShadowKind::Superseded,
        // Being restored, or being written by the next commit: its intent says where.
        State::Settled => ShadowKind::Torn,
        _ if Some(header.counter()) == in_flight => ShadowKind::Torn,
        // A stock connection that had it open since it was app.db has written here.
        _ => ShadowKind::Alien,
    }
}

fn relate<F: File>(
    db: Option<&Found<F>>,
    db_block: Option<&CommitBlock>,
    shadow: Option<&CommitBlock>,
) -> Relation {
    let empty = db.is_some_and(|found| found.tail.len == 0);
    let Some(shadow) = shadow else {
        // Beside an empty database a shadow without a block is its first commit, cut off.
        return if empty { Relation::Child } else { Relation::None };
    };
    if let Some(vouched) = shadow.vouched {
        let same = db_block.is_some_and(|block| block.id == vouched.id);
        return if same { Relation::Parent } else { Relation::None };
    }
    if let Some(vouched) = db_block.and_then(|block| block.vouched) {
        return if vouched.id == shadow.id { Relation::Child } else { Relation::None };
    }
    match db_block {
        Some(block) if shadow.parent == block.id && shadow.sequence == block.sequence + 1 => {
            Relation::Child
        }
        Some(block) if block.parent == shadow.id && block.sequence == shadow.sequence + 1 => {
            Relation::Parent
        }
        None if db.is_some_and(|found| found.tail.len == 0) && shadow.parent == 0 => {
            Relation::Child
        }
        _ => Relation::None,
    }
}
