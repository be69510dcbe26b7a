//! What the user who runs the doctor may do with a database's files, and whether others may do the
//! same.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use dash_storage::real::is_read_only;
use nix::unistd::AccessFlags;

use super::finding::{Level, Section};
use super::names::beside;
use crate::access::{may, named, user};
use crate::out::Shown;

/// Files beside a database that a writer must be able to write.
const WRITTEN: [&str; 5] = ["-wal", "-shm", "-dashlog", "-shadow", "-dash"];

/// Those that must be everybody's whose the database is, as nobody makes them anew at rest.
const KEPT: [&str; 3] = ["-wal", "-dashlog", "-shadow"];

/// Bits of rights to read and write.
const RIGHTS: u32 = 0o666;

/// Looks at a database and what lies beside it.
pub fn examine(section: &mut Section, file: &Path) {
    let Ok(found) = file.metadata() else { return };
    if !may(file, AccessFlags::R_OK) {
        let says =
            format!("{} may not read it: it belongs to {}", user(), named(found.uid().into()));
        section.advise(Level::Refused, says, "run this as a user who may, or change its rights");
        return;
    }
    let writes = may(file, AccessFlags::W_OK);
    if is_read_only(file) {
        let says = "it can't be written: the file system is mounted read-only";
        section.advise(Level::Warning, says, "open it with mode=ro&immutable=1 in the URI");
    } else if !writes {
        let says =
            format!("{} may not write it: it belongs to {}", user(), named(found.uid().into()));
        section.advise(Level::Warning, says, "open it for reading (mode=ro), or change its rights");
    }
    for suffix in WRITTEN {
        let side = beside(file, suffix);
        let Ok(other) = side.symlink_metadata() else { continue };
        let name = side.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !other.is_file() || other.nlink() > 1 {
            // A command would change the rights of what it leads to.
            let says = format!("{name} is another file, too, or none: dash does not use it");
            section.advise(Level::Warning, says, format!("remove it: rm {}", side.shown()));
            continue;
        }
        let remedy = format!(
            "while nobody has it open: chown -h --reference={0} {1} && chmod --reference={0} {1}",
            file.shown(),
            side.shown()
        );
        if writes && !may(&side, AccessFlags::W_OK) {
            let says = format!("{} may write the database, but not {name}", user());
            section.advise(Level::Warning, says, remedy);
        } else if KEPT.contains(&suffix) && !is_as_open(&other, &found) {
            let says = format!(
                "{name} is {}, the database is {}: who may use one may not use the other",
                shown(&other),
                shown(&found)
            );
            section.advise(Level::Warning, says, remedy);
        }
    }
}

/// Whether the same users may read and write both.
fn is_as_open(one: &Metadata, other: &Metadata) -> bool {
    let rights = |of: &Metadata| (of.uid(), of.gid(), of.mode() & RIGHTS);
    rights(one) == rights(other)
}

fn shown(found: &Metadata) -> String {
    format!("{:04o} of {}, group {}", found.mode() & 0o7777, named(found.uid().into()), found.gid())
}
