//! Reading without the right to write: `mode=ro`, read-only media and folders, `immutable=1`.
//!
//! Such a connection has no entry in the coordination file; like a stock reader it takes SQLite's
//! SHARED lock on the copy it reads, for as long as it reads. While a dash connection is alive the
//! names are right. With nobody alive the recovery table tells which copy is current, and that one
//! is read wherever its name is: recovering is left to somebody who may write.

use crate::format::header::{Header, Marks, plain};
use crate::mutation::{Mutation, broken};
use crate::names::access::{lets_others_in, whose};
use crate::names::exchange::{aside, hides_a_copy, look_up_db, open_db};
use crate::names::{Names, mounted, super_journal};
use crate::recovery::action::Action;
use crate::recovery::classify::classify;
use crate::recovery::decided::decided_beside;
use crate::recovery::examine::{Found, verify_beside_fence};
use crate::recovery::left::{Left, left_in_coordination};
use crate::recovery::table::decide;
use crate::refusal::{Refusal, other_format};
use crate::shared::locks::{self, LockLevel};
use crate::shared::state::Snapshot;
use crate::tuning::Tuning;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_engine::io::{read_header, read_padded};
use dash_engine::memory::{OPENING, headroom};
use dash_engine::open::{open_if_there, with_remedy};
use dash_storage::{Directory, File, FileId, FileKind, LockKind, OpenMode, Storage};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// For how long an opener in the way is waited for each time.
const OPEN_PAUSE: Duration = Duration::from_micros(500);

/// How often a copy is looked up again when names are exchanged meanwhile.
const ATTEMPTS: usize = 100;

/// A connection that only reads.
pub struct ReadOnly<S: Storage> {
    storage: S,
    directory: S::Directory,
    directory_path: PathBuf,
    names: Names,
    immutable: bool,
    /// Whether it is mounted by itself.
    mounted: bool,
    current: Arc<S::File>,
    snapshot: Snapshot,
    level: LockLevel,
    /// Whether the shadow lets somebody in who has no right to `app.db`; `None` before it was
    /// looked at.
    exposed: Option<bool>,
}

impl<S: Storage> ReadOnly<S> {
    /// Opens an existing database for reading. `immutable`: nobody writes it, so nothing is locked.
    pub fn open(storage: &S, path: &Path, immutable: bool) -> Result<Self> {
        let (folder, names) = Names::split(path)?;
        Self::open_named(storage, (folder, names.clone()), immutable)
            .map_err(|error| with_remedy(error, storage, folder, (&names.db, &[&*names.shadow])))
    }

    fn open_named(
        storage: &S,
        (directory_path, names): (&Path, Names),
        immutable: bool,
    ) -> Result<Self> {
        headroom(OPENING)?;
        let directory = storage
            .open_directory(directory_path)
            .during(Operation::Open, directory_path.display())?;
        let Some(file) = open_db::<S>(&directory, &names, OpenMode::Read)? else {
            return Err(Error::CantOpen(format!("{} does not exist", names.shown())));
        };
        let mounted = directory.is_mount_point(&names.db).during(Operation::Stat, names.shown())?;
        let mut connection = Self {
            mounted,
            storage: storage.clone(),
            directory,
            directory_path: directory_path.to_owned(),
            names,
            immutable,
            current: Arc::new(file),
            snapshot: Snapshot::default(),
            level: LockLevel::None,
            exposed: None,
        };
        connection.find_current()?;
        connection.release()?;
        Ok(connection)
    }

    /// Begins or ends reading. Anything above `Shared` is refused.
    pub fn lock(&mut self, level: LockLevel) -> Result<()> {
        if level > LockLevel::Shared {
            return Err(Error::ReadOnly(format!(
                "{} was opened for reading only",
                self.names.shown()
            )));
        }
        if self.level == LockLevel::None && level == LockLevel::Shared {
            self.find_current()?;
            self.level = level;
        }
        Ok(())
    }

    /// Lowers the lock.
    pub fn unlock(&mut self, level: LockLevel) -> Result<()> {
        if level == LockLevel::None && self.level != LockLevel::None {
            self.level = LockLevel::None;
            self.release()?;
        }
        Ok(())
    }

    /// Whether, when it was opened, the shadow gave somebody rights that `app.db` does not give,
    /// and this process could not take them away.
    pub fn is_exposed(&self) -> bool {
        self.exposed == Some(true)
    }

    /// Whether what it reads is named `app.db`; not if a power loss took the exchange of the names.
    pub fn is_named(&self) -> Result<bool> {
        let named = look_up_db::<S>(&self.directory, &self.names)?;
        Ok(named.is_some_and(|(_, named)| named.id == self.current.id()))
    }

    /// The lock held.
    pub fn level(&self) -> LockLevel {
        self.level
    }

    /// Whether a stock process is writing the copy that is read, or about to. Dash connections hold
    /// the same lock, shared.
    pub fn is_reserved_by_stock(&self) -> Result<bool> {
        let holder = self.current.lock_conflict(locks::RESERVED, LockKind::Shared);
        Ok(holder.during(Operation::Lock, self.names.shown())?.is_some())
    }

    fn release(&self) -> Result<()> {
        if self.immutable {
            return Ok(());
        }
        self.current.unlock(locks::SHARED).during(Operation::Lock, self.names.shown())
    }

    /// Finds and locks the current copy.
    fn find_current(&mut self) -> Result<()> {
        for _ in 0..ATTEMPTS {
            if self.take_named()? {
                return Ok(());
            }
        }
        Err(Error::Busy)
    }

    /// Locks what `app.db` names; `false` if that changed meanwhile.
    fn take_named(&mut self) -> Result<bool> {
        let shown = self.names.shown().clone();
        let Some((name, named)) = look_up_db::<S>(&self.directory, &self.names)? else {
            return Err(Error::Moved(format!("{shown} is gone")));
        };
        if named.kind != FileKind::Regular {
            return Err(Error::CantOpen(format!("{shown} is not a regular file")));
        }
        if self.current.id() != named.id {
            match open_if_there::<S>(&self.directory, name, OpenMode::Read)? {
                Some(file) => self.current = Arc::new(file),
                None => return Ok(false),
            }
        }
        if !self.share(&self.current.clone())? {
            return Err(Error::Busy);
        }
        let again = look_up_db::<S>(&self.directory, &self.names)?;
        if again.map(|(_, again)| again.id) != Some(self.current.id()) {
            self.release()?;
            return Ok(false);
        }
        let held = |kind| {
            self.current
                .lock_conflict(locks::LIFE, kind)
                .map(|owner| owner.is_some())
                .during(Operation::Lock, &shown)
        };
        if !self.immutable && held(LockKind::Shared)? {
            // Somebody opens, closes or recovers it right now.
            self.release()?;
            self.storage.sleep(OPEN_PAUSE);
            return Ok(false);
        }
        let alive = !self.immutable && held(LockKind::Exclusive)?;
        let decided = alive
            && decided_beside(&self.storage, &self.directory, &self.directory_path, &self.names)?;
        if !alive || decided {
            self.take_by_table()?;
        }
        if decided && self.current.id() == named.id {
            // It is being published.
            self.release()?;
            self.storage.sleep(OPEN_PAUSE);
            return Ok(false);
        }
        let header = read_header(&*self.current, &shown)?;
        let len = self.current.metadata().during(Operation::Stat, &shown)?.len;
        if header.is_some_and(|header| header.is_fenced()) {
            self.release()?;
            return Ok(false);
        }
        if self.mounted && header.is_some_and(|header| header.is_demoted()) {
            self.release()?;
            return Err(mounted::older(&self.names));
        }
        if len > 0 && !header.as_ref().is_some_and(Header::is_sqlite) {
            self.release()?;
            return Err(Error::NotADatabase(format!("{shown} is not an SQLite database")));
        }
        self.snapshot = Snapshot::foreign(header.as_ref(), len, 1);
        Ok(true)
    }

    fn share(&self, file: &S::File) -> Result<bool> {
        if self.immutable {
            return Ok(true);
        }
        file.try_lock(locks::SHARED, LockKind::Shared).during(Operation::Lock, self.names.shown())
    }

    /// Nobody is alive: the names may be behind.
    fn take_by_table(&mut self) -> Result<()> {
        let (shown, shadow_name) = (self.names.shown().clone(), self.names.shown_shadow().clone());
        if hides_a_copy::<S>(&self.directory, &self.names)? {
            return Err(Refusal::Hidden.error(&self.names));
        }
        let len = self.current.metadata().during(Operation::Stat, &shown)?.len;
        let most = Tuning::default().list_verified;
        let mut db = Found::examine_quickly(self.current.clone(), len, most, &shown)?;
        let mut shadow = open_if_there::<S>(&self.directory, &self.names.shadow, OpenMode::Read)?;
        let has_aside = shadow.is_none() && aside::<S>(&self.directory, &self.names)?.is_some();
        if has_aside && !broken(Mutation::TemporaryNameIgnored) {
            // Between the second and the third rename it has the temporary name.
            shadow = open_if_there::<S>(&self.directory, &self.names.renaming, OpenMode::Read)?
                .filter(|file| file.id() != self.current.id());
        }
        if let (Some(shadow), false, None) = (&shadow, self.immutable, self.exposed) {
            let is_open = lets_others_in(shadow, &*self.current);
            self.exposed = Some(is_open.during(Operation::Stat, &shadow_name)?);
        }
        let shadow = shadow.map(|file| Found::examine(Arc::new(file), &shadow_name)).transpose()?;
        for found in [Some(&db), shadow.as_ref()].into_iter().flatten() {
            if let Some(version) = found.tail.other_format() {
                return Err(other_format(&shown, version));
            }
        }
        let fence = self
            .directory
            .metadata(&self.names.fence)
            .during(Operation::Stat, &shown)?
            .is_some_and(|found| found.kind == FileKind::Directory);
        verify_beside_fence(Some(&mut db), fence, &shown)?;
        let left = left_in_coordination::<S>(&self.directory, &self.names)?;
        let left = Left { fence, only_read: true, ..left };
        let verdict = classify(Some(&db), shadow.as_ref(), left, &mut |block| {
            super_journal::exists_durably(&self.storage, &self.directory_path, &block.super_journal)
        })?;
        let whose = whose(shadow.as_ref(), Some(&db), &shadow_name)?;
        match (decide(&verdict, whose, false), shadow) {
            (Action::UseShadow, Some(shadow)) => {
                let shared = self.share(&shadow.file)?;
                self.release()?;
                if !shared {
                    return Err(Error::Busy);
                }
                self.current = shadow.file;
                Ok(())
            }
            (Action::Refuse(refusal), _) => {
                self.release()?;
                Err(refusal.error(&self.names))
            }
            _ => Ok(()),
        }
    }

    /// Reads up to `buffer.len()` bytes at `offset`, fewer at the end of the database.
    pub fn read(&mut self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let len = usize::try_from(self.snapshot.size.saturating_sub(offset))
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        read_padded(&*self.current, &mut buffer[..len], offset)
            .during(Operation::Read, self.names.shown())?;
        if offset == 0 {
            plain(&mut buffer[..len]);
        }
        Ok(len)
    }

    /// Whether it reads that file, whatever the name is by now.
    pub fn is_of(&self, file: FileId) -> bool {
        self.current.id() == file
    }

    /// Size of the database in bytes.
    pub fn size(&self) -> u64 {
        self.snapshot.size
    }

    /// The file a page can be mapped from. Valid while the lock is held, and for all of
    /// `1..size()`.
    pub fn mappable(&self, range: std::ops::Range<u64>) -> Option<&Arc<S::File>> {
        (self.level >= LockLevel::Shared && range.start > 0 && range.end <= self.snapshot.size)
            .then_some(&self.current)
    }

    /// Gives everything back.
    pub fn close(mut self) -> Result<()> {
        self.unlock(LockLevel::None)
    }
}
