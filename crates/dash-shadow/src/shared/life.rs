//! Who is alive: the locks LIFE and RESERVED of a file, and whether somebody else has it open.

use crate::mutation::{Mutation, broken};
use crate::shared::locks;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_engine::locks::{keep_stock_writers_out, share};
use dash_storage::{File, LockKind};
use std::time::Duration;

/// How often it is looked whether a process is gone that has given up ALIVE, and not yet LIFE.
pub(crate) const LOOKS_AT_LIFE: usize = 200;

/// For how long it is waited each time.
pub(crate) const LIFE_PAUSE: Duration = Duration::from_micros(500);

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

/// Refuses a coordination file with other rights than `app.db`, which a chmod may have changed
/// while it is open, where nobody has that open, as LIFE tells: who has only a lock in the
/// coordination file may have put it there.
pub(crate) fn refuse_others_memory<F: File>(file: &F, db: &F, shown: [&str; 2]) -> Result<()> {
    let [db_name, name] = shown;
    let alive = db.lock_conflict(locks::LIFE, LockKind::Exclusive);
    if alive.during(Operation::Lock, db_name)?.is_some()
        || file.has_access_of(db).during(Operation::Stat, db_name)?
    {
        return Ok(());
    }
    Err(Error::Held(format!(
        "somebody holds a lock on {name}, who does not have {db_name} open, and that file has other rights than {db_name}: lslocks tells who it \
         is; end that, or remove {name}"
    )))
}
