//! The VFS `dash`: which file goes where.
//!
//! | file | goes to |
//! |---|---|
//! | main database | [`crate::open`] |
//! | journal of a database in mode shadow | memory |
//! | the same, asked for the super-journal it names | a [`Marker`], while it is prepared |
//! | everything else: temporary files, statement journals, super-journals, journals of plain files | the host's VFS |

use std::ffi::CStr;
use std::path::Path;
use std::time::Duration;

use dash_ffi::{
    AccessCheck, Code, FileKind, FileName, HostVfs, OpenFlags, Opened, Result, SlotInfo, Vfs,
};

use crate::journal::Journal;
use crate::super_journal::Marker;
use crate::{leftovers, open, registry, wake};

/// Makes the VFS for one SQLite.
pub fn make(_slot: &SlotInfo) -> Box<dyn Vfs> {
    Box::new(Dash)
}

struct Dash;

impl Vfs for Dash {
    fn name(&self) -> &'static CStr {
        c"dash"
    }

    fn open(&self, host: &HostVfs, name: FileName<'_>, flags: OpenFlags) -> Result<Opened> {
        match (flags.kind(), name.path()) {
            (Some(FileKind::MainDb), _) => open::main_database(host, name, flags),
            (Some(FileKind::MainJournal), Some(path)) => match registry::of_journal(path) {
                Some(_) => {
                    let beside = path.parent().unwrap_or(Path::new("/")).to_path_buf();
                    let file = Box::new(Journal::new(beside));
                    Ok(Opened { file, flags })
                }
                None if path.is_dir() => Err(leftovers::fenced(path)),
                None => open::through_host(host, name, flags),
            },
            (Some(FileKind::SuperJournal), Some(path)) => match registry::of_journal(path) {
                Some(database) => {
                    let super_journal = database.super_journal().ok_or(Code::CANTOPEN)?;
                    let file = Box::new(Marker::new(&super_journal));
                    Ok(Opened { file, flags })
                }
                None => open::through_host(host, name, flags),
            },
            _ => open::through_host(host, name, flags),
        }
    }

    fn delete(&self, host: &HostVfs, path: &Path, sync_dir: bool) -> Result<()> {
        match registry::side_file_exists(path) {
            Some(_) => Ok(()),
            None => host.delete(path, sync_dir),
        }
    }

    fn access(&self, host: &HostVfs, path: &Path, check: AccessCheck) -> Result<bool> {
        match registry::side_file_exists(path) {
            Some(exists) => Ok(exists),
            None if registry::is_journal_of_readers(path) && is_no_journal(path) => Ok(false),
            None => host.access(path, check),
        }
    }

    fn sleep(&self, host: &HostVfs, time: Duration) -> Duration {
        wake::sleep(host, time)
    }
}

/// Whether something has a journal's name that can be none: a name fence; what opening would wait for.
fn is_no_journal(path: &Path) -> bool {
    let kind = path.symlink_metadata().map(|found| found.file_type());
    kind.is_ok_and(|kind| !kind.is_file() && !kind.is_symlink())
}
