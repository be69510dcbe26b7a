//! Carrying out the steps of a plan, each with a line that says it is done.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use dash_storage::real::{self, Real};
use dash_storage::{Directory as _, File as _, OpenMode, Storage as _};
use rusqlite::{Connection, MAIN_DB, OpenFlags};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use super::plan::Step;
use crate::Outcome;
use crate::extension::{Extension, escape};
use crate::failure::{Explain, Failure, Result};
use crate::integrity::{Verdict, check};
use crate::interrupt::Interrupt;
use crate::out::{Shown, say};
use crate::progress::{Moving, follow};

/// The permission bits of a new file.
const OWNERS: u32 = 0o600;

/// Runs all steps; a failure leaves what is done and says so.
pub fn run(steps: &[Step], extension: &Extension, interrupt: &Interrupt) -> Result<Outcome> {
    for step in steps {
        if interrupt.pressed() {
            return Err(Failure::new(format!("stopped before: {step}")));
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
        match step {
            Step::Open { file, .. } => say!("{} is recovered; integrity_check: ok", file.shown()),
            _ => say!("done: {step}"),
        }
    }
    // A plan that opens nothing has only saved what is there: the person has yet to choose.
    let recovered = steps.iter().any(|step| matches!(step, Step::Open { .. }));
    Ok(if recovered { Outcome::Good } else { Outcome::Bad })
}

/// Never replaces a file, and is durable when it returns.
fn rename(from: &Path, to: &Path) -> Result<()> {
    let what = format!("renaming {} to {}", from.shown(), to.shown());
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS) if to.symlink_metadata().is_err() => {
            fs::rename(from, to).explain(&what)?
        }
        other => other.explain(&what)?,
    }
    flush_folder(to)
}

/// Copies a file to a name that nobody has taken meanwhile, with the rights that it has itself.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let what = format!("copying {} to {}", from.shown(), to.shown());
    let bytes = from.metadata().explain(&what)?.len();
    follow(&what, bytes, Moving::Written, || {
        let source = open_named(from, OpenMode::Read)?;
        // It is its maker's alone until it has the owner and group that its permissions are meant
        // for.
        let copy = open_named(to, OpenMode::CreateNew { permissions: OWNERS })?;
        copy_into(&copy, &source)?;
        copy.copy_access(&source)?;
        copy.flush()
    })
    .explain(&what)?;
    flush_folder(to)
}

/// Writes a new database beside the old one and puts it in its place, durable at each step. No link
/// is followed that somebody puts under its name meanwhile.
fn rewrite(from: &Path, to: &Path) -> Result<()> {
    let what = format!("writing the content of {} anew", from.shown());
    let mut new = OsString::from(to);
    new.push(".recovering");
    let new = PathBuf::from(new);
    if new.symlink_metadata().is_ok() {
        return Err(Failure::new(format!(
            "{} is there from an earlier attempt: remove it and try again",
            new.shown()
        )));
    }
    // What is read has the rights, whatever has its name by the end.
    let source = open_named(from, OpenMode::Read).explain(&what)?;
    let made = open_named(&new, OpenMode::CreateNew { permissions: OWNERS }).explain(&what)?;
    let written = write_anew((&source, from), (&made, &new), &what);
    if written.is_err() {
        fs::remove_file(&new).explain(format!("removing the unfinished {}", new.shown()))?;
    }
    written?;
    take_place(&made, &new, &source, to).explain(&what)?;
    flush_folder(to)
}

/// Writes the content into a new file beside it. SQLite opens both by their names: where nobody
/// else can put another file meanwhile.
fn write_anew(
    (source, from): (&real::File, &Path),
    (made, new): (&real::File, &Path),
    what: &str,
) -> Result<()> {
    if keeps_names(&folder_path(new)).explain(what)? {
        return vacuum(from, new, what);
    }
    let temporary = std::env::temp_dir();
    if !keeps_names(&temporary).explain(what)? {
        return Err(Failure::new(format!(
            "{what}: other users may rename files in {}, and so in {}: set TMPDIR to a folder of yours",
            folder_path(new).shown(),
            temporary.shown()
        )));
    }
    let private = tempfile::tempdir_in(temporary).explain(what)?;
    let [copy, content] = ["copy", "content"].map(|name| private.path().join(name));
    let copied = open_named(&copy, OpenMode::CreateNew { permissions: OWNERS });
    copied.and_then(|copied| copy_into(&copied, source)).explain(what)?;
    vacuum(&copy, &content, what)?;
    open_named(&content, OpenMode::Read).and_then(|content| copy_into(made, &content)).explain(what)
}

/// Writes what SQLite reads of a file as it stands into another one.
fn vacuum(from: &Path, to: &Path, what: &str) -> Result<()> {
    let uri = format!("file:{}?immutable=1&mode=ro", escape(&without_links(from).explain(what)?));
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let db = Connection::open_with_flags(uri, flags).explain(what)?;
    let bytes = from.metadata().map_or(0, |found| found.len());
    let plain = format!("file:{}?vfs=unix", escape(&without_links(to).explain(what)?));
    let written =
        follow(what, bytes, Moving::Written, || db.execute("VACUUM INTO ?", [plain])).explain(what);
    written.map(drop)
}

/// Whether nobody but this user, root, and who owns a file may give its name in a folder to another
/// one; nor that of a folder on the way there.
fn keeps_names(folder: &Path) -> io::Result<bool> {
    let user = nix::unistd::geteuid().as_raw();
    for folder in folder.canonicalize()?.ancestors() {
        let found = folder.metadata()?;
        let is_sticky = found.mode() & 0o1000 != 0;
        if ![0, user].contains(&found.uid()) || !is_sticky && found.mode() & 0o022 != 0 {
            return Ok(false);
        }
    }
    Ok(true)
}

fn copy_into(copy: &real::File, source: &real::File) -> io::Result<()> {
    let (mut buffer, mut at) = (vec![0; 1 << 20], 0);
    loop {
        let read = source.read_at(&mut buffer, at)?;
        if read == 0 {
            return Ok(());
        }
        copy.write_at(&buffer[..read], at)?;
        at += read as u64;
    }
}

/// Gives a new file the rights of the one whose content it has, and its name; durably.
fn take_place(made: &real::File, new: &Path, like: &real::File, to: &Path) -> io::Result<()> {
    let (folder, name) = folder_of(new)?;
    let named = folder.metadata(&name)?.map(|named| named.id);
    if named != Some(made.id()) {
        return Err(io::Error::other(format!("{} was replaced meanwhile", new.shown())));
    }
    made.copy_access(like)?;
    made.flush()?;
    folder.rename(&name, to.file_name().unwrap_or_default())
}

/// The folder of a file, and its name there.
fn folder_of(path: &Path) -> io::Result<(real::Directory, OsString)> {
    let folder = path.parent().unwrap_or(Path::new(""));
    Ok((Real.open_directory(folder)?, path.file_name().unwrap_or_default().to_owned()))
}

fn folder_path(of: &Path) -> PathBuf {
    let folder = of.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new(".")).to_owned()
}

/// Opens a regular file, and follows no link to it.
fn open_named(path: &Path, mode: OpenMode) -> io::Result<real::File> {
    let (folder, name) = folder_of(path)?;
    folder.open(&name, mode)
}

/// The path without links on the way to its folder.
fn without_links(path: &Path) -> io::Result<PathBuf> {
    let folder = folder_path(path).canonicalize()?;
    Ok(folder.join(path.file_name().unwrap_or_default()))
}

/// Recovery by the engine's own table; an outcome if it ends the run.
fn open(file: &Path, extension: &Extension, interrupt: &Interrupt) -> Result<Option<Outcome>> {
    let db = extension.open(file, false)?;
    if db.is_readonly(MAIN_DB).explain("asking SQLite")? {
        let reason =
            extension.last_error().unwrap_or_else(|| "it is opened for reading".to_owned());
        return Err(Failure::new(format!("not mended: {reason}")));
    }
    let bytes = file.metadata().map_or(0, |found| found.len());
    let verdict = check(&db, &format!("checking {}", file.shown()), bytes, interrupt)?;
    db.close().map_err(|(_, error)| error).explain(format!("closing {}", file.shown()))?;
    Ok(match verdict {
        Verdict::Whole => None,
        Verdict::Damaged(lines) => {
            say!("{} was recovered, but integrity_check says: {lines}", file.shown());
            Some(Outcome::Bad)
        }
        Verdict::Interrupted => {
            let message = format!("{} was recovered; the check was stopped", file.shown());
            return Err(Failure::new(message));
        }
    })
}

fn flush_folder(of: &Path) -> Result<()> {
    let folder = folder_path(of);
    File::open(&folder)
        .and_then(|folder| folder.sync_all())
        .explain(format!("making the names in {} durable", folder.shown()))
}
