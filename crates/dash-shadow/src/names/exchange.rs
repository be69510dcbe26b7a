//! The exchange of the two names: in one step, or in three where the file system has no such step,
//! and what is found when somebody was stopped between two of them.
//!
//! The paper's three renames leave an instant without an `app.db`, in which a stock process that
//! opens it makes an empty one. So the first of the three gives the file a second name instead,
//! wherever files may have two.
//!
//! | state | `app.db` | `app.db-shadow` | `app.db-shadow-tmp` | finished by |
//! |---|---|---|---|---|
//! | linked | old | new | old, the same file | removing the second name |
//! | i | –, or an empty file of a stock process | new | old | undoing the first rename |
//! | ii | new | – | old | making the third |
//!
//! In state i a stock process may also make an `app.db` and write it. That is refused: which of the
//! two counts nobody can tell.

use crate::file::tail::Tail;
use crate::mutation::{Mutation, broken};
use crate::names::Names;
use crate::names::access::{Stranger, stranger_named};
use crate::refusal::Refusal;
use dash_engine::error::{Context, Operation, Result};
use dash_engine::open::open_if_there;
use dash_storage::{Directory, File, FileId, FileKind, Metadata, OpenMode, Storage};
use std::ffi::OsStr;
use std::io::{self, ErrorKind};

/// Exchanges `app.db` and `app.db-shadow`. Only under WRITER, or alone. After an error between two
/// steps both names are there again, as far as the file system still allows.
pub(crate) fn exchange<S: Storage>(directory: &S::Directory, names: &Names) -> io::Result<()> {
    match directory.exchange(&names.db, &names.shadow) {
        Err(error) if error.kind() == ErrorKind::Unsupported => {
            let renamed = put_aside(directory, names)
                .and_then(|()| directory.rename(&names.shadow, &names.db))
                .and_then(|()| directory.rename(&names.renaming, &names.shadow));
            if renamed.is_err() {
                // The first error is the one to report; the next writer tries again.
                drop(finish_renames::<S>(directory, names));
            }
            renamed
        }
        other => other,
    }
}

/// Gives `app.db` the temporary name too; instead of its own where it can't have both.
fn put_aside(directory: &impl Directory, names: &Names) -> io::Result<()> {
    let link = || directory.link(&names.db, &names.renaming);
    let linked = link().or_else(|error| match error.kind() {
        ErrorKind::AlreadyExists => directory.unlink(&names.renaming).and_then(|()| link()),
        _ => Err(error),
    });
    // Whatever the reason was, `rename` works without it or says it better.
    linked.or_else(|_| directory.rename(&names.db, &names.renaming))
}

/// What completes an exchange that was cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rest {
    /// In state linked.
    Unlink,
    /// In state i.
    ToDb,
    /// In state ii.
    ToShadow,
    /// What looks like state i, and the file beside an empty `app.db` is a stranger's: it would be
    /// taken for the database.
    Strange(Stranger),
    /// All three are files with content: none of these states, or state i written over.
    Odd,
}

/// What has the temporary name; a folder, a pipe or a link is none of ours.
pub(crate) fn aside<S: Storage>(
    directory: &S::Directory,
    names: &Names,
) -> Result<Option<Metadata>> {
    let found = directory.metadata(&names.renaming);
    let found = found.during(Operation::Stat, shown(&names.renaming))?;
    Ok(found.filter(|found| found.kind == FileKind::Regular))
}

/// Which of the three states the names are in, if they are in one.
fn rest<S: Storage>(directory: &S::Directory, names: &Names) -> Result<Option<Rest>> {
    let stat = |name: &OsStr| directory.metadata(name).during(Operation::Stat, shown(name));
    let Some(aside) = aside::<S>(directory, names)? else { return Ok(None) };
    Ok(match (stat(&names.db)?, stat(&names.shadow)?) {
        (Some(db), _) if db.id == aside.id => Some(Rest::Unlink),
        // A shadow that was being replaced by an empty file: that one, or the old one.
        (Some(_), Some(shadow)) if aside.len == 0 || shadow.len == 0 => Some(Rest::Unlink),
        // Who may make files here may make an `app.db` as well.
        (None, _) => Some(Rest::ToDb),
        (Some(db), Some(_)) if db.len == 0 && aside.len > 0 => {
            let stranger = stranger_named(directory, &aside, (&names.db, &db));
            match stranger.during(Operation::Open, names.shown())? {
                Some(stranger) => Some(Rest::Strange(stranger)),
                None => Some(Rest::ToDb),
            }
        }
        // It is a shadow then, and a stranger's is none (SHADOW-28).
        (Some(_), None) => Some(Rest::ToShadow),
        (Some(_), Some(_)) => Some(Rest::Odd),
    })
}

/// Whether the temporary name hides a copy of ours from an `app.db` that tells nothing of that
/// pair.
pub(crate) fn hides_a_copy<S: Storage>(directory: &S::Directory, names: &Names) -> Result<bool> {
    if rest::<S>(directory, names)? != Some(Rest::Odd) || broken(Mutation::HiddenCopyIgnored) {
        return Ok(false);
    }
    let tail = |name: &OsStr| -> Result<Option<(Tail, FileId)>> {
        let file = open_if_there::<S>(directory, name, OpenMode::Read)?;
        file.map(|file| Ok((Tail::read(&file, &shown(name))?, file.id()))).transpose()
    };
    let pair = match tail(&names.renaming)? {
        Some((aside, id)) => aside.bound(id).map(|block| block.pair),
        None => None,
    };
    let named = tail(&names.db)?.and_then(|(named, _)| named.commit.ok().map(|block| block.pair));
    Ok(pair.is_some() && pair != named)
}

/// Whether an exchange was cut off, or why what looks like that is not one to complete.
pub(crate) fn is_cut_off<S: Storage>(
    directory: &S::Directory,
    names: &Names,
) -> Result<std::result::Result<bool, Refusal>> {
    Ok(match rest::<S>(directory, names)? {
        Some(Rest::Strange(stranger)) => Err(Refusal::StrangeName(stranger)),
        Some(Rest::Odd) if hides_a_copy::<S>(directory, names)? => Err(Refusal::Hidden),
        rest => Ok(rest.is_some_and(|rest| rest != Rest::Odd)),
    })
}

/// Completes an exchange that was cut off. Only under WRITER, or alone. Returns whether there was
/// one. Refuses what nobody can complete.
pub(crate) fn finish_renames<S: Storage>(directory: &S::Directory, names: &Names) -> Result<bool> {
    let done = match rest::<S>(directory, names)? {
        None => return Ok(false),
        Some(Rest::Odd) if hides_a_copy::<S>(directory, names)? => {
            return Err(Refusal::Hidden.error(names));
        }
        Some(Rest::Strange(stranger)) => return Err(Refusal::StrangeName(stranger).error(names)),
        // Not ours: leave it.
        Some(Rest::Odd) => return Ok(false),
        Some(Rest::Unlink) => {
            keep_empty_files::<S>(directory, names)?;
            directory.unlink(&names.renaming)
        }
        Some(Rest::ToDb) => directory.rename(&names.renaming, &names.db),
        Some(Rest::ToShadow) => directory.rename(&names.renaming, &names.shadow),
    };
    done.during(Operation::Exchange, shown(&names.renaming))?;
    Ok(true)
}

/// Makes files without a byte durable, which take the place of older ones, before these lose their
/// last name: where inodes survive one by one all of them could be gone.
fn keep_empty_files<S: Storage>(directory: &S::Directory, names: &Names) -> Result<()> {
    let mut any = false;
    for name in [&names.db, &names.shadow] {
        let found = directory.metadata(name).during(Operation::Stat, shown(name))?;
        if found.is_some_and(|found| found.len == 0)
            && !broken(Mutation::EmptyFileNotFlushed)
            && let Some(file) = open_if_there::<S>(directory, name, OpenMode::ReadWrite)?
        {
            file.flush().during(Operation::Flush, shown(name))?;
            any = true;
        }
    }
    if any { directory.flush().during(Operation::FlushDirectory, shown(&names.db)) } else { Ok(()) }
}

/// What `app.db` stands for, and the name it has right now: in state i the temporary one.
pub(crate) fn look_up_db<'n, S: Storage>(
    directory: &S::Directory,
    names: &'n Names,
) -> Result<Option<(&'n OsStr, Metadata)>> {
    let stat = |name: &OsStr| directory.metadata(name).during(Operation::Stat, shown(name));
    if let Some(found) = stat(&names.db)?.filter(|found| found.len > 0) {
        return Ok(Some((&names.db, found)));
    }
    match rest::<S>(directory, names)? {
        Some(Rest::ToDb) => {
            if let Some(found) = stat(&names.renaming)? {
                return Ok(Some((&names.renaming, found))); // empty before its first commit
            }
        }
        Some(Rest::Strange(stranger)) => return Err(Refusal::StrangeName(stranger).error(names)),
        _ => {}
    }
    // Empty; or the renames have been completed in between.
    Ok(stat(&names.db)?.map(|found| (names.db.as_os_str(), found)))
}

/// Opens what `app.db` stands for, whatever its name is right now.
pub(crate) fn open_db<S: Storage>(
    directory: &S::Directory,
    names: &Names,
    mode: OpenMode,
) -> Result<Option<S::File>> {
    for _ in 0..3 {
        let Some((name, _)) = look_up_db::<S>(directory, names)? else {
            return Ok(None);
        };
        // Gone again if the renames have just been completed.
        if let Some(file) = open_if_there::<S>(directory, name, mode)? {
            return Ok(Some(file));
        }
    }
    Ok(None)
}

/// How many names `app.db` has beside its own and that of an exchange that goes on right now.
pub(crate) fn other_links<S: Storage>(directory: &S::Directory, names: &Names) -> Result<u64> {
    let mut others = 0;
    for _ in 0..LOOKS {
        let stat = |name: &OsStr| directory.metadata(name).during(Operation::Stat, shown(name));
        others = stat(&names.db)?.map_or(0, |db| db.links.saturating_sub(1));
        if others == 0 {
            break;
        }
        let (db, aside) = (stat(&names.db)?, stat(&names.renaming)?);
        if let (Some(db), Some(aside)) = (db, aside)
            && db.id == aside.id
        {
            others = db.links.saturating_sub(2);
            break;
        }
    }
    Ok(others)
}

/// How often names that others exchange meanwhile are looked at.
const LOOKS: usize = 16;

fn shown(name: &OsStr) -> std::borrow::Cow<'_, str> {
    name.to_string_lossy()
}

/// What the kernel answers in a folder with the sticky bit to who owns neither that nor the files.
const EPERM: i32 = 1;

/// Says so, and what to do.
pub(crate) fn advised(error: std::io::Error) -> std::io::Error {
    match error.raw_os_error() {
        Some(EPERM) => std::io::Error::new(
            error.kind(),
            format!(
                "{error}: in a folder with the sticky bit, such as /tmp, only the owner of the folder or of both copies may; \
                 use mode wal there (PRAGMA journal_mode=wal)"
            ),
        ),
        _ => error,
    }
}
