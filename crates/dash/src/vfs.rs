//! The VFS `dash`: which file goes where.
//!
//! | file | goes to |
//! |---|---|
//! | main database | [`crate::open`]; the copy of a backup under way: [`crate::backup`]; what statements are run again on: [`crate::rerun`] |
//! | journal or log beside one | its mode ([`crate::mode::Mode::open_beside`]), if that keeps it |
//! | super-journal | the host's VFS; what it lists is checked by [`crate::together`] |
//! | everything else: temporary files, statement journals, journals of plain files | the host's VFS |

use std::ffi::CStr;
use std::path::Path;
use std::time::Duration;

use dash_ffi::{
    AccessCheck, Code, FileKind, FileName, FullPathname, HostVfs, OpenFlags, Opened, Result,
    SlotInfo, Vfs,
};

use dash_storage::real;

use crate::holders::name_holders;
use crate::mode::registry;
use crate::own_file::Journal;
use crate::{backup, errors, errors_to, leftovers, open, refused, rerun, together, wake};

/// Makes the VFS for one SQLite.
pub fn make(_slot: &SlotInfo) -> Box<dyn Vfs> {
    real::keep_out(dash_ffi::while_nobody_opens);
    dash_ffi::hear_with(errors_to::hear);
    errors_to::check();
    Box::new(Dash)
}

struct Dash;

impl Vfs for Dash {
    fn name(&self) -> &'static CStr {
        c"dash"
    }

    fn open(&self, host: &HostVfs, name: FileName<'_>, flags: OpenFlags) -> Result<Opened> {
        let (kind, path) = match (flags.kind(), name.path()) {
            (Some(FileKind::MainDb), Some(path)) if let Some(copy) = backup::open(path, flags) => {
                return Ok(copy);
            }
            (Some(FileKind::MainDb), Some(path)) if let Some(pages) = rerun::open(path, flags) => {
                return Ok(pages);
            }
            (Some(FileKind::MainDb), Some(path)) => {
                errors_to::complain(host);
                refused::forget();
                let opened = open::main_database(host, name, flags);
                let named = |error| name_holders(path, errors::of_path(path, error));
                return opened.map_err(named);
            }
            (Some(FileKind::SuperJournal), Some(_)) if flags.contains(OpenFlags::CREATE) => {
                return together::make(host, name, flags);
            }
            (Some(FileKind::SuperJournal), Some(path))
                if together::is_kept(path) && !host.access(path, AccessCheck::Exists)? =>
            {
                return together::open_kept(host, flags);
            }
            (Some(kind), Some(path)) => (kind, path),
            _ => return open::through_host(host, name, flags),
        };
        match registry::open_beside(path, flags)? {
            Some(opened) => Ok(opened),
            None => {
                if kind == FileKind::MainJournal {
                    leftovers::refuse_odd_journal(path)?;
                    return Journal::open(host, name, path, flags);
                }
                open::through_host(host, name, flags)
            }
        }
    }

    fn delete(&self, host: &HostVfs, path: &Path, sync_dir: bool) -> Result<()> {
        match registry::delete_beside(path).unwrap_or_else(|| host.delete(path, sync_dir)) {
            Err(error) if error.code == Code::IOERR_DELETE_NOENT && together::is_kept(path) => {
                together::leave(path);
                Ok(())
            }
            other => other,
        }
    }

    fn access(&self, host: &HostVfs, path: &Path, check: AccessCheck) -> Result<bool> {
        match registry::exists_beside(path) {
            Some(exists) => Ok(exists),
            None => Ok(host.access(path, check)? || together::is_kept(path)),
        }
    }

    fn full_pathname(&self, host: &HostVfs, relative: &Path) -> Result<FullPathname> {
        let of_path = |error| errors::of_length(relative, host.max_pathname(), error);
        host.full_pathname(relative).map_err(of_path)
    }

    fn sleep(&self, host: &HostVfs, time: Duration) -> Duration {
        wake::sleep(host, time)
    }
}
