//! What the two files are, and how their commits are related, from what is seen of them. What to do
//! about it is held as data in [`crate::recovery::table`].

use crate::file::tail::has_buried_tail;
use crate::format::header::{LEAP, Marks};
use crate::format::{BlockError, CommitBlock, State, first_page};
use crate::mutation::{Mutation, broken};
use crate::recovery::examine::{DbKind, Found, Relation, ShadowKind};
use crate::recovery::left::Left;
use crate::recovery::older::Older;
use dash_engine::error::Result;
use dash_storage::File;

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

/// Whether both files carry blocks of one pair though not both inode numbers are right: they were
/// copied or restored together. An inode number may be right by chance; then the commits tell.
pub fn moved_together<F: File>(db: Option<&Found<F>>, shadow: Option<&Found<F>>) -> bool {
    let (Some(db), Some(shadow)) = (db, shadow) else {
        return false;
    };
    let (Some(a), Some(b)) = (Home::of(db), Home::of(shadow)) else {
        return false;
    };
    let kin = match ([a.bound, b.bound], &db.tail.commit, &shadow.tail.commit) {
        ([true, true], ..) => false,
        ([false, false], ..) => true,
        (_, Ok(a), Ok(b)) => {
            !broken(Mutation::InodesBelieved) && relate(Some(db), Some(a), Some(b)).is_kin()
        }
        // One that was being written may have no more than its intent.
        _ => !broken(Mutation::InodesBelieved),
    };
    let slots_differ = a.slot.is_none() || b.slot.is_none() || a.slot != b.slot;
    a.pair == b.pair && slots_differ && kin
}

/// Whether a file under the shadow's name is the second copy of `app.db` by what it says: of the
/// same pair, and written into this file, or copied together with `app.db`. Its content is changed
/// only then (SHADOW-28).
pub fn belong_together<F: File>(db: &Found<F>, shadow: &Found<F>) -> bool {
    let (Some(of_db), Some(of_shadow)) = (Home::of(db), Home::of(shadow)) else {
        return false;
    };
    let is_there = of_shadow.bound || moved_together(Some(db), Some(shadow));
    of_db.pair == of_shadow.pair && is_there
}

/// The same, where both were written into these very files. Their rights are made alike only then.
pub fn are_a_pair<F: File>(db: &Found<F>, shadow: &Found<F>) -> bool {
    let homes = Home::of(db).zip(Home::of(shadow));
    homes.is_some_and(|(db, shadow)| db.bound && shadow.bound && db.pair == shadow.pair)
}

/// Whether `app.db` tells nothing of the pair that the shadow is of: it is empty, or torn, or
/// somebody else made what it holds. Then the shadow need not have the inode number that it had.
fn tells_of_no_pair<F: File>(db: Option<&Found<F>>, shadow: Option<&Found<F>>) -> bool {
    let (Some(db), Some(shadow)) = (db, shadow) else {
        return false;
    };
    if db.tail.commit.is_ok() || db.tail.intent.is_ok() || broken(Mutation::InodesBelieved) {
        return false;
    }
    let pair = |found: &Found<F>| Home::of(found).map(|home| home.pair);
    pair(db).is_none_or(|of| Some(of) != pair(shadow))
}

/// Where the blocks of a file were written.
struct Home {
    pair: u64,
    /// If the commit block tells.
    slot: Option<u8>,
    /// Into this very file.
    bound: bool,
}

impl Home {
    fn of<F: File>(found: &Found<F>) -> Option<Self> {
        let bound = |inode: u64| inode == found.id().inode;
        let of_block = |block: &CommitBlock| Self {
            pair: block.pair,
            slot: Some(block.slot),
            bound: bound(block.inode),
        };
        match (&found.tail.commit, &found.tail.intent) {
            (Ok(block), _) => Some(of_block(block)),
            (Err(_), Ok(intent)) => {
                Some(Self { pair: intent.pair, slot: None, bound: bound(intent.inode) })
            }
            // Whoever wrote over the tail carried the block in page 1 along.
            (Err(_), Err(_)) => {
                first_page::extract(&found.tail.sector).ok().map(|block| of_block(&block))
            }
        }
    }
}

impl Relation {
    /// Whether one of the two commits was made on the other.
    pub fn is_kin(self) -> bool {
        matches!(self, Self::Child | Self::Parent)
    }
}

/// Classifies both files. `exists` tells whether a super-journal does.
pub fn classify<F: File>(
    db: Option<&Found<F>>,
    shadow: Option<&Found<F>>,
    left: Left,
    exists: &mut dyn FnMut(&CommitBlock) -> Result<bool>,
) -> Result<Verdict> {
    let moved = moved_together(db, shadow);
    let shadow_moved = moved || tells_of_no_pair(db, shadow);
    let [db_over, shadow_over] = [(db, moved), (shadow, shadow_moved)]
        .map(|(found, moved)| found.and_then(|found| found.written_over(moved)));
    let shadow_block = shadow.and_then(|found| found.block(shadow_moved)).or(shadow_over.as_ref());
    // In page 1 there may be an older one, of another pair, which everybody carries along.
    let of_pair = |over: &&CommitBlock| {
        shadow_block.is_none_or(|block| block.pair == over.pair)
            || broken(Mutation::StaleBlockCounts)
    };
    let db_over = db_over.as_ref().filter(of_pair);
    let db_block = db.and_then(|found| found.block(moved)).or(db_over);
    let same_pair = match (db_block, shadow_block) {
        (Some(a), Some(b)) => a.pair == b.pair,
        _ => true,
    };
    let shadow_block = shadow_block.filter(|_| same_pair);
    let relation = relate(db, db_block, shadow_block);
    let shadow_pair = shadow_block.map(|block| block.pair);
    let shadow_kind = match shadow {
        None if left.fence => ShadowKind::Lost,
        None => ShadowKind::Missing,
        Some(found) => shadow_kind(found, shadow_block, shadow_moved, left.failed, exists)?,
    };
    let shadow_kind = match (shadow, shadow_block, db_block) {
        (Some(found), Some(block), Some(newer))
            if relation == Relation::Parent && written_behind(found, block, newer.counter) =>
        {
            ShadowKind::Modified
        }
        _ => shadow_kind,
    };
    let db_kind = match db {
        None => DbKind::Missing,
        Some(found) => match db_kind(found, db_block, moved, left.fence, shadow_pair)? {
            DbKind::Whole if relation != Relation::Parent && pending(db_block, exists)? => {
                DbKind::Pending
            }
            kind => kind,
        },
    };
    let older = Older { db, shadow, blocks: [db_block, shadow_block], left };
    if older.is_put_there(db_kind, relation) {
        return Ok(Verdict { db: DbKind::Older, shadow: shadow_kind, relation });
    }
    let overtaken = db_kind == DbKind::Modified || relation == Relation::Ahead;
    if db_kind == DbKind::Whole && is_written_without_trace(db, db_block, shadow, left) {
        let (shadow, relation) = (ShadowKind::Modified, Relation::Parent);
        return Ok(Verdict { db: db_kind, shadow, relation });
    }
    // On top of the commit before, whose content it has.
    let no_change = (db_kind, relation) == (DbKind::Modified, Relation::Child)
        && shadow_kind == ShadowKind::Whole
        && shadow_block.is_some_and(CommitBlock::is_unchanged);
    if no_change {
        return Ok(Verdict { db: db_kind, shadow: ShadowKind::Torn, relation });
    }
    let shadow_kind = match overtaken || left.only_read && db_kind == DbKind::Whole {
        // Who wrote app.db did so on the last commit that anybody was shown (SHADOW-22).
        true if is_unpublished(shadow_block, shadow_kind, left) => ShadowKind::Torn,
        _ => shadow_kind,
    };
    Ok(Verdict { db: db_kind, shadow: shadow_kind, relation })
}

/// Whether a commit was never published. One of several databases is decided as soon as their
/// super-journal is gone.
fn is_unpublished(shadow: Option<&CommitBlock>, kind: ShadowKind, left: Left) -> bool {
    shadow.is_some_and(|block| {
        (block.state == State::Whole || kind == ShadowKind::Pending)
            && !broken(Mutation::UnpublishedTaken)
            && left.unpublished == Some((block.pair, block.sequence))
    })
}

fn pending(
    block: Option<&CommitBlock>,
    exists: &mut dyn FnMut(&CommitBlock) -> Result<bool>,
) -> Result<bool> {
    match block.filter(|block| block.state == State::Prepared) {
        Some(block) => exists(block),
        None => Ok(false),
    }
}

fn shadow_kind<F: File>(
    found: &Found<F>,
    block: Option<&CommitBlock>,
    moved: bool,
    failed: u64,
    exists: &mut dyn FnMut(&CommitBlock) -> Result<bool>,
) -> Result<ShadowKind> {
    Ok(match block {
        None if found.fenced() && has_intent(found, moved) => ShadowKind::Torn,
        None => ShadowKind::Unrelated,
        // Before what its tail says: stock SQLite may have left that alone.
        Some(_) if found.written_over(moved).is_some() => ShadowKind::Modified,
        Some(block) if matches!(block.state, State::Superseded | State::Settled) => {
            superseded(found, block)
        }
        Some(_) if !found.matches || found.fenced() => ShadowKind::Torn,
        Some(block) if block.id == failed => ShadowKind::Torn,
        Some(_) if found.demoted() => ShadowKind::Superseded,
        block if pending(block, exists)? => ShadowKind::Pending,
        Some(_) => ShadowKind::Whole,
    })
}

/// Whether there is an intent that was written into this file, or into the one that it is a copy
/// of.
fn has_intent<F: File>(found: &Found<F>, moved: bool) -> bool {
    found.tail.intent.as_ref().is_ok_and(|intent| moved || intent.inode == found.id().inode)
}

/// `Whole` stands for `Pending`, too.
fn db_kind<F: File>(
    found: &Found<F>,
    block: Option<&CommitBlock>,
    moved: bool,
    fence: bool,
    shadow_pair: Option<u64>,
) -> Result<DbKind> {
    if found.tail.len == 0 {
        return Ok(DbKind::Empty);
    }
    if found.fenced() {
        return Ok(DbKind::Torn);
    }
    let blank = found.header.is_none_or(|header| header.0.iter().all(|&byte| byte == 0));
    let torn_or_modified = if fence { DbKind::Torn } else { DbKind::Modified };
    let damaged = Some(&BlockError::Damaged);
    let intent = has_intent(found, moved)
        || found.tail.commit.as_ref().err() == damaged
        || found.tail.intent.as_ref().err() == damaged;
    Ok(match block {
        _ if blank && fence => DbKind::Torn,
        _ if !found.header.is_some_and(|header| header.is_sqlite()) => DbKind::NotSqlite,
        _ if !fence && found.is_cut() => DbKind::Cut,
        // Also beside a name fence: it is taken away at a close, and a power loss may bring it
        // back.
        Some(_) if found.written_over(moved).is_some() => DbKind::Modified,
        None if fence
            && (intent || has_buried_tail(&found.file, found.tail.len, shadow_pair, "app.db")?) =>
        {
            DbKind::Torn
        }
        // Beside a name fence, too: no commit of dash's leaves a file without a tail so.
        None if found.is_cut() => DbKind::Cut,
        None if found.is_torn_copy() => DbKind::TornCopy,
        None => DbKind::Plain,
        Some(block) if matches!(block.state, State::Superseded | State::Settled) => {
            match found.header.is_some_and(|header| header.counter() == block.counter) {
                true => DbKind::Superseded,
                false => torn_or_modified,
            }
        }
        Some(_) if !found.matches => torn_or_modified,
        Some(_) => DbKind::Whole,
    })
}

/// A shadow whose block says that it is an older state: is it still?
fn superseded<F: File>(found: &Found<F>, block: &CommitBlock) -> ShadowKind {
    let Some(header) = found.header.filter(|header| !header.is_fenced()) else {
        return ShadowKind::Torn;
    };
    let in_flight = block
        .vouched
        .is_some_and(|vouched| [1, LEAP].contains(&header.counter().wrapping_sub(vouched.counter)));
    match block.state {
        _ if header.counter() == block.counter => ShadowKind::Superseded,
        // Being restored, or being written by the next commit: its intent says where.
        State::Settled => ShadowKind::Torn,
        _ if in_flight => ShadowKind::Torn,
        // A stock connection that had it open since it was app.db has written here.
        _ => ShadowKind::Unrelated,
    }
}

/// Whether a stock connection has written to a former copy, on which the commit that counts `newer`
/// was made. Where page 1 has no room for a block that tells ([`Found::written_over`]) the counter
/// does: dash's next commit counts on from `newer`, by [`LEAP`] if it is the first of its session,
/// as it is where the block says that the file was held.
fn written_behind<F: File>(found: &Found<F>, block: &CommitBlock, newer: u32) -> bool {
    // A settled one is being restored.
    let Some(header) = found.unmarked().filter(|_| block.state != State::Settled) else {
        return false;
    };
    let ahead_of = |counter: u32| header.counter().wrapping_sub(counter);
    let held = block.vouched.is_some_and(|vouched| vouched.held);
    let before_newer = ahead_of(newer) >= 1 << 31;
    (1..LEAP).contains(&ahead_of(block.counter))
        && (held || before_newer)
        && !broken(Mutation::WrittenBehindIgnored)
}

/// [`written_without_trace`], where what is seen can be nothing else: what dash itself was writing
/// when the power went may look like it.
fn is_written_without_trace<F: File>(
    db: Option<&Found<F>>,
    block: Option<&CommitBlock>,
    shadow: Option<&Found<F>>,
    left: Left,
) -> bool {
    // Killed after a commit, or closed while somebody had the shadow open.
    (left.committed || db.is_some_and(Found::protected))
        && !broken(Mutation::WrittenBehindIgnored)
        && block
            .zip(shadow)
            .is_some_and(|(block, found)| written_without_trace(found, block.counter))
}

/// The same, where it has left no block: it grew over the tail of a file that dash never wrote
/// before, or made it anew (VACUUM). The commit that was made on such a file counts one on, or
/// leaps, being the first of its session: what counts in between is somebody else's, unless a power
/// loss took what dash had written there.
fn written_without_trace<F: File>(found: &Found<F>, newer: u32) -> bool {
    let behind = found.unmarked().map(|header| newer.wrapping_sub(header.counter()));
    behind.is_some_and(|behind| (2..LEAP).contains(&behind))
        && !found.has_block()
        && first_page::extract(&found.tail.sector).is_err()
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
        None if empty && shadow.parent == 0 => Relation::Child,
        None if db.is_some_and(|found| could_not_know(found, shadow)) => Relation::Ahead,
        _ => Relation::None,
    }
}

/// Whether a database that is not ours was written by somebody who had not seen a commit of the
/// shadow (SHADOW-19). Stock SQLite counts each change from what it finds, and a commit that no
/// name fence guards is far ahead of what it was made on.
fn could_not_know<F: File>(db: &Found<F>, shadow: &CommitBlock) -> bool {
    const BEHIND: u32 = 1 << 31;
    let distance = db.header.map(|header| header.counter().wrapping_sub(shadow.counter));
    distance.is_some_and(|distance| distance >= BEHIND) && !broken(Mutation::CounterIgnored)
}
