//! The sign that says where a log lies: read and written for one database (WAL-25).

use super::place::{Place, unlink};
use super::strayed::Strayed;
use super::whose::belongs;
use crate::mutation::{Mutation, broken};
use crate::sign::{self, Found, Sign};
use dash_engine::beside::make;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_engine::open::open_if_there;
use dash_storage::{Directory, File, OpenMode, Storage};

impl<S: Storage> Place<S> {
    /// Reads the sign of a database. `Err` in it: it is not followed. One that is void may be
    /// anybody's.
    pub(super) fn read_sign(&self) -> Result<std::result::Result<Option<Sign>, Strayed>> {
        let Ok(database) = self.database() else { return Ok(Ok(None)) };
        let Some(file) = open_if_there::<S>(&self.home, &self.names.log, OpenMode::Read)? else {
            return Ok(Ok(None));
        };
        let shown = self.names.log.to_string_lossy();
        let found = sign::examine(&file, &shown)?;
        let is_followed = match &found {
            Found::Sign(sign) if self.calls_void(sign) => true,
            Found::Nothing | Found::Log => true,
            Found::Sign(_) | Found::Damaged => is_theirs(&file, database, &shown)?,
        };
        Ok(match found {
            _ if !is_followed => Err(Strayed::Planted),
            Found::Nothing | Found::Log => Ok(None),
            Found::Sign(sign) => Ok(Some(sign)),
            Found::Damaged => Err(Strayed::Unreadable),
        })
    }

    /// Puts a sign under the log's name, in the place of what is there. Its content is durable, its
    /// name is not before the folder is flushed.
    pub(super) fn write_sign(&self, sign: &Sign) -> Result<()> {
        let (home, names, database) = (&*self.home, &self.names, self.database()?);
        let shown = names.log.to_string_lossy();
        let bytes = sign.encode()?;
        // What lies there was not finished, or is somebody else's.
        unlink(home, &names.new_sign, &shown)?;
        // Whoever may use the database may read where its log is; and follows no other sign.
        let file = make(home, &names.new_sign, database).during(Operation::Open, &*shown)?;
        if !is_theirs(&file, database, &shown)? {
            drop(home.unlink(&names.new_sign));
            return Err(Error::CantOpen(format!(
                "dash_log={}: {shown}, which says that, can't be given to the owner of {}, so nobody would follow it",
                sign.path.display(),
                names.shown()
            )));
        }
        file.write_at(&bytes, 0).during(Operation::Write, &*shown)?;
        file.flush().during(Operation::Flush, &*shown)?;
        home.rename(&names.new_sign, &names.log).during(Operation::Exchange, &*shown)
    }

    /// Changes a word of the sign that is there, durably, if that is still this one.
    pub(super) fn mark(&self, sign: &Sign, (at, word): (u64, Vec<u8>)) -> Result<()> {
        let (shown, mode) = (self.names.log.to_string_lossy(), OpenMode::ReadWrite);
        let file = self.home.open(&self.names.log, mode).during(Operation::Open, &*shown)?;
        if !is_theirs(&file, self.database()?, &shown)? {
            return Err(self.refusal(Strayed::Planted));
        }
        let is_it = |found: &Sign| (found.id, &found.path) == (sign.id, &sign.path);
        if !matches!(sign::examine(&file, &shown)?, Found::Sign(found) if is_it(&found)) {
            return Err(self.refusal(Strayed::Unreadable));
        }
        file.write_at(&word, at).during(Operation::Write, &*shown)?;
        file.flush().during(Operation::Flush, &*shown)
    }

    /// Says whose the log is that came with a copy of the database: a person has said so.
    pub fn keep_copied(&mut self, storage: &S) -> Result<()> {
        let owner = self.owner();
        let sign = self.sign.take().map(|sign| Sign { owner, ..sign });
        self.go(storage, sign)?;
        match (self.strayed()?, &self.sign) {
            (None, Some(sign)) => self.mark(sign, sign.owner_word()),
            (strayed, _) => Err(self.refusal(strayed.unwrap_or(Strayed::Lost))),
        }
    }

    /// Goes on as if there had never been a log elsewhere: removes the sign, durably. What that
    /// speaks of is left alone.
    pub fn forget(&mut self, storage: &S) -> Result<()> {
        let shown = self.names.log.to_string_lossy();
        unlink(&*self.home, &self.names.log, &shown)?;
        self.home.flush().during(Operation::FlushDirectory, &*shown)?;
        self.go(storage, None)
    }

    /// Removes a log in which nothing counts. Where it lies elsewhere the sign says first that it
    /// may be missing (WAL-27), and stays.
    pub fn retire(&mut self) -> Result<()> {
        if let Some(sign) = self.sign.take_if(|it| it.is_made && !broken(Mutation::RetiredEarly)) {
            let sign = Sign { is_made: false, ..sign };
            let marked = self.mark(&sign, sign.state_word());
            self.sign = Some(sign);
            marked?;
        }
        self.unlink()
    }
}

/// Whether a sign's file is of the database's owner.
fn is_theirs<F: File>(file: &F, database: &F, shown: &str) -> Result<bool> {
    let belongs = file.metadata().and_then(|found| belongs(&found, database));
    Ok(belongs.during(Operation::Stat, shown)? || broken(Mutation::PlantedSignFollowed))
}
