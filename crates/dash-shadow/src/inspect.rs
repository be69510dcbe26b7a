//! Looking at a database's files without touching them: what each is, who has it open, and what
//! opening it would do. Nothing is written, locked, recovered or flushed.
//!
//! What is said of a database that somebody has open is a moment's view: names may be exchanged
//! between two looks. The names are looked up again until both stand for different files.

mod look;

use crate::format::header::Marks;
use crate::format::{BlockError, CommitBlock, IntentBlock};
use crate::names::Names;
use crate::names::access::{Whose, whose};
use crate::names::exchange::is_cut_off;
pub use crate::recovery::action::Action;
pub use crate::recovery::classify::Verdict;
use crate::recovery::classify::{classify, moved_together};
use crate::recovery::examine::Found;
pub use crate::recovery::examine::{DbKind, Relation, ShadowKind};
use crate::recovery::left::{Left, left_in_coordination};
use crate::recovery::spare::is_spare;
use crate::recovery::table::{decide, row};
use crate::refusal::was_replaced;
pub use crate::refusal::{Refusal, written_by};
use crate::shared::locks;
use dash_engine::error::{Context, Operation, Result};
use dash_engine::names::with;
use dash_engine::open::open_if_there;
use dash_storage::{Directory, File, FileId, FileKind, LockKind, OpenMode, Storage};
use look::{is_of_another, is_there, open_both};
use std::ffi::OsStr;
use std::ops::Range;
use std::path::Path;

/// Everything that was seen.
#[derive(Debug, Clone)]
pub struct Report {
    /// The names.
    pub names: Names,
    /// What is named `app.db`.
    pub database: Option<Seen>,
    /// What is named `app.db-shadow`.
    pub shadow: Option<Seen>,
    /// What else lies beside it.
    pub beside: Beside,
    /// Locks that somebody holds.
    pub locks: Vec<Lock>,
    /// Whether a dash connection has it open.
    pub open: bool,
    /// Both files were copied here together: neither is where its block was written.
    pub copied_together: bool,
    /// What the two files are, as the recovery table wants it.
    pub verdict: Verdict,
    /// What opening it would do.
    pub opening: Opening,
}

/// One of the two copies.
#[derive(Debug, Clone)]
pub struct Seen {
    /// Device and inode number.
    pub id: FileId,
    /// Bytes.
    pub len: u64,
    /// Names the file has.
    pub links: u64,
    /// SQLite's own header; `None` if the file is shorter.
    pub header: Option<HeaderSeen>,
    /// The commit block.
    pub commit: std::result::Result<CommitBlock, BlockError>,
    /// The intent block.
    pub intent: std::result::Result<IntentBlock, BlockError>,
    /// Whether the bytes that the commit block lists are as committed.
    pub as_committed: bool,
}

impl Report {
    /// Whether stock SQLite can't go on with `app.db` as it is, whoever has it open: its newest
    /// commit is in the shadow, or the name fence stands in the way, or only an opening can tell
    /// what counts.
    #[must_use]
    pub fn needs_recovery(&self) -> bool {
        match row(&self.verdict).action {
            Action::Create | Action::KeepRepair | Action::KeepRebuild => {
                self.beside.fence || self.beside.renaming
            }
            Action::CreateAfresh | Action::KeepUndo | Action::UseShadow | Action::Refuse(_) => true,
        }
    }
}

impl Seen {
    /// Whether the commit block was written into this very file.
    pub fn is_bound(&self) -> bool {
        self.commit.as_ref().is_ok_and(|block| block.inode == self.id.inode)
    }
}

/// What SQLite's header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeaderSeen {
    /// Whether it is one.
    pub is_sqlite: bool,
    /// Page size in bytes.
    pub page_size: Option<u32>,
    /// Size of the database in bytes, if the header vouches for it.
    pub size: Option<u64>,
    /// File change counter.
    pub counter: u32,
    /// Set to WAL mode.
    pub is_wal: bool,
    /// Carries the mark of a copy that is being written.
    pub is_fenced: bool,
    /// Carries the mark of a copy that was current before.
    pub is_demoted: bool,
    /// Stock SQLite may not write it: other programs have the shadow open.
    pub is_protected: bool,
}

/// Names beside the database.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Beside {
    /// The name fence stands: a directory `app.db-journal`.
    pub fence: bool,
    /// A rollback journal of stock SQLite, in bytes.
    pub journal: Option<u64>,
    /// A write-ahead log of stock SQLite, in bytes.
    pub wal: Option<u64>,
    /// The coordination file `app.db-dash`.
    pub coordination: bool,
    /// A step of the three renames was left behind.
    pub renaming: bool,
    /// Why what looks like one can't be finished.
    pub odd: Option<Refusal>,
    /// Super-journals named by prepared commits, and whether they are there.
    pub super_journals: Vec<(String, bool)>,
}

/// A lock that somebody holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lock {
    /// In which file.
    pub file: LockedFile,
    /// Which place.
    pub place: LockedPlace,
    /// Its bytes.
    pub range: Range<u64>,
    /// Shared or exclusive.
    pub kind: LockKind,
    /// The process, where the kernel knows one: open-file-description locks have none.
    pub process: Option<i32>,
}

/// A file that locks are taken on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockedFile {
    /// `app.db`.
    Database,
    /// `app.db-shadow`.
    Shadow,
    /// `app.db-dash`.
    Coordination,
}

/// What a locked byte is for; see the engine's table of locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockedPlace {
    /// SQLite's PENDING byte.
    Pending,
    /// SQLite's RESERVED byte.
    Reserved,
    /// SQLite's SHARED range.
    Shared,
    /// Every dash connection.
    Life,
    /// Who opens, closes or recovers.
    Open,
    /// The write transaction.
    Writer,
}

/// What opening through dash would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opening {
    /// Join the connections that have it open.
    Join,
    /// Refuse: those who have it open have another file than what is named `app.db`.
    Replaced(String),
    /// Refuse: a dash of another format wrote this.
    OtherFormat(u32),
    /// Refuse: the file has this many names.
    HardLinks(u64),
    /// Refuse, for this reason, with this message.
    Refuse(Refusal, String),
    /// Let stock SQLite finish what it left behind, then look again.
    StockFirst,
    /// Finish the three renames, then look again.
    FinishRenames,
    /// What a row of the recovery table says, and the story it tells.
    Row(Action, &'static str),
}

/// Looks at a database and everything beside it.
pub fn inspect<S: Storage>(storage: &S, path: &Path) -> Result<Report> {
    let (folder, names) = Names::split(path)?;
    let directory = storage.open_directory(folder).during(Operation::Open, folder.display())?;
    let (db, shadow) = open_both::<S>(&directory, &names)?;
    let mut beside = look_beside::<S>(&directory, &names)?;
    let mut held = Vec::new();
    let files = [
        (LockedFile::Database, db.as_ref(), &names.db),
        (LockedFile::Shadow, shadow.as_ref(), &names.shadow),
    ];
    for (file, opened, name) in files {
        if let Some(opened) = opened {
            held.extend(locks_of(opened, file, name)?);
        }
    }
    let mut is_replaced = false;
    if let Some(coordination) = open_if_there::<S>(&directory, &names.coordination, OpenMode::Read)?
    {
        held.extend(locks_of(&coordination, LockedFile::Coordination, &names.coordination)?);
        is_replaced = is_of_another(&coordination, db.as_ref().map(File::id), &names)?;
    }
    let db = db.map(|file| Found::examine(file, names.shown())).transpose()?;
    let shadow =
        shadow.map(|file| Found::examine(file, &names.shadow.to_string_lossy())).transpose()?;
    let mut exists = |block: &CommitBlock| {
        let there = is_there(storage, folder, &block.super_journal)?;
        beside
            .super_journals
            .push((String::from_utf8_lossy(&block.super_journal).into_owned(), there));
        Ok(there)
    };
    let left = Left { fence: beside.fence, ..left_in_coordination::<S>(&directory, &names)? };
    let verdict = classify(db.as_ref(), shadow.as_ref(), left, &mut exists)?;
    let open = held.iter().any(|lock| lock.place == LockedPlace::Life);
    let copied_together = moved_together(db.as_ref(), shadow.as_ref());
    let whose = whose(shadow.as_ref(), db.as_ref(), names.shown_shadow())?;
    let action = decide(&verdict, whose, is_spare(shadow.as_ref(), verdict.shadow, left));
    let (database, shadow) = (db.map(seen).transpose()?, shadow.map(seen).transpose()?);
    let decided = (&verdict, action, whose);
    let opening = match opening(&names, [&database, &shadow], &beside, open, decided) {
        Opening::Join if is_replaced => Opening::Replaced(was_replaced(names.shown()).to_string()),
        opening => opening,
    };
    Ok(Report {
        names,
        database,
        shadow,
        beside,
        locks: held,
        open,
        copied_together,
        verdict,
        opening,
    })
}

fn look_beside<S: Storage>(directory: &S::Directory, names: &Names) -> Result<Beside> {
    let look =
        |name: &OsStr| directory.metadata(name).during(Operation::Stat, name.to_string_lossy());
    let (journal, cut_off) = (look(&names.fence)?, is_cut_off::<S>(directory, names)?);
    let wal = with(&names.db, "-wal");
    Ok(Beside {
        fence: journal.is_some_and(|found| found.kind == FileKind::Directory),
        journal: journal.filter(|found| found.kind == FileKind::Regular).map(|found| found.len),
        wal: look(&wal)?.filter(|found| found.kind == FileKind::Regular).map(|found| found.len),
        coordination: look(&names.coordination)?.is_some(),
        renaming: cut_off == Ok(true),
        odd: cut_off.err(),
        super_journals: Vec::new(),
    })
}

fn locks_of<F: File>(opened: &F, file: LockedFile, name: &OsStr) -> Result<Vec<Lock>> {
    let places: &[_] = match file {
        LockedFile::Coordination => {
            &[(LockedPlace::Open, locks::OPEN), (LockedPlace::Writer, locks::WRITER)]
        }
        LockedFile::Database | LockedFile::Shadow => &[
            (LockedPlace::Pending, locks::PENDING),
            (LockedPlace::Reserved, locks::RESERVED),
            (LockedPlace::Shared, locks::SHARED),
            (LockedPlace::Life, locks::LIFE),
        ],
    };
    let ask = |range, kind| {
        opened.lock_conflict(range, kind).during(Operation::Lock, name.to_string_lossy())
    };
    let mut held = Vec::new();
    for (place, range) in places {
        // An exclusive lock stands in the way of a shared one, any lock in that of an exclusive
        // one.
        let (kind, process) = match ask(range.clone(), LockKind::Shared)? {
            Some(process) => (LockKind::Exclusive, process),
            None => match ask(range.clone(), LockKind::Exclusive)? {
                Some(process) => (LockKind::Shared, process),
                None => continue,
            },
        };
        let (place, range) = (*place, range.clone());
        let process = (process > 0).then_some(process);
        held.push(Lock { file, place, range, kind, process });
    }
    Ok(held)
}

fn seen<F: File>(found: Found<F>) -> Result<Seen> {
    let metadata = found.file.metadata().during(Operation::Stat, "a copy")?;
    Ok(Seen {
        id: found.id(),
        len: metadata.len,
        links: metadata.links,
        header: found.header.map(|header| HeaderSeen {
            is_sqlite: header.is_sqlite(),
            page_size: header.page_size(),
            size: header.size(),
            counter: header.counter(),
            is_wal: header.is_wal(),
            is_fenced: header.is_fenced(),
            is_demoted: header.is_demoted(),
            is_protected: header.is_protected(),
        }),
        as_committed: found.matches,
        commit: found.tail.commit,
        intent: found.tail.intent,
    })
}

fn opening(
    names: &Names,
    both: [&Option<Seen>; 2],
    beside: &Beside,
    open: bool,
    (verdict, action, whose): (&Verdict, Action, Whose),
) -> Opening {
    let other = both.into_iter().flatten().find_map(|seen| match (&seen.commit, &seen.intent) {
        (Err(BlockError::OtherFormat(version)), _) | (_, Err(BlockError::OtherFormat(version))) => {
            Some(*version)
        }
        _ => None,
    });
    // A cut-off exchange may have given it a second one.
    let links =
        both[0].as_ref().map_or(0, |seen| seen.links.saturating_sub(u64::from(beside.renaming)));
    if links > 1 {
        return Opening::HardLinks(links);
    }
    if open {
        return Opening::Join;
    }
    if beside.renaming {
        return Opening::FinishRenames;
    }
    if beside.journal.is_some_and(|len| len > 0) || beside.wal.is_some_and(|len| len > 0) {
        return Opening::StockFirst;
    }
    if let Some(version) = other {
        return Opening::OtherFormat(version);
    }
    if let Some(refusal) = beside.odd {
        return Opening::Refuse(refusal, refusal.message(names));
    }
    match action {
        Action::Refuse(refusal) => Opening::Refuse(refusal, refusal.message(names)),
        Action::KeepRebuild if whose == Whose::Former => {
            Opening::Row(action, "the shadow has other rights than the database, and is made anew")
        }
        _ if matches!(whose, Whose::Strange(_)) => {
            Opening::Row(action, "a shadow of somebody else is not read")
        }
        _ => Opening::Row(action, row(verdict).story),
    }
}
