//! What keeps a database from being opened beside those who have it, or its files, open.

use super::report::{Lock, LockedPlace};
use crate::connection::same_files::{
    is_another, replaced_database, replaced_index, replaced_wal, who_is_in,
};
use crate::index::DEAD_MAN_SWITCH;
use crate::names::Names;
use crate::recovery::others_files::{Named, Other};
use crate::shared::coordination::Left;
use crate::shared::locks::ATTACHED;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_storage::{File, FileId, LockKind};
use std::ops::Range;

/// The files that have the names now.
pub(super) struct Standing<'a, F> {
    pub names: &'a Names,
    pub database: Option<FileId>,
    pub index: Option<&'a F>,
    pub wal: Option<FileId>,
}

impl<F: File> Standing<'_, F> {
    /// Why the database would not be opened, `open` or left; `shared` is none of dash, and has
    /// SHARED.
    pub(super) fn refusal(
        &self,
        coordination: Option<(&F, &Left)>,
        open: bool,
        shared: Option<i32>,
    ) -> Result<Option<Error>> {
        let files = |(_, left): &(_, &Left)| left.is_ours && left.in_memory_of.is_none();
        let Some((file, left)) = coordination.filter(files) else { return Ok(None) };
        let same_cache = left.cache_life.is_some() && left.cache_life == file.cache_life();
        match open {
            true => self.joining(file, left),
            false if same_cache => self.recovering(left, shared),
            false => Ok(None),
        }
    }

    /// Why a connection would not join those who have the database open.
    fn joining(&self, coordination: &F, left: &Left) -> Result<Option<Error>> {
        let name = self.names.shown_coordination();
        let is_other =
            |said, id: Option<FileId>| said != 0 && (id.is_none() || is_another(said, id));
        let refusal = if self.database != Some(left.database) {
            replaced_database
        } else if !is_held(coordination, ATTACHED, name)? {
            return Ok(None);
        } else if is_other(left.files[1], self.wal) {
            replaced_wal
        } else if is_other(left.files[0], self.index.map(File::id)) {
            replaced_index
        } else {
            return Ok(None);
        };
        let who = who_is_in(coordination, name)?;
        Ok(who.map(|who| refusal(self.names, &who)))
    }

    /// Why it would not be recovered; `process` has SHARED, and is none of dash.
    fn recovering(&self, left: &Left, process: Option<i32>) -> Result<Option<Error>> {
        let Some(process) = process else { return Ok(None) };
        let switch = |file| is_held(file, DEAD_MAN_SWITCH, self.names.shown());
        let is_had = self.index.map_or(Ok(false), switch)?;
        let named = Named { index: self.index.map(File::id), is_had, wal: self.wal };
        Ok(Other::of(left.files, &named).map(|other| other.refusal(self.names, process)))
    }
}

/// The process that has SHARED of the database, 0 where that is not known.
pub(super) fn reader(locks: &[Lock]) -> Option<i32> {
    let shared = locks.iter().find(|lock| lock.place == LockedPlace::Shared)?;
    Some(shared.process.unwrap_or(0))
}

fn is_held<F: File>(file: &F, bytes: Range<u64>, name: &str) -> Result<bool> {
    let found = file.lock_conflict(bytes, LockKind::Exclusive).during(Operation::Lock, name)?;
    Ok(found.is_some())
}
