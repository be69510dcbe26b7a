//! Stock programs beside recovery. One that lives on after all of dash were killed has the `-shm`
//! and the `-wal` that they had. Where either name is another file's by now nothing is recovered:
//! it closes with what it has, over whatever is committed until then (WAL-55).

use super::Recovery;
use crate::connection::files::Files;
use crate::connection::same_files::is_another;
use crate::index::{Index, Others};
use crate::mutation::{Mutation, broken};
use crate::names::Names;
use crate::shared::coordination::Word;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_engine::header::{HEADER_LEN, Header};
use dash_engine::io::read_padded;
use dash_engine::locks::{SHARED, holder};
use dash_storage::{Directory, File, FileId, LockKind, Storage};
use std::time::Duration;

/// How often a program is looked at that may be opening the database: it has SHARED before it has
/// made `-shm`.
const LOOKS: u32 = 10;
const PAUSE: Duration = Duration::from_millis(5);

/// What the two names are now.
pub(crate) struct Named {
    pub index: Option<FileId>,
    /// Somebody has it attached.
    pub is_had: bool,
    pub wal: Option<FileId>,
}

/// A name that is another file's than that of those who were killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Other {
    Index,
    Wal,
}

impl Other {
    /// By what the coordination file says of both. None also where somebody has both that there
    /// are.
    pub(crate) fn of([index, wal]: [u64; 2], named: &Named) -> Option<Self> {
        let is_other = named.index.is_none() || is_another(index, named.index);
        match (index != 0 && is_other, named.is_had) {
            (true, false) => Some(Self::Index),
            (false, true) if index != 0 && is_another(wal, named.wal) => Some(Self::Wal),
            _ => None,
        }
    }

    /// Why nothing is recovered beside a process that has a lock on the database.
    pub(crate) fn refusal(self, names: &Names, process: i32) -> Error {
        let (name, advice) = match self {
            Self::Index => (names.shm.to_string_lossy(), "end it first"),
            Self::Wal => {
                let advice = "put the former one back by `mv`, not a copy of it, or end it first";
                (names.shown_wal().as_ref().into(), advice)
            }
        };
        Error::CantOpen(format!(
            "{name} is missing, or another file than it was, and {} has a lock on {} since before that, as a program on stock SQLite \
             has: it goes on with the former one, and what it closes with would overwrite what is committed now; {advice}",
            holder(process),
            names.shown()
        ))
    }
}

impl<S: Storage> Recovery<'_, S> {
    /// As [`Self::attach_alone`]. `same_cache`: the connections of dash that were killed say which
    /// files they had.
    pub(super) fn keep_stock_out(&self, same_cache: bool) -> Result<Option<Index<S>>> {
        for look in 1.. {
            let index = self.attach_alone()?;
            let others = |index| self.files.others_have_other_files(index);
            match if same_cache { others(index.as_ref())? } else { None } {
                None => return Ok(index),
                Some(refused) if look == LOOKS => return Err(refused),
                Some(_) => self.files.storage.sleep(PAUSE),
            }
        }
        Err(Error::Busy)
    }

    /// No stock process that was there before may write meanwhile, nor may one come that would
    /// empty the index: what it says of a missing `-wal` counts until the log is closed (WAL-16).
    fn attach_alone(&self) -> Result<Option<Index<S>>> {
        let found = self
            .files
            .directory
            .metadata(&self.files.names.shm)
            .during(Operation::Stat, self.files.names.shown())?;
        if found.is_none() {
            return Ok(None);
        }
        let mut index = Index::open(
            &self.files.storage,
            &*self.files.directory,
            &self.files.names.shm,
            &**self.files.database.file(),
            broken(Mutation::IndexEmptied),
        )?;
        if index.exclude()? != Others::Nobody {
            return Err(Error::Busy);
        }
        match broken(Mutation::UnsealedEarly) {
            true => index.allow().and_then(|()| self.unseal())?,
            false if index.is_as_left() => {}
            false => drop(index.map_region(0, false)?),
        }
        Ok(Some(index))
    }
}

impl<S: Storage> Files<S> {
    /// Why nothing is to be recovered; `index`: what the name `-shm` is, attached so that nobody
    /// else comes.
    pub(crate) fn others_have_other_files(
        &self,
        index: Option<&Index<S>>,
    ) -> Result<Option<Error>> {
        let (c, names, database) = (&self.shared, &self.names, &**self.database.file());
        let wal = self.directory.metadata(&names.wal);
        let wal = wal.during(Operation::Stat, names.shown_wal())?.map(|found| found.id);
        let is_had = index.is_some_and(|index| !index.is_as_left());
        let named = Named { index: index.and_then(Index::id), is_had, wal };
        let said = [Word::IndexFile, Word::WalFile].map(|word| c.get(word));
        let Some(other) = Other::of(said, &named) else { return Ok(None) };
        let found = database.lock_conflict(SHARED, LockKind::Exclusive);
        let Some(process) = found.during(Operation::Lock, names.shown())? else {
            return Ok(None);
        };
        let mut header = [0; HEADER_LEN];
        read_padded(database, &mut header, 0).during(Operation::Read, names.shown())?;
        // One in another journal mode has neither.
        let is_wal = Header::of(&header).is_some_and(|header| header.is_wal());
        let is_refused = is_wal && !broken(Mutation::OtherFilesOverlooked);
        Ok(is_refused.then(|| other.refusal(names, process)))
    }
}
