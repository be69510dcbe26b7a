//! Changing the mode of a database under an open connection (`PRAGMA journal_mode`).
//!
//! Between two transactions, and only for the one connection that has the database open, in any
//! process: others would go on by the rules of the former mode. What a mode leaves is a plain
//! SQLite file at rest, which the next one takes. SQLite's page cache stays right either way: the
//! next transaction compares the header's version bytes, as always.

use std::time::Instant;

use dash_ffi::{Code, Error, LockLevel, Result};
use dash_storage::real;

use crate::by_stock::{PATIENCE, PAUSE};
use crate::carried::Carried;
use crate::errors::inherited;
use crate::file_system;
use crate::gone::Gone;
use crate::leftovers::Neighbours;
use crate::main_file::MainFile;
use crate::mode::registry::Membership;
use crate::mode::{Database, Mode, Switching, gone, in_use};
use crate::modes::MODES;
use crate::plain;
use crate::wal;

impl MainFile {
    /// To another mode.
    pub(crate) fn switch(&mut self, to: &'static dyn Mode) -> Result<()> {
        if self.forks != real::forks() {
            // The parent has the file open, and its locks are no other process's here.
            return Err(inherited(&self.path));
        }
        self.database.may_leave()?;
        let Some(membership) = self.membership.take() else {
            return Err(gone());
        };
        let switched = self.switch_as(&membership, to);
        self.membership = Some(membership);
        switched
    }

    fn switch_as(&mut self, membership: &Membership, to: &'static dyn Mode) -> Result<()> {
        let from = self.mode;
        if !membership.switch(to.base()) {
            return Err(in_use(&self.path));
        }
        let switched = match from.is_plain() {
            true => self.enter(membership, to),
            false => self.leave(membership, to),
        };
        if switched.is_err() {
            membership.switch(from.base());
        }
        switched
    }

    /// From a plain file, which is left only when the mode has it.
    fn enter(&mut self, membership: &Membership, to: &'static dyn Mode) -> Result<()> {
        let (path, beside) = (&*self.path, Neighbours::of(&self.path));
        file_system::check(path, &beside, &self.parameters, false)?;
        let carried = self.carried()?;
        self.database = to.enter(&self.switching(membership))?;
        self.mode = to;
        carried.set(&mut *self.database)
    }

    /// From an engine, by way of a plain file.
    fn leave(&mut self, membership: &Membership, to: &'static dyn Mode) -> Result<()> {
        let carried = self.carried()?;
        let left = std::mem::replace(&mut self.database, Box::new(Gone));
        let from = self.mode;
        let left = left.leave(&mut self.parameters, &self.path, &self.host);
        let entered = left.and_then(|()| to.enter(&self.switching(membership)));
        let (database, failed) = match entered {
            Ok(database) => (database, None),
            Err(error) => self.enter_either(membership, from, to, error)?,
        };
        self.database = database;
        carried.set(&mut *self.database)?;
        match failed {
            Some(error) => Err(error),
            None => {
                self.mode = to;
                Ok(())
            }
        }
    }

    /// Back to the mode that it comes from, because of `error`; unless others have put it into the
    /// one that was asked for since.
    fn enter_either(
        &self,
        membership: &Membership,
        from: &'static dyn Mode,
        to: &'static dyn Mode,
        error: Error,
    ) -> Result<(Box<dyn Database>, Option<Error>)> {
        let begun = Instant::now();
        loop {
            match from.enter(&self.switching(membership)) {
                Ok(database) => return Ok((database, Some(error))),
                Err(error) if error.code.primary() != Code::BUSY || begun.elapsed() >= PATIENCE => {
                    return Err(error);
                }
                Err(_) => {}
            }
            if let Ok(Some(database)) = to.join(&self.switching(membership)) {
                return Ok((database, None));
            }
            self.host.sleep(PAUSE);
        }
    }

    pub(crate) fn switching<'a>(&'a self, membership: &'a Membership) -> Switching<'a> {
        Switching {
            host: &self.host,
            path: &self.path,
            parameters: &self.parameters,
            window: &self.window,
            membership,
            caller: self.caller,
            asked: true,
            connection: self.connection.as_ref(),
            modes: &MODES,
        }
    }

    /// To where SQLite has gone by itself, if no other connection of this process is there: to a
    /// plain file. At once, for what SQLite may do next depends on whether there is shared memory.
    pub(crate) fn follow(&mut self) -> Result<()> {
        let carried = self.carried()?;
        let membership = self.membership.as_ref();
        let Some(membership) = membership.filter(|membership| membership.switch(plain::MODE))
        else {
            return Ok(());
        };
        let left = std::mem::replace(&mut self.database, Box::new(Gone));
        left.leave(&mut self.parameters, &self.path, &self.host)?;
        self.database = plain::MODE.enter(&self.switching(membership))?;
        self.mode = plain::MODE;
        carried.set(&mut *self.database)
    }

    /// What SQLite has set, for the database that is going to come under the connection.
    pub(crate) fn carried(&mut self) -> Result<Carried> {
        Carried::from(&mut *self.database, &self.said)
    }

    /// To WAL mode, where another connection has taken the database: another process, or the backup
    /// API, which copies the header, too. SQLite goes there by itself as soon as it has read, and
    /// then fails for want of shared memory. This connection has SHARED, and keeps it.
    pub(crate) fn keep_up(&mut self) -> Result<()> {
        match self.database.is_in_wal_mode() {
            Ok(false) => return Ok(()),
            Ok(true) => self.database.unlock(LockLevel::None)?,
            Err(error) => {
                self.database.unlock(LockLevel::None)?;
                return Err(error);
            }
        }
        if self.forks != real::forks() {
            return Err(inherited(&self.path));
        }
        file_system::check(&self.path, &Neighbours::of(&self.path), &self.parameters, false)?;
        let Some(membership) = self.membership.take() else {
            return Err(gone());
        };
        let joined = wal::MODE.join(&self.switching(&membership));
        if matches!(joined, Ok(Some(_))) {
            membership.lead(wal::MODE);
        }
        self.membership = Some(membership);
        // It is for another try, if it has left WAL mode again.
        let joined = joined?.ok_or(Code::BUSY)?;
        let carried = self.carried()?;
        self.database = joined;
        self.mode = wal::MODE;
        carried.set(&mut *self.database)?;
        self.database.lock(LockLevel::Shared)
    }
}
