//! Who is alive: the locks LIFE and RESERVED of a file, and whether somebody else has it open.

use crate::mutation::{Mutation, broken};
use crate::shared::locks;
use dash_engine::error::{Context, Operation, Result};
use dash_engine::locks::{keep_stock_writers_out, share};
use dash_storage::{File, LockKind};

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

/// Whether somebody else has a file open. Where it can't be known: no.
pub(crate) fn open_elsewhere(file: Option<&impl File>) -> bool {
    !broken(Mutation::NameKeptFromStock)
        && file.is_some_and(|file| file.open_elsewhere().unwrap_or(false))
}

/// Takes LIFE and RESERVED, shared, on a file. `Busy` if a stock writer is in the way.
pub(crate) fn hold_life<F: File>(file: &F, name: &str) -> Result<()> {
    share(file, locks::LIFE, name)?;
    keep_stock_writers_out(file, name)
}
