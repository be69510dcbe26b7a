//! Whose a log is. An engine has what is in it run only if it is of somebody who may write the
//! database, and puts nothing of the kind into one that would not be taken for that (WAL-48).

use dash_engine::beside::{ROOT, is_of_a_writer};
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
    /// Whether that is somebody who may write the database, so that what is to be run counts.
    pub counts: bool,
}

impl Whose {
    /// Whose an open log is, beside this database.
    pub fn of<F: File>(log: &F, database: &F) -> io::Result<Self> {
        let found = log.metadata()?;
        let counts = is_one_file(&found) && is_of_a_writer(&found, database)?;
        Ok(Self { owner: found.owner, group: found.group, counts })
    }
}

/// Whether a file belongs to the database's owner, and is no other one, too. He may name anybody in
/// the database's list, whose files are none of the database's for that.
pub(super) fn belongs<F: File>(found: &Metadata, database: &F) -> io::Result<bool> {
    Ok(is_one_file(found) && found.owner == database.metadata()?.owner)
}

/// Whether a log has other rights than one that `user` makes now, if the database's owner has it or
/// the user is root; or lets in others whom the database keeps out. The database's rights were
/// changed, or it is another file of his. It is not given them (WAL-48).
pub(super) fn is_misfit<F: File>(log: &F, database: &F, user: u32) -> io::Result<bool> {
    let (found, wanted) = (log.metadata()?, database.metadata()?);
    let is_anew = found.owner == wanted.owner || user == ROOT;
    let lets_in_more = found.permissions & !wanted.permissions & ALL_OTHERS != 0;
    Ok(lets_in_more || is_anew && !log.has_copied_access_of(database)?)
}

fn is_one_file(found: &Metadata) -> bool {
    found.kind == FileKind::Regular && found.links <= 1
}
