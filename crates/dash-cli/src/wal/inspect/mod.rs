//! What `sqlite-dash inspect` says of a database in WAL mode, and who holds locks on its files.

pub mod json;
mod kinds;
pub mod text;
pub mod words;

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use dash_storage::FileId;
use dash_wal::Report;
use dash_wal::inspect::LockedFile;

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
    let names = &report.names;
    let files = [
        (LockedFile::Database, &names.db),
        (LockedFile::Index, &names.shm),
        (LockedFile::Coordination, &names.coordination),
    ];
    let held = files.into_iter().filter_map(|(locked, name)| {
        let found = file.with_file_name(name).metadata().ok()?;
        let id = FileId { device: found.dev(), inode: found.ino() };
        Some(Holders { file: locked, held: holders::of(id) })
    });
    held.collect()
}
