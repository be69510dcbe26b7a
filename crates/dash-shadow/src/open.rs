//! Opening: who is first decides, by the recovery table, which file is current; who comes later
//! joins what the coordination file says. All under the OPEN lock.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use dash_storage::{Directory, File, FileKind, LockKind, OpenMode, Storage};

use crate::connection::{Connection, hold_life};
use crate::coordination::{Coordination, Current, ShadowCondition, Snapshot};
use crate::error::{Context, Error, Operation, Result};
use crate::evaluate::{Found, classify};
use crate::format::{CommitBlock, Protocol};
use crate::header::{FENCE_OFFSET, Header};
use crate::locks::{self, LockLevel};
use crate::names::Names;
use crate::recover::{demote, finish_renames, make_durable, open_if_there};
use crate::super_journal;
use crate::table::{Action, Refusal, decide};
use crate::tuning::Tuning;

/// How long an opener waits for another one that opens, closes or recovers.
const OPEN_PATIENCE: Duration = Duration::from_secs(10);
/// How often it looks.
const OPEN_PAUSE: Duration = Duration::from_micros(500);

/// How to open a database for reading and writing.
#[derive(Debug, Clone)]
pub struct OpenOptions {
    /// Make an empty database if there is none.
    pub create: bool,
    /// Permission bits of a new database.
    pub permissions: u32,
    /// Flushes a commit makes.
    pub protocol: Protocol,
    /// Sizes.
    pub tuning: Tuning,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            create: true,
            permissions: 0o644,
            protocol: Protocol::Single,
            tuning: Tuning::default(),
        }
    }
}

impl<S: Storage> Connection<S> {
    /// Opens a database for reading and writing; recovers it first if nobody else has it open.
    pub fn open(storage: &S, path: &Path, options: &OpenOptions) -> Result<Self> {
        let (directory_path, names) = Names::split(path)?;
        let directory = storage
            .open_directory(directory_path)
            .during(Operation::Open, directory_path.display())?;
        let db = names.shown().into_owned();
        let permissions = match directory.metadata(&names.db).during(Operation::Stat, &db)? {
            Some(found) if found.kind != FileKind::Regular => {
                return Err(Error::CantOpen(format!("{db} is not a regular file")));
            }
            Some(found) if found.links > 1 => {
                return Err(Error::CantOpen(format!(
                    "{db} has {} hard links; dash exchanges names, so each would keep another state: remove the other links",
                    found.links
                )));
            }
            Some(found) => found.permissions,
            None if !options.create
                && directory.metadata(&names.shadow).during(Operation::Stat, &db)?.is_none()
                && directory.metadata(&names.renaming).during(Operation::Stat, &db)?.is_none() =>
            {
                return Err(Error::CantOpen(format!("{db} does not exist")));
            }
            None => options.permissions,
        };
        let coordination = open_coordination(storage, &directory, &names, permissions)?;
        Self::open_locked(storage, directory, directory_path, names, coordination, options)
    }

    fn open_locked(
        storage: &S,
        directory: S::Directory,
        directory_path: &Path,
        names: Names,
        coordination: S::File,
        options: &OpenOptions,
    ) -> Result<Self> {
        let name = names.coordination.to_string_lossy().into_owned();
        let mut coordination = Coordination::map(coordination)?;
        // The renames of another process may be half done: under OPEN nobody is at it any more,
        // unless a connection is alive, and then its exchange is about to be complete.
        finish_renames_if_alone::<S>(&directory, &names)?;
        let db = open_if_there::<S>(&directory, &names.db, OpenMode::ReadWrite)?;
        let shadow = open_if_there::<S>(&directory, &names.shadow, OpenMode::ReadWrite)?;
        let alone = is_alone(&[db.as_ref(), shadow.as_ref()], &names.shown())?;
        let mut cut_off = None;
        let files = if alone {
            let first = First {
                storage,
                directory: &directory,
                directory_path,
                names: &names,
                coordination: &coordination,
            };
            first.recover(db, shadow, options, &mut cut_off)?
        } else {
            join(&coordination, db, shadow, &names)?
        };
        for file in files.iter().flatten() {
            hold_life(&**file, &names.shown())?;
        }
        coordination.register()?;
        let mut connection = Self::new(
            storage.clone(),
            directory,
            directory_path.to_owned(),
            names,
            coordination,
            files,
            options,
        );
        if cut_off.is_some() {
            connection.cut_off = cut_off;
            connection.lock(LockLevel::Exclusive)?;
            connection.unlock(LockLevel::None)?;
        }
        connection.coordination.file().unlock(locks::OPEN).during(Operation::Lock, &name)?;
        Ok(connection)
    }
}

/// Opens the coordination file and waits for its OPEN lock.
pub(crate) fn open_coordination<S: Storage>(
    storage: &S,
    directory: &S::Directory,
    names: &Names,
    permissions: u32,
) -> Result<S::File> {
    let name = names.coordination.to_string_lossy();
    let mut waited = Duration::ZERO;
    loop {
        let file = directory
            .open(&names.coordination, OpenMode::Create { permissions })
            .during(Operation::Open, &name)?;
        while !file.try_lock(locks::OPEN, LockKind::Exclusive).during(Operation::Lock, &name)? {
            if waited >= OPEN_PATIENCE {
                return Err(Error::Busy);
            }
            storage.sleep(OPEN_PAUSE);
            waited += OPEN_PAUSE;
        }
        // The last one to close may have removed it while this one waited.
        let named = directory.metadata(&names.coordination).during(Operation::Stat, &name)?;
        if named.is_some_and(|named| named.id == file.id()) {
            return Ok(file);
        }
    }
}

/// Whether no other connection holds LIFE on any of the files. Leaves LIFE held exclusively if so.
pub(crate) fn is_alone<F: File>(files: &[Option<&F>], name: &str) -> Result<bool> {
    for file in files.iter().flatten() {
        if !file.try_lock(locks::LIFE, LockKind::Exclusive).during(Operation::Lock, name)? {
            for file in files.iter().flatten() {
                file.unlock(locks::LIFE).during(Operation::Lock, name)?;
            }
            return Ok(false);
        }
    }
    Ok(true)
}

fn finish_renames_if_alone<S: Storage>(directory: &S::Directory, names: &Names) -> Result<()> {
    let there = directory
        .metadata(&names.renaming)
        .during(Operation::Stat, names.renaming.to_string_lossy())?;
    if there.is_none() {
        return Ok(());
    }
    let renaming = open_if_there::<S>(directory, &names.renaming, OpenMode::ReadWrite)?;
    let alone = is_alone(&[renaming.as_ref()], &names.shown())?;
    if alone { finish_renames::<S>(directory, names) } else { Err(Error::Busy) }
}

/// Takes the files that the coordination file names; whatever they are called right now.
fn join<F: File>(
    coordination: &Coordination<F>,
    db: Option<F>,
    shadow: Option<F>,
    names: &Names,
) -> Result<[Option<Arc<F>>; 2]> {
    let mut found: Vec<F> = [db, shadow].into_iter().flatten().collect();
    let mut files = [None, None];
    let foreign = || {
        Error::CantOpen(format!(
            "{} or a file beside it was replaced while other connections have the former one open: close them first",
            names.shown()
        ))
    };
    if !coordination.is_valid() {
        return Err(foreign());
    }
    for (slot, wanted) in coordination.inodes().into_iter().enumerate() {
        if let Some(id) = wanted {
            // T27: an exchange between the two opens may have led to one inode twice.
            let at = found.iter().position(|file| file.id() == id);
            match at {
                Some(at) => files[slot] = Some(Arc::new(found.swap_remove(at))),
                None if found
                    .iter()
                    .any(|file| coordination.inodes().contains(&Some(file.id())))
                    || found.is_empty() =>
                {
                    return Err(Error::Busy);
                }
                None => return Err(foreign()),
            }
        }
    }
    Ok(files)
}

/// The first opener's work.
struct First<'a, S: Storage> {
    storage: &'a S,
    directory: &'a S::Directory,
    directory_path: &'a Path,
    names: &'a Names,
    coordination: &'a Coordination<S::File>,
}

impl<S: Storage> First<'_, S> {
    fn recover(
        &self,
        db: Option<S::File>,
        shadow: Option<S::File>,
        options: &OpenOptions,
        cut_off: &mut Option<Vec<u8>>,
    ) -> Result<[Option<Arc<S::File>>; 2]> {
        let names = self.names;
        let (db_name, shadow_name) =
            (names.shown().into_owned(), names.shadow.to_string_lossy().into_owned());
        let db = db.map(|file| Found::look(file, &db_name)).transpose()?;
        let shadow = shadow.map(|file| Found::look(file, &shadow_name)).transpose()?;
        for found in [&db, &shadow].into_iter().flatten() {
            if let Some(version) = found.tail.newer() {
                return Err(Error::CantOpen(format!(
                    "{db_name} was last written by a newer dash (format {version}); use that version"
                )));
            }
        }
        let fence = self
            .directory
            .metadata(&names.fence)
            .during(Operation::Stat, names.fence.to_string_lossy())?
            .is_some_and(|found| found.kind == FileKind::Directory);
        let mut exists = |block: &CommitBlock| {
            super_journal::exists_durably(self.storage, self.directory_path, &block.super_journal)
        };
        let verdict = classify(db.as_ref(), shadow.as_ref(), fence, &mut exists)?;
        let action = decide(&verdict);
        let (current, other, condition) = match action {
            Action::Refuse(refusal) => {
                let message = refusal.message(names);
                return Err(match refusal {
                    Refusal::NotSqlite => Error::NotADatabase(message),
                    Refusal::BothTorn => Error::Corrupt(message),
                    _ => Error::CantOpen(message),
                });
            }
            Action::Create => {
                if !options.create {
                    return Err(Error::CantOpen(format!("{db_name} does not exist")));
                }
                let file = self
                    .directory
                    .open(&names.db, OpenMode::CreateNew { permissions: options.permissions })
                    .during(Operation::Open, &db_name)?;
                (Found::look(file, &db_name)?, None, ShadowCondition::Rebuild)
            }
            Action::UseShadow => {
                let (Some(db), Some(shadow)) = (db, shadow) else {
                    return Err(self.gone());
                };
                make_durable(&shadow, &shadow_name)?;
                self.exchange()?;
                demote(&db, &shadow_name)?;
                // Its own block tells how far the old copy can be trusted.
                let kin = verdict.relation != crate::evaluate::Relation::None;
                (
                    shadow,
                    Some(db),
                    if kin { ShadowCondition::Repair } else { ShadowCondition::Rebuild },
                )
            }
            Action::KeepRepair | Action::KeepUndo => {
                let db = db.ok_or_else(|| self.gone())?;
                if action == Action::KeepUndo {
                    let block = shadow.as_ref().and_then(|shadow| shadow.tail.commit.as_ref().ok());
                    *cut_off = block.map(|block| block.super_journal.clone());
                }
                (db, shadow, ShadowCondition::Repair)
            }
            Action::KeepRebuild => (db.ok_or_else(|| self.gone())?, None, ShadowCondition::Rebuild),
        };
        let moved = current.tail.bound(current.id()).is_none();
        let condition = if moved { ShadowCondition::Rebuild } else { condition };
        self.describe(&current, other.as_ref(), condition, fence)?;
        let slot = self.coordination.current().slot;
        let mut files = [None, None];
        files[slot] = Some(Arc::new(current.file));
        files[1 - slot] = other.map(|found| Arc::new(found.file));
        Ok(files)
    }

    fn gone(&self) -> Error {
        Error::Corrupt(format!("{} vanished while it was opened", self.names.shown()))
    }

    fn exchange(&self) -> Result<()> {
        let (db, shadow, renaming) = (&self.names.db, &self.names.shadow, &self.names.renaming);
        match self.directory.exchange(db, shadow) {
            Err(error) if error.kind() == std::io::ErrorKind::Unsupported => self
                .directory
                .rename(db, renaming)
                .and_then(|()| self.directory.rename(shadow, db))
                .and_then(|()| self.directory.rename(renaming, shadow)),
            other => other,
        }
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
        c.reset();
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
        c.validate();
        Ok(())
    }
}
