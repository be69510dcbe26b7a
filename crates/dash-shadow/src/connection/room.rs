//! Space for both copies, before one of them grows: where the one can't follow the other, nothing
//! could be undone in it, nor could it be made anew, and every later write would be refused.

use crate::connection::state::Connection;
use crate::file::tail::{least_len, roomy_len};
use dash_engine::error::{Context, Error, Operation, Result};
use dash_storage::{File, Storage};
use std::io::{self, ErrorKind};

impl<S: Storage> Connection<S> {
    /// How long to make a shadow of `old` bytes for a database of `size` bytes and a list area of
    /// `list`: there is space for that in it, and for as much in the current copy. Where there is
    /// none for what is usual, no more than it takes.
    pub(crate) fn room_for_both(&mut self, old: u64, size: u64, list: u64) -> Result<u64> {
        let roomy = roomy_len(size, list, &self.tuning).max(old);
        let least = least_len(size, list).max(old);
        let slot = self.shadow_slot();
        let (shadow, name) = (self.pair.file(slot)?, self.role(slot));
        let (current, current_name) = (self.current_file()?, self.pair.names.shown());
        let end = current.metadata().during(Operation::Stat, current_name)?.len;
        if let Some(transaction) = &mut self.transaction {
            transaction.took_room = true;
        }
        let mut len = roomy;
        loop {
            let taken = match current.make_room(end..len.max(end)) {
                Ok(()) => shadow.make_room(old..len).during(Operation::Resize, &name),
                Err(error) => Err(error).during(Operation::Resize, current_name),
            };
            match taken {
                Err(error) if is_full(&error) => {
                    // What was taken in part.
                    give_room_back(&*current, current_name)?;
                    give_room_back(&*shadow, &name)?;
                    if len == least {
                        return Err(error);
                    }
                    len = least;
                }
                // What it can't say beforehand is said by the write.
                _ => return Ok(len),
            }
        }
    }

    /// A transaction ends without a commit: what it took for the current copy to grow is given
    /// back. What fails here is taken by a later commit.
    pub(crate) fn give_current_room_back(&self) {
        if let Ok(current) = self.current_file() {
            drop(give_room_back(&*current, self.pair.names.shown()));
        }
    }

    /// How long to make a file of `old` bytes for a database of `size` bytes, where so many copies
    /// of it are to be made: no longer than there is space for.
    pub(crate) fn affordable_len(&self, file: &S::File, old: u64, size: u64, copies: u64) -> u64 {
        let roomy = roomy_len(size, 0, &self.tuning);
        let free = file.free_space().map_or(u64::MAX, |free| free.saturating_add(old));
        let too_long = file.length_limit().is_ok_and(|limit| roomy > limit);
        let is_dear = too_long || roomy.saturating_mul(copies) > free;
        if is_dear { least_len(size, 0).max(old) } else { roomy }
    }
}

/// Blocks behind the end of a file go when its length is set, though to what it is.
fn give_room_back<F: File>(file: &F, name: &str) -> Result<()> {
    let len = file.metadata().during(Operation::Stat, name)?.len;
    file.set_len(len).during(Operation::Resize, name)
}

/// Whether there was no space, or this process may make no file so long.
pub(crate) fn is_full(error: &Error) -> bool {
    let Error::Io { source, .. } = error else { return false };
    use ErrorKind as Kind;
    matches!(source.kind(), Kind::StorageFull | Kind::QuotaExceeded | Kind::FileTooLarge)
}

/// No space for a second copy: what to do about that.
pub(crate) fn with_advice(error: Error, size: u64) -> Error {
    if !is_full(&error) {
        return error;
    }
    match error {
        Error::Io { operation, name, source } => {
            let make = match source.kind() {
                ErrorKind::FileTooLarge => "start the program with a larger ulimit -f",
                _ => "make space for it",
            };
            let text = format!(
                "{source}: mode shadow has to make a second copy of {} KiB there before anything can be written; {make}, or \
                 leave the mode with PRAGMA journal_mode=delete",
                size.div_ceil(1024)
            );
            Error::Io { operation, name, source: io::Error::new(source.kind(), text) }
        }
        error => error,
    }
}
