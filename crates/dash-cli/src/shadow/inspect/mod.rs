//! What `sqlite-dash inspect` says of the two files, and who holds locks on them.

pub mod json;
mod kinds;
pub mod text;
pub mod words;

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use dash_shadow::Report;
use dash_shadow::inspect::LockedFile;
use dash_storage::FileId;

use crate::holders::{self, Held};

/// Locks of one file, and who holds them.
pub struct Holders {
    file: LockedFile,
    held: Vec<Held>,
}

/// Who holds locks on the files of a database.
pub fn holders_of(file: &Path, report: &Report) -> Vec<Holders> {
    if report.locks.is_empty() {
        return Vec::new();
    }
    let copies = [(LockedFile::Database, &report.database), (LockedFile::Shadow, &report.shadow)];
    let mut holders: Vec<Holders> = copies
        .into_iter()
        .filter_map(|(file, copy)| Some(Holders { file, held: holders::of(copy.as_ref()?.id) }))
        .collect();
    let coordination = file.with_file_name(&report.names.coordination);
    if let Some(id) = identity(&coordination) {
        holders.push(Holders { file: LockedFile::Coordination, held: holders::of(id) });
    }
    holders
}

fn identity(path: &Path) -> Option<FileId> {
    let found = path.metadata().ok()?;
    Some(FileId { device: found.dev(), inode: found.ino() })
}
