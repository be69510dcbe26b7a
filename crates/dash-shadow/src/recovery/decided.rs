//! A transaction over several databases that was decided, its super-journal being gone, and is not
//! yet published in this one. A reader of the old state here may have read the new one in another
//! of those databases: so who begins to read finishes it where its writer died, as the next writer
//! would, and waits where the writer lives.
//!
//! A word of the coordination file says that such a commit is being made, so that all other reading
//! costs a load.

use crate::file::tail::Tail;
use crate::format::State;
use crate::mutation::{Mutation, broken};
use crate::names::Names;
use crate::shared::coordination::{Coordination, Word};
use dash_engine::coordination::read_coordination;
use dash_engine::error::{Context, Operation, Result};
use dash_engine::io::read_padded;
use dash_engine::open::open_if_there;
use dash_storage::{Directory, File, OpenMode, Storage};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::Ordering::SeqCst;

impl<F: File> Coordination<F> {
    /// Says whether the commit in flight is part of a transaction over several databases, once its
    /// block is in the shadow.
    pub(crate) fn set_of_several(&self, several: bool) {
        let sequence = if several { self.in_flight() } else { 0 };
        if self.word(Word::Several).load(SeqCst) != sequence {
            self.word(Word::Several).store(sequence, SeqCst);
            self.word(Word::HadSeveral).store(1, SeqCst);
        }
    }

    /// Whether there has been such a commit.
    pub(crate) fn has_had_several(&self) -> bool {
        self.word(Word::HadSeveral).load(SeqCst) != 0
    }

    /// Whether such a commit is in flight.
    pub(crate) fn is_of_several(&self) -> bool {
        let several = self.word(Word::Several).load(SeqCst);
        several != 0
            && several == self.in_flight()
            && several == self.current().sequence + 1
            && !broken(Mutation::DecidedNotRead)
    }
}

/// Whether a file holds the commit of this number, prepared under a super-journal that is gone.
pub(crate) fn decided<S: Storage>(
    storage: &S,
    file: &S::File,
    directory: &Path,
    sequence: u64,
    name: &str,
) -> Result<bool> {
    let tail = Tail::read(file, name)?;
    let Some(block) = tail.bound(file.id()) else {
        return Ok(false);
    };
    if block.state != State::Prepared || block.sequence != sequence {
        return Ok(false);
    }
    let path = directory.join(OsStr::from_bytes(&block.super_journal));
    let (parent, names) = Names::split(&path)?;
    let shown = path.display();
    // A folder that is gone is for the connection that recovers to complain about.
    let Ok(parent) = storage.open_directory(parent) else {
        return Ok(false);
    };
    Ok(parent.metadata(&names.db).during(Operation::Stat, shown)?.is_none())
}

/// The same for a process that may only read, and has no connection's files.
pub(crate) fn decided_beside<S: Storage>(
    storage: &S,
    directory: &S::Directory,
    directory_path: &Path,
    names: &Names,
) -> Result<bool> {
    let Some(file) = read_coordination::<S>(directory, names.coordination_file())? else {
        return Ok(false);
    };
    let word = |word: Word| {
        let mut bytes = [0; size_of::<u64>()];
        let place = (word as usize * size_of::<u64>()) as u64;
        read_padded(&file, &mut bytes, place)
            .during(Operation::Read, names.shown_coordination())
            .map(|()| u64::from_ne_bytes(bytes))
    };
    let several = word(Word::Several)?;
    if several == 0
        || several != word(Word::InFlight)?
        || several != (word(Word::Current)? >> 1) + 1
        || broken(Mutation::DecidedNotRead)
    {
        return Ok(false);
    }
    match open_if_there::<S>(directory, &names.shadow, OpenMode::Read)? {
        Some(shadow) => decided(storage, &shadow, directory_path, several, names.shown_shadow()),
        None => Ok(false),
    }
}
