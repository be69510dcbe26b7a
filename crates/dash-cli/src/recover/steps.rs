//! Carrying out the steps of a plan, each with a line that says it is done.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
use rusqlite::{Connection, OpenFlags};

use super::plan::Step;
use crate::Outcome;
use crate::extension::{Extension, escape};
use crate::failure::{Explain, Failure, Result};
use crate::integrity::{Verdict, check};
use crate::interrupt::Interrupt;
use crate::out::say;
use crate::progress::{Moving, follow};

/// Runs all steps; a failure leaves what is done and says so.
pub fn run(steps: &[Step], extension: &Extension, interrupt: &Interrupt) -> Result<Outcome> {
    for step in steps {
        if interrupt.pressed() {
            say!("stopped before: {step}");
            return Ok(Outcome::Bad);
        }
        match step {
            Step::Rename { from, to } => rename(from, to)?,
            Step::Copy { from, to } => copy(from, to)?,
            Step::Rewrite { from, to } => rewrite(from, to)?,
            Step::Forget { file, by } | Step::Decide { file, by, .. } => by(file)?,
            Step::Open { file, .. } => {
                if let Some(outcome) = open(file, extension, interrupt)? {
                    return Ok(outcome);
                }
            }
        }
        say!("done: {step}");
    }
    // A plan that opens nothing has only saved what is there: the person has yet to choose.
    let recovered = steps.iter().any(|step| matches!(step, Step::Open { .. }));
    Ok(if recovered { Outcome::Good } else { Outcome::Bad })
}

/// Never replaces a file, and is durable when it returns.
fn rename(from: &Path, to: &Path) -> Result<()> {
    let what = format!("renaming {} to {}", from.display(), to.display());
    match renameat2(AT_FDCWD, from, AT_FDCWD, to, RenameFlags::RENAME_NOREPLACE) {
        Err(Errno::EINVAL | Errno::ENOSYS) if to.symlink_metadata().is_err() => {
            fs::rename(from, to).explain(&what)?
        }
        other => other.explain(&what)?,
    }
    flush_folder(to)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let what = format!("copying {} to {}", from.display(), to.display());
    let bytes = from.metadata().explain(&what)?.len();
    follow(&what, bytes, Moving::Written, || {
        let mut source = File::open(from)?;
        // It is its maker's alone until it has the owner and group that its permissions are meant
        // for.
        let mut copy =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(to)?;
        io::copy(&mut source, &mut copy)?;
        let theirs = source.metadata()?;
        let given = fchown(&copy, Some(theirs.uid()), Some(theirs.gid()))
            .or_else(|_| fchown(&copy, None, Some(theirs.gid())));
        let bits = theirs.mode() & if given.is_ok() { 0o777 } else { 0o700 };
        copy.set_permissions(Permissions::from_mode(bits))?;
        copy.sync_all()
    })
    .explain(&what)?;
    flush_folder(to)
}

/// Writes a new database beside the old one and puts it in its place, durable at each step.
fn rewrite(from: &Path, to: &Path) -> Result<()> {
    let what = format!("writing the content of {} anew", from.display());
    let mut new = OsString::from(to);
    new.push(".recovering");
    let new = PathBuf::from(new);
    if new.exists() {
        return Err(Failure::new(format!(
            "{} is there from an earlier attempt: remove it and try again",
            new.display()
        )));
    }
    let uri = format!("file:{}?immutable=1&mode=ro", escape(from));
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    let db = Connection::open_with_flags(uri, flags).explain(&what)?;
    let bytes = from.metadata().map_or(0, |found| found.len());
    let plain = format!("file:{}?vfs=unix", escape(&new));
    let written = follow(&what, bytes, Moving::Written, || db.execute("VACUUM INTO ?", [plain]));
    if written.is_err() && new.exists() {
        fs::remove_file(&new).explain(format!("removing the unfinished {}", new.display()))?;
    }
    written.explain(&what)?;
    File::open(&new).and_then(|file| file.sync_all()).explain(&what)?;
    fs::rename(&new, to).explain(&what)?;
    flush_folder(to)
}

/// Recovery by the engine's own table; an outcome if it ends the run.
fn open(file: &Path, extension: &Extension, interrupt: &Interrupt) -> Result<Option<Outcome>> {
    let db = extension.open(file, false)?;
    let bytes = file.metadata().map_or(0, |found| found.len());
    let verdict = check(&db, &format!("checking {}", file.display()), bytes, interrupt)?;
    db.close().map_err(|(_, error)| error).explain(format!("closing {}", file.display()))?;
    Ok(match verdict {
        Verdict::Whole => None,
        Verdict::Damaged(lines) => {
            say!("{} was recovered, but integrity_check says: {lines}", file.display());
            Some(Outcome::Bad)
        }
        Verdict::Interrupted => {
            say!("{} was recovered; the check was stopped", file.display());
            Some(Outcome::Bad)
        }
    })
}

fn flush_folder(of: &Path) -> Result<()> {
    let folder =
        of.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .explain(format!("making the names in {} durable", folder.display()))
}
