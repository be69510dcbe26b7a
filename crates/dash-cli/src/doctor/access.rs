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
use crate::engine::Findings;
use crate::engines;
use crate::out::Shown;

/// Files beside a database that a writer must be able to write.
const WRITTEN: [&str; 5] = ["-wal", "-shm", "-dashlog", "-shadow", "-dash"];

/// Those that must be everybody's whose the database is, as nobody makes them anew at rest.
const KEPT: [&str; 3] = ["-wal", "-dashlog", "-shadow"];

/// Bits of rights to read and write.
const RIGHTS: u32 = 0o666;

/// How a database that was cut off is mended.
pub fn mends(file: &Path) -> String {
    match is_read_only(file) {
        true => format!(
            "mount it for writing, or copy all of {}* to where it can be written and run `sqlite-dash recover` there",
            Path::new(file.file_name().unwrap_or_default()).shown()
        ),
        false => format!("sqlite-dash recover {}", file.shown()),
    }
}

/// How who may not write a database reads it.
fn reads(file: &Path, found: Option<&dyn Findings>) -> String {
    let has = |suffix| beside(file, suffix).metadata().is_ok_and(|it| it.is_dir() || it.len() > 0);
    let at_rest = found.filter(|found| !found.is_open());
    let is_cut_off = at_rest.is_some_and(Findings::is_cut_off);
    let is_wal = engines::beside(file).is_some_and(|engine| (engine.claims)(file));
    match is_read_only(file) {
        // As it stands it is an old state, or a torn one.
        true if is_cut_off || has("-wal") || has("-journal") => mends(file),
        true => "open it with mode=ro&immutable=1 in the URI".to_owned(),
        false if is_cut_off => {
            format!("who may write it mends it first: {}", mends(file))
        }
        // SQLite makes -shm to read it.
        false if is_wal && at_rest.is_some() && !has("-wal") => {
            "open it with mode=ro&immutable=1 in the URI as long as nobody writes it, or change its rights".to_owned()
        }
        false => "open it for reading (mode=ro), or change its rights".to_owned(),
    }
}

/// Looks at a database and what lies beside it.
pub fn examine(section: &mut Section, file: &Path, looked: Option<&dyn Findings>) {
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
        section.advise(Level::Warning, says, reads(file, looked));
    } else if !writes {
        let says =
            format!("{} may not write it: it belongs to {}", user(), named(found.uid().into()));
        section.advise(Level::Warning, says, reads(file, looked));
    }
    let closed = looked.filter(|found| !found.is_open());
    let is_cut_off = closed.is_some_and(Findings::is_cut_off);
    let is_at_rest = closed.is_some() && !is_cut_off;
    for suffix in WRITTEN {
        let side = beside(file, suffix);
        let Ok(other) = side.symlink_metadata() else { continue };
        let name = Path::new(side.file_name().unwrap_or_default()).shown();
        if !other.is_file() || other.nlink() > 1 {
            // A command would change the rights of what it leads to.
            let says = format!("{name} is another file, too, or none: dash does not use it");
            section.advise(Level::Warning, says, format!("remove it: rm {}", side.shown()));
            continue;
        }
        // A command that changes rights would follow a link that somebody puts there by then.
        let holds = !is_at_rest || suffix == "-wal" && other.len() > 0;
        let owner = named(found.uid().into());
        let remedy = match other.uid() == found.uid() || holds {
            true if is_cut_off => {
                format!("as root or {owner}: sqlite-dash recover {}", file.shown())
            }
            true => format!(
                "while nobody has it open, open it once through dash, as root or {owner}: sqlite-dash shell {} -- 'SELECT 1'",
                file.shown()
            ),
            false => format!(
                "while nobody has it open, remove it, as dash makes another one: rm {}",
                side.shown()
            ),
        };
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
