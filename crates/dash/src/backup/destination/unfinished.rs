//! The unfinished file beside DEST: made, locked while its backup lives, removed or given its name.

use std::io;
use std::path::PathBuf;

use dash_ffi::{Code, Error, Result};
use dash_storage::real;
use dash_storage::{Directory, File, FileId, FileKind, LockKind, OpenMode};

use super::{Destination, refused};

/// A lock on the unfinished file says that its backup lives. SQLite never locks there.
const LIVES: std::ops::Range<u64> = 0..1;

impl Destination {
    /// Takes the other name away from a copy whose maker was killed in [`Unfinished::rename`].
    pub(super) fn finish_killed(&self) -> Result<()> {
        let are_one = || -> Result<bool> {
            let copy = self.look_for(&self.name)?;
            let other = self.look_for(&self.unfinished)?;
            Ok(copy.is_some() && copy.map(|found| found.id) == other.map(|found| found.id))
        };
        if !are_one()? {
            return Ok(());
        }
        // Again, with the file held: between two looks a copy may have been replaced, and its
        // number given to a file that another backup has begun.
        match self.leftover()? {
            Some(Leftover::Dead(file)) if are_one()? => self.remove(&file),
            _ => Ok(()),
        }
    }

    /// Makes the unfinished file, with room for `len` bytes. One that a killed backup left is
    /// removed.
    ///
    /// # Errors
    ///
    /// `SQLITE_BUSY` while another backup to the same name lives; `SQLITE_FULL` if there is no
    /// room; `SQLITE_READONLY`.
    pub fn make(self, len: u64) -> Result<Unfinished> {
        self.remove_leftover()?;
        let mode = OpenMode::CreateNew { permissions: 0o600 };
        let file =
            self.folder.open(&self.unfinished, mode).map_err(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => self.is_under_way(),
                _ => self.failed("making", &error),
            })?;
        let locked = file.try_lock(LIVES, LockKind::Exclusive);
        if !locked.map_err(|error| self.failed("locking", &error))? || !self.is_ours(&file)? {
            return Err(self.is_under_way());
        }
        let unfinished = Unfinished { to: self, file, published: false };
        let room = unfinished.file.allocate(len);
        room.map_err(|error| unfinished.failed(&format!("reserving {len} bytes for"), &error))?;
        Ok(unfinished)
    }

    fn remove_leftover(&self) -> Result<()> {
        match self.leftover()? {
            None => Ok(()),
            Some(Leftover::Dead(file)) => self.remove(&file),
            Some(Leftover::Alive) => Err(self.is_under_way()),
        }
    }

    /// The unfinished file of another backup.
    fn leftover(&self) -> Result<Option<Leftover>> {
        let Some(found) = self.look_for(&self.unfinished)? else { return Ok(None) };
        let shown = self.path.with_file_name(&self.unfinished);
        if found.kind != FileKind::Regular {
            let message = format!("{} is in the way; remove it", shown.display());
            return Err(refused(Code::CANTOPEN, message));
        }
        let file = match self.folder.open(&self.unfinished, OpenMode::ReadWrite) {
            // It was another's, which is done.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.failed("opening what a killed backup left of", &error)),
            Ok(file) => file,
        };
        let dead = file.try_lock(LIVES, LockKind::Exclusive);
        let dead = dead.map_err(|error| self.failed("locking", &error))? && self.is_ours(&file)?;
        Ok(Some(if dead { Leftover::Dead(file) } else { Leftover::Alive }))
    }

    /// Takes its name away from the unfinished file, which the caller has locked: nobody else does.
    fn remove(&self, _locked: &real::File) -> Result<()> {
        let removed = self.folder.unlink(&self.unfinished);
        removed.map_err(|error| self.failed("removing what a killed backup left of", &error))
    }

    /// Whether the unfinished file is still this one.
    fn is_ours(&self, file: &real::File) -> Result<bool> {
        Ok(self.look_for(&self.unfinished)?.is_some_and(|found| found.id == file.id()))
    }

    fn is_under_way(&self) -> Error {
        let message =
            format!("another backup to {} is under way; wait for it", self.path.display());
        refused(Code::BUSY, message)
    }
}

/// What lies under the name of the unfinished file.
enum Leftover {
    /// Its backup was killed: here it is, locked.
    Dead(real::File),
    /// Its backup is under way.
    Alive,
}

/// The file until it is whole; removed when it is dropped before.
pub struct Unfinished {
    to: Destination,
    file: real::File,
    published: bool,
}

impl Unfinished {
    /// Its name.
    pub fn path(&self) -> PathBuf {
        self.to.path.with_file_name(&self.to.unfinished)
    }

    /// An error of it that says what was being done. Another backup that began at that moment may
    /// have removed it.
    pub fn failed(&self, what: &str, error: &io::Error) -> Error {
        match error.kind() {
            io::ErrorKind::NotFound => self.to.is_under_way(),
            _ => self.to.failed(what, error),
        }
    }

    /// It by its name. Who may rename in that folder can have put another file there.
    fn open(&self, mode: OpenMode) -> Result<real::File> {
        let opened = self.to.folder.open(&self.to.unfinished, mode);
        let file = opened.map_err(|error| self.failed("opening", &error))?;
        self.is_it(file.id())?;
        Ok(file)
    }

    /// That this is what was made.
    fn is_it(&self, id: FileId) -> Result<()> {
        match id == self.file.id() {
            true => Ok(()),
            false => {
                Err(self.failed("opening", &io::Error::other("somebody put another file there")))
            }
        }
    }

    /// The file, to be written.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn open_again(&self) -> Result<real::File> {
        self.open(OpenMode::ReadWrite)
    }

    /// The file as the disk has it, where it can be read past the page cache; else as it is there.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn to_read_back(&self) -> Result<real::File> {
        let file = self.open(OpenMode::Read)?;
        // Where that can't be, the cache answers: no reason to have no backup.
        drop(file.make_direct());
        Ok(file)
    }

    /// Gives it the access rights of the database `source`, or less, and its name; durably. Without
    /// `source` it stays its maker's alone.
    ///
    /// # Errors
    ///
    /// `SQLITE_CANTOPEN` if DEST has come meanwhile; the system's.
    pub fn publish(mut self, source: Option<&real::File>) -> Result<()> {
        if let Some(source) = source {
            let given = self.file.copy_access(source);
            given.map_err(|error| self.failed("setting the access rights of", &error))?;
        }
        self.to.has_nothing_beside()?;
        self.to.may_be_made()?;
        let named = self.to.look_for(&self.to.unfinished)?;
        named.map_or(Ok(()), |named| self.is_it(named.id))?;
        self.rename().map_err(|error| self.failed("naming", &error))?;
        self.published = true;
        self.to.folder.flush().map_err(|error| {
            let message = format!(
                "{} is whole, but flushing its folder failed ({error}): a power loss may take its name",
                self.to.path.display()
            );
            refused(Code::IOERR_DIR_FSYNC, message)
        })
    }

    /// Without `replace` whoever came first keeps the name, where the file system has hard links.
    fn rename(&self) -> io::Result<()> {
        let to = &self.to;
        if !to.replace {
            match to.folder.link(&to.unfinished, &to.name) {
                Ok(()) => return to.folder.unlink(&to.unfinished),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(error),
                Err(_) => {}
            }
        }
        to.folder.rename(&to.unfinished, &to.name)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // Somebody may have put another file there.
        if !self.published && self.to.is_ours(&self.file).unwrap_or(false) {
            drop(self.to.folder.unlink(&self.to.unfinished));
        }
    }
}
