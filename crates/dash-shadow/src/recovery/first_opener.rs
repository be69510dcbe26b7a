//! The first opener's work: decide by the recovery table, and fill the coordination file.

use crate::file::page_list::global_page_list;
use crate::file::tail::Tail;
use crate::format::CommitBlock;
use crate::format::header::{FENCE_OFFSET, Header, Marks};
use crate::mutation::{Mutation, broken};
use crate::names::access::{Whose, whose};
use crate::names::{Names, exchange, super_journal};
use crate::options::OpenOptions;
use crate::recovery::action::Action;
use crate::recovery::classify::{Verdict, belong_together, classify, moved_together};
use crate::recovery::examine::{
    DbKind, Found, Relation, ShadowKind, verify_beside_fence, written_for_others,
};
use crate::recovery::left::Left;
use crate::recovery::make_durable::{demote, make_durable};
use crate::recovery::published::Published;
use crate::recovery::spare::{self, is_spare};
use crate::recovery::table::decide;
use crate::refusal::other_format;
use crate::shared::coordination::{Coordination, Word};
use crate::shared::durability::Durability;
use crate::shared::layout::Layout;
use crate::shared::life::open_elsewhere;
use crate::shared::state::{Current, ShadowCondition, Snapshot};
use dash_engine::error::{Context, Error, Operation, Result};
use dash_engine::fence::raise_passing;
use dash_engine::locks::keep_stock_writers_out;
use dash_engine::note;
use dash_engine::open::Opened;
use dash_engine::ranges::RangeSet;
use dash_storage::{Directory, File, FileKind, OpenMode, Storage};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

/// The current copy, the other one, and how far that can be trusted.
type Taken<F> = (Found<F>, Option<Found<F>>, ShadowCondition);

/// Whether the database is as a clean close left it, and nobody has touched `app.db` or its name
/// since: then it is on the disk as it is here, the names they have are durable, and the shadow's
/// is not `app.db` there (SHADOW-23).
fn at_rest<F: File>(db: Option<&Found<F>>, shadow: Option<&Found<F>>, name: &str) -> Result<bool> {
    let bound = |found: Option<&Found<F>>| found.and_then(|found| found.block(false)).cloned();
    let (Some(found), Some(block)) = (db, bound(db)) else {
        return Ok(false);
    };
    let Some(vouched) = bound(shadow).and_then(|block| block.vouched) else {
        return Ok(false);
    };
    let durable = vouched.names_durable || broken(Mutation::NamesBelievedDurable);
    if !durable || vouched.id != block.id {
        return Ok(false);
    }
    let stat = |found: &Found<F>| found.file.metadata().during(Operation::Stat, name);
    let named = vouched.changed != 0 && vouched.changed == stat(found)?.changed;
    // It was written last, and so not renamed since.
    let beside = shadow.map(stat).transpose()?.is_some_and(|seen| seen.changed == seen.written);
    let untouched = named && beside;
    Ok(untouched || broken(Mutation::FoundBelievedDurable))
}

/// What the first opener found.
pub(crate) struct Recovered<F: File> {
    /// The files of both slots.
    pub(crate) files: [Option<Arc<F>>; 2],
    /// The current copy's header.
    pub(crate) header: Option<Header>,
    /// Its tail.
    pub(crate) current: Tail,
    /// Its global page list, if it has one.
    pub(crate) page_list: Option<RangeSet>,
    /// The shadow's tail, if nothing was written there since.
    pub(crate) shadow: Option<Tail>,
    /// Super-journal of a transaction that was cut off, to be removed once it is undone here.
    pub(crate) cut_off: Option<Vec<u8>>,
    /// The shadow of a database that was removed has another name now.
    pub(crate) put_aside: bool,
    /// See [`Connection::is_exposed`](crate::connection::state::Connection::is_exposed).
    pub(crate) exposed: bool,
}

/// `app.db`, the shadow, and whether a name fence stands beside them.
pub(super) type Seen<F> = (Option<Found<F>>, Option<Found<F>>, bool);

/// The first opener's work.
pub(crate) struct First<'a, S: Storage> {
    pub(crate) storage: &'a S,
    pub(crate) directory: &'a S::Directory,
    pub(crate) directory_path: &'a Path,
    pub(crate) names: &'a Names,
    pub(crate) coordination: &'a Coordination<S::File>,
}

impl<S: Storage> First<'_, S> {
    /// Recovers what was found in the two files, and fills the coordination file.
    pub(crate) fn recover(
        &self,
        db: Option<Opened<S::File>>,
        shadow: Option<Opened<S::File>>,
        options: &OpenOptions,
    ) -> Result<Recovered<S::File>> {
        let (c, db_name) = (self.coordination, self.names.shown());
        let (db, shadow, found_fence) = self.look(db, shadow, options)?;
        let left = Left { fence: found_fence, ..c.left()? };
        let (verdict, action, whose) = self.decide(db.as_ref(), shadow.as_ref(), left, options)?;
        let exposed = self.is_exposed([&shadow, &db], found_fence, (action, whose))?;
        // Of what is the second copy a commit may have to be buried.
        let mut shadow = shadow.filter(|_| !matches!(whose, Whose::Strange(_)));
        let mut put_aside = false;
        if let Some(spare) = shadow.take_if(|_| action == Action::CreateAfresh) {
            self.refuse_folder_in_the_way()?;
            put_aside = spare::put_aside::<S>(self.directory, self.names, &spare)?;
        }
        let cut_off = shadow
            .as_ref()
            .filter(|_| action == Action::KeepUndo)
            .and_then(|shadow| shadow.tail.commit.as_ref().ok())
            .map(|block| block.super_journal.clone());
        let replaced = db.as_ref().filter(|_| action == Action::UseShadow);
        let fence = found_fence || self.fence_off(replaced)?;
        let moved = moved_together(db.as_ref(), shadow.as_ref());
        let at_rest = at_rest(db.as_ref(), shadow.as_ref(), db_name)?;
        let (current, other, condition) =
            self.take((action, whose), &verdict, left, db, shadow, options)?;
        let moved = moved || current.tail.bound(current.id()).is_none();
        let condition = if moved { ShadowCondition::Rebuild } else { condition };
        self.describe(&current, other.as_ref(), condition, fence)?;
        let slot = c.current().slot;
        if at_rest && condition == ShadowCondition::Repair && action == Action::KeepRepair {
            c.set_name_on_disk(slot);
        } else if c.durability() == Durability::Flushed {
            c.set_durability(Durability::Unproven);
        }
        if action == Action::UseShadow {
            c.set_names_changed();
        }
        let mut untouched = false;
        if let (Action::KeepRepair | Action::KeepUndo, Some(shadow)) = (action, &other) {
            untouched = !self.bury(shadow, c.snapshot(slot))?;
        }
        let bound = current.block(false).is_some() && current.matches;
        let page_list = bound.then(|| global_page_list(&current.units));
        let (header, mut files) = (current.header, [None, None]);
        files[slot] = Some(Arc::new(current.file));
        let shadow = other.map(|found| {
            files[1 - slot] = Some(Arc::new(found.file));
            found.tail
        });
        let shadow = shadow.filter(|_| untouched);
        let current = current.tail;
        Ok(Recovered { files, header, current, page_list, shadow, cut_off, put_aside, exposed })
    }

    /// The name by which the shadow of a removed database is kept may be a folder's.
    fn refuse_folder_in_the_way(&self) -> Result<()> {
        let aside = self.names.aside.to_string_lossy();
        let found = self.directory.metadata(&self.names.aside).during(Operation::Stat, &aside)?;
        match found.is_some_and(|found| found.kind == FileKind::Directory) {
            false => Ok(()),
            true => Err(Error::CantOpen(format!(
                "{aside} is a folder, and {} is to be put aside under that name, as {} was removed: give the folder another name",
                self.names.shown_shadow(),
                self.names.shown()
            ))),
        }
    }

    /// What the two files show, and whether a name fence stands beside them.
    pub(super) fn look(
        &self,
        db: Option<Opened<S::File>>,
        shadow: Option<Opened<S::File>>,
        options: &OpenOptions,
    ) -> Result<Seen<S::File>> {
        let (names, most) = (self.names, options.tuning.list_verified);
        let (db_name, shadow_name) = (names.shown(), names.shown_shadow());
        let mut db =
            db.map(|(file, len)| Found::examine_quickly(file, len, most, db_name)).transpose()?;
        let shadow =
            shadow.map(|(file, len)| Found::examine_len(file, len, shadow_name)).transpose()?;
        for found in [&db, &shadow].into_iter().flatten() {
            if let Some(version) = found.tail.other_format() {
                return Err(other_format(db_name, version));
            }
        }
        let fence = self
            .directory
            .metadata(&names.fence)
            .during(Operation::Stat, names.fence.to_string_lossy())?
            .is_some_and(|found| found.kind == FileKind::Directory);
        verify_beside_fence(db.as_mut(), fence, db_name)?;
        if let Layout::Ours | Layout::None = self.coordination.layout() {
            // Cut off in the middle of a close; nobody has it open in mode wal either.
            drop(note::remove_folder(self.directory, &names.lowered));
        }
        Ok((db, shadow, fence))
    }

    /// What that means, and what to do about it.
    pub(super) fn decide(
        &self,
        db: Option<&Found<S::File>>,
        shadow: Option<&Found<S::File>>,
        left: Left,
        options: &OpenOptions,
    ) -> Result<(Verdict, Action, Whose)> {
        let mut exists = |block: &CommitBlock| {
            super_journal::exists_durably(self.storage, self.directory_path, &block.super_journal)
        };
        let verdict = classify(db, shadow, left, &mut exists)?;
        let whose = whose(shadow, db, self.names.shown_shadow())?;
        let spare = is_spare(shadow, verdict.shadow, left) && options.create;
        let action = match decide(&verdict, whose, spare) {
            _ if broken(Mutation::UndoneByNames) && verdict.db == DbKind::Whole => {
                Action::KeepRepair
            }
            action => action,
        };
        if !left.fence && written_for_others(db, shadow) {
            return Err(Error::ReadOnly(format!(
                "{} says that only a newer SQLite may write it (its write version is above 2), and no block of dash says otherwise",
                self.names.shown()
            )));
        }
        Ok((verdict, action, whose))
    }

    /// Puts a name fence up before a file is replaced that somebody else has open; whether it did.
    fn fence_off(&self, replaced: Option<&Found<S::File>>) -> Result<bool> {
        let Some(replaced) = replaced else { return Ok(false) };
        let open = open_elsewhere(Some(&replaced.file));
        let raise = open && !broken(Mutation::ReplacedNotFenced);
        if raise {
            raise_passing(self.directory, self.names, &replaced.file)?;
        }
        Ok(raise)
    }

    /// Does what was decided: the current copy, the other one if it may be mended, and how far that
    /// can be trusted.
    pub(crate) fn take(
        &self,
        (action, whose): (Action, Whose),
        verdict: &Verdict,
        left: Left,
        db: Option<Found<S::File>>,
        shadow: Option<Found<S::File>>,
        options: &OpenOptions,
    ) -> Result<Taken<S::File>> {
        let (db_name, shadow_name) = (self.names.shown(), self.names.shown_shadow());
        Ok(match action {
            Action::Refuse(refusal) => return Err(refusal.error(self.names)),
            Action::Create | Action::CreateAfresh => {
                if !options.create {
                    return Err(Error::CantOpen(format!("{db_name} does not exist")));
                }
                let file = self
                    .directory
                    .open(&self.names.db, OpenMode::CreateNew { permissions: options.permissions })
                    .during(Operation::Open, db_name)?;
                keep_stock_writers_out(&file, db_name)?;
                (Found::examine(file, db_name)?, None, ShadowCondition::Rebuild)
            }
            Action::UseShadow => {
                let (Some(db), Some(shadow)) = (db, shadow) else {
                    return Err(self.gone());
                };
                make_durable(&shadow, shadow_name)?;
                self.exchange()?;
                if verdict.db == DbKind::Empty && !broken(Mutation::FirstNameNotFlushed) {
                    self.directory.flush().during(Operation::FlushDirectory, db_name)?;
                }
                demote(&db, shadow_name)?;
                match verdict.shadow {
                    // Pages that dash did not write: no list tells where the two differ.
                    ShadowKind::Modified => (shadow, None, ShadowCondition::Rebuild),
                    // Its own block tells how far the old copy can be trusted.
                    _ if verdict.relation.is_kin() => (shadow, Some(db), ShadowCondition::Repair),
                    _ => (shadow, Some(db), ShadowCondition::Rebuild),
                }
            }
            Action::KeepRepair | Action::KeepUndo => {
                let db = db.ok_or_else(|| self.gone())?;
                if let (Relation::Parent, Some(shadow)) = (verdict.relation, &shadow) {
                    // A power loss may have taken the mark: it tells that app.db is newer, whatever
                    // is put there.
                    demote(shadow, shadow_name)?;
                }
                (db, shadow, ShadowCondition::Repair)
            }
            Action::KeepRebuild => {
                let overtaken = left.unpublished.is_some() && verdict.shadow == ShadowKind::Torn;
                if let (true, Some(shadow)) = (overtaken || verdict.db == DbKind::Empty, &shadow) {
                    self.bury(shadow, Snapshot::default())?;
                }
                let db = db.ok_or_else(|| self.gone())?;
                let held = shadow.filter(|found| {
                    open_elsewhere(Some(&found.file)) && self.may_be_filled(&db, found, whose)
                });
                (db, held, ShadowCondition::Rebuild)
            }
        })
    }

    /// Whether a shadow that others have open may be filled: any other one makes room for a new
    /// file, which they don't have. An empty one, such as the first commit has replaced, is the
    /// pair's only if the last session says so.
    fn may_be_filled(&self, db: &Found<S::File>, shadow: &Found<S::File>, whose: Whose) -> bool {
        let is_named = || self.coordination.inodes().contains(&Some(shadow.id()));
        let is_its = || belong_together(db, shadow) || shadow.tail.len == 0 && is_named();
        whose == Whose::Theirs && is_its()
    }

    /// What the table decided against stays undone. For an empty database nothing else of the
    /// coordination file counts.
    pub(crate) fn bury(&self, shadow: &Found<S::File>, snapshot: Snapshot) -> Result<bool> {
        let (pair, current) = (self.coordination.pair(), self.coordination.current());
        let published =
            Published { pair, current, snapshot, names_durable: false, held: false, changed: 0 };
        published.bury(&shadow.file, &shadow.tail, self.names.shown_shadow())
    }

    fn gone(&self) -> Error {
        Error::Corrupt(format!("{} vanished while it was opened", self.names.shown()))
    }

    pub(crate) fn exchange(&self) -> Result<()> {
        exchange::exchange::<S>(self.directory, self.names)
            .during(Operation::Exchange, self.names.shown())
    }

    /// Fills the coordination file.
    fn describe(
        &self,
        current: &Found<S::File>,
        other: Option<&Found<S::File>>,
        condition: ShadowCondition,
        fence: bool,
    ) -> Result<()> {
        let c = self.coordination;
        let left_over = c.layout() != Layout::None;
        c.reset();
        if left_over {
            c.set_durability(Durability::Unknown);
        }
        let block = current.block(false).filter(|_| current.matches);
        let slot = block.map_or(0, |block| usize::from(block.slot));
        let snapshot = match (block, &current.header) {
            (Some(block), Some(header)) => Snapshot {
                size: block.size,
                version: header.version(),
                id: block.id,
                counter: block.counter,
            },
            (None, header) => {
                Snapshot::foreign(header.as_ref(), current.tail.len, self.storage.random())
            }
            (Some(_), None) => return Err(self.gone()),
        };
        if let Some(header) = current.header.filter(Header::is_demoted) {
            current
                .file
                .write_at(&header.promotion(), FENCE_OFFSET)
                .during(Operation::Write, self.names.shown())?;
        }
        c.set_pair(block.map_or_else(|| self.storage.random(), |block| block.pair));
        c.set_inode(slot, Some(current.id()));
        c.set_inode(1 - slot, other.map(Found::id));
        c.set_snapshot(slot, &snapshot);
        c.set_condition(condition);
        c.add_name_on_disk(0);
        c.add_name_on_disk(1);
        // A fence found is kept, but it is not known to be durable: the first write makes it so.
        c.set_fence(false);
        c.set_fence_found(fence);
        c.set_current(Current { sequence: block.map_or(1, |block| block.sequence), slot });
        // Nobody is alive; a later opener takes these two files.
        c.word(Word::Guarded).store(c.generation(), SeqCst);
        c.set_cache_life();
        c.validate();
        Ok(())
    }
}
