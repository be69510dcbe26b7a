//! What SQLite may say when a call has failed, and what must be found afterwards.

use rusqlite::ffi;

use super::call::Kind;
use super::inject::{Effect, Fault, Met};
use super::said::Said;
use super::stage::{Stage, sound_state};
use crate::engines::named;
use crate::sqlite::{self, Wrong};

/// Extended codes that fit a failed call, beside plain `SQLITE_IOERR`.
fn fitting(kind: Kind) -> &'static [i32] {
    match kind {
        // The last one: a folder, to be flushed.
        Kind::Open | Kind::MakeDirectory => &[ffi::SQLITE_CANTOPEN, ffi::SQLITE_IOERR_DIR_FSYNC],
        Kind::Read => &[ffi::SQLITE_IOERR_READ],
        // The last one: zeros, to make a file longer.
        Kind::Write => &[ffi::SQLITE_IOERR_WRITE, ffi::SQLITE_IOERR_TRUNCATE],
        Kind::Flush => &[ffi::SQLITE_IOERR_FSYNC, ffi::SQLITE_IOERR_DIR_FSYNC],
        Kind::Resize => &[ffi::SQLITE_IOERR_TRUNCATE, ffi::SQLITE_IOERR_WRITE],
        Kind::Rename => &[],
        Kind::Remove => &[ffi::SQLITE_IOERR_DELETE],
        // The last three: how long a file is, asked to make it longer, and to store to its memory
        // and write that back.
        Kind::Stat => &[
            ffi::SQLITE_IOERR_FSTAT,
            ffi::SQLITE_IOERR_ACCESS,
            ffi::SQLITE_CANTOPEN,
            ffi::SQLITE_IOERR_TRUNCATE,
            ffi::SQLITE_IOERR_WRITE,
            ffi::SQLITE_IOERR_FSYNC,
        ],
        Kind::Lock => &[ffi::SQLITE_IOERR_LOCK],
        Kind::Map => &[ffi::SQLITE_IOERR_MMAP],
        Kind::Other => &[ffi::SQLITE_CANTOPEN, ffi::SQLITE_IOERR_WRITE],
    }
}

/// Whether an error is that of a call of the host's VFS. `told`: dash has told the fault's errno.
///
/// That VFS speaks in codes only. It takes an interrupted lock for one that is taken, a file that
/// it can't look at for one that is gone, and does not tell why a file could not be opened: what
/// dash told then is of a call before.
fn is_the_hosts(met: &[Met], said: &Said, told: bool) -> bool {
    let handed_on = said.dash.contains("stock SQLite could not");
    let not_opened = said.code & 0xff == ffi::SQLITE_CANTOPEN
        && met.len() > 1
        && met.last().is_some_and(|met| met.kind == Kind::Open);
    let of_super_journal = met.first().is_some_and(|met| met.file.contains("-mj"));
    !told || handed_on || not_opened || of_super_journal
}

/// Whether an error is one that this fault may lead to; `Err` says why not.
pub fn judge(fault: &Fault, met: &[Met], said: &Said, host: bool) -> Result<(), String> {
    let Some(first) = met.first() else {
        return Err(format!("an error without a fault: {said:?}"));
    };
    let wrong = |why: &str| Err(format!("{why}: {said:?} after {met:?}"));
    if said.message.is_empty() {
        return wrong("no message");
    }
    if said.is_panic() {
        return wrong("a panic");
    }
    let primary = said.code & 0xff;
    let errno = fault.effect.errno().map(|errno| format!("os error {errno}")).unwrap_or_default();
    let told = said.dash.contains(&errno);
    if fault.effect == Effect::Half {
        return wrong("an error where one would go on");
    }
    if host && is_the_hosts(met, said, told) {
        let its_own = [
            ffi::SQLITE_IOERR,
            ffi::SQLITE_CANTOPEN,
            ffi::SQLITE_FULL,
            ffi::SQLITE_BUSY,
            ffi::SQLITE_READONLY,
        ];
        let is_its_own = its_own.contains(&primary)
            // SQLite's names for what can't be read, and for an index that can't be locked.
            || (primary == ffi::SQLITE_CORRUPT && met.iter().any(|met| met.kind == Kind::Read))
            || (primary == ffi::SQLITE_PROTOCOL && met.iter().any(|met| met.kind == Kind::Lock));
        return if is_its_own { Ok(()) } else { wrong("a code that fits nothing") };
    }
    // A commit that is seen, and may not be durable: that it is not made good outweighs the reason.
    if told && primary == ffi::SQLITE_IOERR && said.is_in_doubt() {
        return Ok(());
    }
    if !told {
        return wrong("dash_last_error() does not tell the errno");
    }
    match fault.effect {
        // Whether the kernel carried it out is not known, and it must not be done twice.
        Effect::Interrupted
            if matches!(first.kind, Kind::Rename | Kind::Remove | Kind::MakeDirectory) => {}
        Effect::Half | Effect::Interrupted => return wrong("an error where one would go on"),
        Effect::HalfThen(_) | Effect::Error(libc::ENOSPC | libc::EDQUOT) => {
            if primary != ffi::SQLITE_FULL {
                return wrong("not SQLITE_FULL");
            }
        }
        _ if fault.forever || host => {
            let is_lock = primary == ffi::SQLITE_PROTOCOL && first.kind == Kind::Lock;
            if !is_lock && ![ffi::SQLITE_IOERR, ffi::SQLITE_CANTOPEN].contains(&primary) {
                return wrong("neither an I/O error nor a failed open");
            }
        }
        _ => {
            if said.code != ffi::SQLITE_IOERR && !fitting(first.kind).contains(&said.code) {
                return wrong("another code than the call's");
            }
        }
    }
    Ok(())
}

/// Opens what faults have left, when all is well again: what was acknowledged is there, and it can
/// be written, and closed to rest.
pub fn sound_again(stage: &mut Stage) -> Result<(), String> {
    let failed = |what: &str, error: &rusqlite::Error| {
        format!("{what}, when all is well again: {error}; {}", sqlite::last_error())
    };
    let (acknowledged, begun) = (stage.acknowledged, stage.begun);
    stage.open().map_err(|error| failed("opening", &error))?;
    let look = |db: &rusqlite::Connection| match sound_state(db) {
        Ok(state) if (acknowledged..=begun).contains(&state) => Ok(state),
        Ok(state) => Err(format!(
            "commit {state} is there, of {acknowledged} acknowledged and {begun} begun"
        )),
        Err(Wrong::Sql(error)) => Err(failed("reading", &error)),
        Err(Wrong::Content(what)) => Err(format!("content that was never committed: {what}")),
    };
    let state = look(stage.db())?;
    let mut newest = state;
    // Whether a transaction over two databases is there in both or in none.
    let engine = named(&stage.engine);
    let joins = engine.is_none_or(|engine| engine.subject().claims().several_databases);
    let mut stages = vec![stage.path.clone()];
    if stage.attached {
        stage.attach().map_err(|error| failed("attaching", &error))?;
        let other = sqlite::open(&stage.other(), &stage.parameters)
            .map_err(|error| failed("opening the other", &error))?;
        let beside = look(&other)?;
        if joins && beside != state {
            return Err(format!("half a transaction: commit {state} here, {beside} there"));
        }
        newest = newest.max(beside);
        other.close().map_err(|(_, error)| failed("closing the other", &error))?;
        stages.push(stage.other());
    }
    stage.begun = newest;
    let next = if newest == 0 { stage.make() } else { stage.commit(100) };
    next.map_err(|error| failed("writing", &error))?;
    stage.close().map_err(|error| failed("closing", &error))?;
    for path in stages {
        let stock = sqlite::open_stock(&path).map_err(|error| failed("stock: opening", &error))?;
        match sound_state(&stock) {
            Ok(seen) if seen == stage.acknowledged => {}
            other => {
                return Err(format!(
                    "at rest stock sees {other:?} instead of {}",
                    stage.acknowledged
                ));
            }
        }
    }
    Ok(())
}
