//! Attaching to `-shm`, beside those that have it.

use crate::connection::files::Files;
use crate::index::{Index, Others};
use crate::mutation::{Mutation, broken};
use crate::shared::coordination::Word;
use crate::shared::locks::OPEN;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_storage::{File, LockKind, Storage};
use std::time::Duration;

/// For how long whoever attaches the index waits for others of dash that have it for themselves,
/// and for somebody who closes and flushes.
const SHORT_PATIENCE: Duration = Duration::from_millis(10);
const PATIENCE: Duration = Duration::from_secs(10);

/// How often it is tried.
const PAUSE: Duration = Duration::from_micros(200);

impl<S: Storage> Files<S> {
    /// Attaches to `-shm`. Whether nobody else of dash has it: then nobody at all gets in, until
    /// [`Index::readmit`]; and where a session was left it is as it was left, until
    /// [`Index::settle`]. Else nobody of stock SQLite has written since they looked, or the next
    /// connection that takes WRITER looks (WAL-50).
    ///
    /// # Errors
    ///
    /// `Busy` where a stock program writes; nobody is refused for somebody of dash who looks at
    /// what it has found, or who closes ([`Connection::close`]). Those of the files.
    pub fn attach_index(&self) -> Result<(Index<S>, bool)> {
        let (mut attached, mut waited) = (None, Duration::ZERO);
        loop {
            let opened = attached.take().map_or_else(|| self.open_shm(), Ok);
            match opened {
                Err(Error::Busy) => {}
                Err(error) => return Err(self.explained(error)),
                Ok(mut opened) => match opened.exclude()? {
                    Others::Nobody => return Ok((opened, true)),
                    Others::Some => match opened.readmit() {
                        Err(Error::Busy) => attached = Some(opened),
                        shared => return shared.map(|()| (opened, false)),
                    },
                    Others::Stock => attached = Some(opened),
                },
            }
            let open = self.shared.file.lock_conflict(OPEN, LockKind::Exclusive);
            let closes = open.during(Operation::Lock, self.names.shown_coordination())?.is_some();
            if waited >= if closes { PATIENCE } else { SHORT_PATIENCE } {
                return Err(Error::Busy);
            }
            self.storage.sleep(PAUSE);
            waited += PAUSE;
        }
    }

    /// Opens it. What it says of a session that was left is asked for before it is emptied
    /// (WAL-16).
    fn open_shm(&self) -> Result<Index<S>> {
        let (directory, name) = (&*self.directory, &self.names.shm);
        let empties = !self.shared.is(Word::Session) || broken(Mutation::IndexEmptied);
        let database = &**self.database.file();
        let mut opened = Index::open(&self.storage, directory, name, database, empties)?;
        opened.let_in(self.stock());
        Ok(opened)
    }
}
