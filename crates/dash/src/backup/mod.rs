//! `dash_backup(path [, schema [, 'replace']])`: one committed state of a database as a plain file.
//!
//! | step | the source is held | what is there if it ends here |
//! |---|---|---|
//! | who asks is looked at ([`leave`]), and DEST ([`destination`]) | no | nothing |
//! | a read transaction begins, space is reserved | yes | `DEST.dash-backup-unfinished` |
//! | pages are copied, each with its checksum ([`copy`]) | yes | the same |
//! | the file is flushed, read back and compared, and checked by SQLite | no | the same |
//! | it gets the access rights of what was read and its name, the folder is flushed | no | DEST |
//!
//! An error removes the unfinished file; after a kill the next backup to DEST does.

mod copy;
mod destination;
mod leave;

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dash_engine::locks::SHARED;
use dash_ffi::{Code, ConnectionRef, Context, Error, Result, Snapshot, Value};
use dash_storage::real::{self, Real};
use dash_storage::{Directory as _, File as _, FileId, OpenMode, Storage as _};

use copy::{Copy, FirstPage};
use destination::Destination;
use leave::Leave;

use crate::main_file::MainFile;

pub use copy::open;

/// How the third argument says that DEST may be there already.
const REPLACE: &str = "replace";

/// Where SQLite's header has its change counter, in rollback modes.
const CHANGE_COUNTER: usize = 24;

/// The SQL function.
pub fn dash_backup(context: &mut Context<'_>) -> Result<Value> {
    let mut arguments = context.args().iter();
    let path = match arguments.next() {
        Some(Value::Text(path)) => PathBuf::from(path),
        Some(Value::Blob(path)) => PathBuf::from(OsString::from_vec(path.clone())),
        _ => return Err(refused("dash_backup(path): the path is a text")),
    };
    let schema = match arguments.next() {
        None => "main",
        Some(Value::Text(schema)) => schema,
        Some(_) => return Err(refused("dash_backup(path, schema): the schema is a text")),
    };
    let replace = match arguments.next() {
        None => false,
        Some(Value::Text(word)) if word == REPLACE => true,
        Some(_) => {
            let message = "dash_backup(path, schema, 'replace'): no other third argument is known";
            return Err(refused(message));
        }
    };
    let connection = context.connection();
    let leave = Leave::of(connection, schema, replace)?;
    let source = connection.path(schema);
    let allow = |folder: &real::Directory, shown: &Path| {
        leave.allows(shown, || has_source(connection, schema, folder))
    };
    let destination = Destination::look(&path, source.as_deref(), replace, allow)?;
    back_up(connection, schema, destination).map(|pages| i64::from(pages).into())
}

fn refused(message: impl Into<String>) -> Error {
    Error::new(Code::ERROR, message)
}

fn back_up(connection: &ConnectionRef<'_>, schema: &str, to: Destination) -> Result<u32> {
    let snapshot = snapshot(connection, schema)?;
    let mode = connection.pragma(schema, "journal_mode");
    let page_size = number(connection, schema, "page_size")?;
    crate::summed::refuse_backup(connection, schema, page_size)?;
    let pages = number(connection, schema, "page_count")?;
    let first = FirstPage {
        schema_version: number(connection, schema, "schema_version")?,
        change_counter: match mode.as_deref() {
            // There it tells nothing of the state.
            Some("wal") => None,
            _ => change_counter(connection, schema),
        },
    };
    let source = opened(connection, schema);
    let file = to.make(u64::from(pages) * u64::from(page_size))?;
    let copy = Copy::new(file.path(), file.open_again()?, page_size, first);
    fill(&copy, &snapshot, page_size).map_err(|error| copy.cause(error))?;
    // Writers need not make way for it any more.
    drop(snapshot);
    copy.finish().map_err(|error| file.failed("flushing", &error))?;
    let len = copy.len();
    copy.compare(&file.to_read_back()?, || connection.may_go_on())?;
    check(connection, &copy)?;
    let pages = u32::try_from(len / u64::from(page_size)).unwrap_or(u32::MAX);
    file.publish(source.as_ref())?;
    Ok(pages)
}

/// How often the name of a file is looked at, which somebody may be changing.
const LOOKS: usize = 32;

/// The file that is read, if it still has its name. Whoever may rename in its folder can have put
/// another one there, whose rights are not the copy's.
fn opened(connection: &ConnectionRef<'_>, schema: &str) -> Option<real::File> {
    let path = connection.path(schema)?;
    let folder = Real.open_directory(path.parent()?).ok()?;
    let file = folder.open(path.file_name()?, OpenMode::Read).ok()?;
    is_read(connection, schema, (&path, &file)).then_some(file)
}

/// Whether a folder has the file that is read, under its only name. A path may lead to another
/// folder at any time, and to that one again.
fn has_source(
    connection: &ConnectionRef<'_>,
    schema: &str,
    folder: &real::Directory,
) -> Result<bool> {
    let _held = snapshot(connection, schema)?;
    let Some(path) = connection.path(schema) else { return Ok(false) };
    let Some(name) = path.file_name() else { return Ok(false) };
    // Commits may exchange it for the other copy between two of these steps.
    Ok((0..LOOKS).any(|_| {
        folder.open(name, OpenMode::Read).is_ok_and(|file| {
            let found = folder.metadata(name).ok().flatten();
            let is_alone = found.is_some_and(|found| found.id == file.id() && found.links == 1);
            is_alone && is_read(connection, schema, (&path, &file))
        })
    }))
}

/// Whether a file is the one that is read, which is held. Where SQLite's own VFS has it open, it is
/// known by SQLite's lock that this process has on it, as it may have on others, and by SQLite's
/// own look whether it has moved. The names may change between two looks, but not each time: both
/// go by the whole path, as somebody may exchange the folder, too.
fn is_read(
    connection: &ConnectionRef<'_>,
    schema: &str,
    (path, file): (&Path, &real::File),
) -> bool {
    let is_of = connection
        .with_file_below(schema, |main| main.downcast_mut::<MainFile>()?.database.is_of(file.id()));
    let is_locked = || {
        let own = i32::try_from(std::process::id()).ok();
        let owners = file.lock_owners(SHARED);
        owners.is_ok_and(|owners| owners.into_iter().any(|owner| Some(owner) == own))
    };
    let is_named = || {
        path.symlink_metadata().is_ok_and(|found| {
            let id = FileId { device: found.dev(), inode: found.ino() };
            id == file.id() && found.nlink() == 1
        }) && connection.has_moved(schema) == Some(false)
    };
    let is_known = || is_locked() && (0..LOOKS).all(|_| is_named());
    is_of.flatten().unwrap_or_else(is_known)
}

fn snapshot<'a>(connection: &'a ConnectionRef<'a>, schema: &str) -> Result<Snapshot<'a>> {
    if connection.is_written(schema) == Some(true) {
        return Err(refused(format!(
            "dash_backup: this connection is writing {schema}; COMMIT or ROLLBACK first, or use another connection"
        )));
    }
    let snapshot = connection.snapshot(schema);
    snapshot
        .map_err(|error| Error::new(error.code, format!("dash_backup: reading {schema}: {error}")))
}

fn fill(copy: &Arc<Copy>, snapshot: &Snapshot<'_>, page_size: u32) -> Result<()> {
    let _running = copy.running();
    snapshot.copy(copy.path(), c"dash", page_size)
}

fn number(connection: &ConnectionRef<'_>, schema: &str, pragma: &str) -> Result<u32> {
    let answer = connection.pragma(schema, pragma).and_then(|answer| answer.parse().ok());
    answer.ok_or_else(|| refused(format!("dash_backup: PRAGMA {schema}.{pragma} has no answer")))
}

/// The source's own, which SQLite would begin anew in the copy.
fn change_counter(connection: &ConnectionRef<'_>, schema: &str) -> Option<u32> {
    let mut header = [0; CHANGE_COUNTER + 4];
    let read = connection.with_file(schema, |file| file.read(&mut header, 0))?;
    let bytes = header[CHANGE_COUNTER..].first_chunk()?;
    read.is_ok_and(|read| read == header.len()).then(|| u32::from_be_bytes(*bytes))
}

/// `PRAGMA integrity_check` on the copy, in a connection of its own.
fn check(connection: &ConnectionRef<'_>, copy: &Arc<Copy>) -> Result<()> {
    let _running = copy.running();
    let ask = |sql| connection.ask_elsewhere(copy.path(), c"dash", sql);
    let lines = match ask("PRAGMA integrity_check(5)") {
        // An index may need a collation, a function or a module that only the program has.
        Err(error) if error.code == Code::ERROR => match ask("PRAGMA quick_check(5)") {
            Err(error) if error.code == Code::ERROR => return Ok(()),
            other => other,
        },
        other => other,
    };
    let found = match lines {
        Ok(lines) if lines == ["ok"] => return Ok(()),
        Ok(lines) => lines.join("; "),
        Err(error) if error.code.primary() == Code::CORRUPT => error.to_string(),
        Err(error) => return Err(copy.cause(error)),
    };
    Err(Error::new(
        Code::CORRUPT,
        format!(
            "dash_backup: the copy is the same as the database, and both are damaged: {found}; nothing was left. Restore an older \
             backup, or save what can be read with the .recover of sqlite3"
        ),
    ))
}
