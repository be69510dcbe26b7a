//! Whose a log is. What statements carry is run by whoever opens the database next, so only from a
//! log that somebody has made who may write the database; and nothing is carried so in a log that
//! would not be taken for one (WAL-48). Frames in a log are like those in `-wal`: SQLite takes that
//! whoever has put it there.

use crate::names::Names;
use dash_engine::beside::{ROOT, is_of_a_writer};
use dash_engine::open::shell_word;
use dash_storage::{File, FileKind, Metadata};
use std::io;

/// The bits of those who are neither the owner nor of the group.
const ALL_OTHERS: u32 = 0o007;

/// Whose a log was found to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Whose {
    /// User id of the owner.
    pub owner: u32,
    /// Group id.
    pub group: u32,
    /// Whether that is somebody who may write the database, so that statements in it count.
    pub counts: bool,
}

impl Whose {
    /// Whose an open log is, beside this database.
    pub(crate) fn of<F: File>(log: &F, database: &F) -> io::Result<Self> {
        let found = log.metadata()?;
        let counts = is_one_file(&found) && is_of_a_writer(&found, database)?;
        Ok(Self { owner: found.owner, group: found.group, counts })
    }

    /// Why so many commits that statements carry are not run again, and what to do.
    pub(crate) fn refusal(&self, names: &Names, commits: usize) -> String {
        let (db, log) = (shell_word(&names.db), names.shown_log());
        let Self { owner, group, .. } = self;
        format!(
            "{log} holds {commits} commits by their statements alone (dash_commit=paper), and is not run: it belongs to user {owner}, \
             group {group}, and neither may write {db}. Where it is the log of {db}, give it the owner and the group of {db}; where \
             somebody has put it there, let `sqlite-dash recover {db} --discard` go on without it"
        )
    }
}

/// Whether a file belongs to the database's owner, and is no other one, too. He may name anybody in
/// the database's list, whose files are none of the database's for that.
pub(crate) fn belongs<F: File>(found: &Metadata, database: &F) -> io::Result<bool> {
    Ok(is_one_file(found) && found.owner == database.metadata()?.owner)
}

/// Whether a log has other rights than one that `user` makes now, if the database's owner has it or
/// the user is root; or lets in others whom the database keeps out. The database's rights were
/// changed, or it is another file of his. It is not given them (WAL-48).
pub(crate) fn is_misfit<F: File>(log: &F, database: &F, user: u32) -> io::Result<bool> {
    let (found, wanted) = (log.metadata()?, database.metadata()?);
    let is_anew = found.owner == wanted.owner || user == ROOT;
    let lets_in_more = found.permissions & !wanted.permissions & ALL_OTHERS != 0;
    Ok(lets_in_more || is_anew && !log.has_copied_access_of(database)?)
}

fn is_one_file(found: &Metadata) -> bool {
    found.kind == FileKind::Regular && found.links <= 1
}
