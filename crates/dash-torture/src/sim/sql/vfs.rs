//! The VFS `dash-torture`: an SQLite linked in here, whose files are an engine's on a simulated
//! machine, as the engine's [`SqliteFiles`](crate::sim::subject::SqliteFiles) has it. Everything
//! else of SQLite's is in memory.
//!
//! A database is opened as `file:/world-N/app.db?vfs=dash-torture`; N names a [`World`].

use std::collections::BTreeMap;
use std::ffi::{CStr, OsStr};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use dash_ffi::{
    AccessCheck, Code, FileName, FullPathname, HostVfs, OpenFlags, Opened, Result, Vfs,
};

use crate::sim::explore::lock;
use crate::sim::subject::{DB, World};

/// A world is here as long as a connection holds it.
static WORLDS: Mutex<BTreeMap<u64, Weak<World>>> = Mutex::new(BTreeMap::new());
static NEXT: AtomicU64 = AtomicU64::new(1);

/// Opens the database of a world.
pub fn open(world: World) -> rusqlite::Result<rusqlite::Connection> {
    register();
    let (number, world) = (NEXT.fetch_add(1, Ordering::Relaxed), Arc::new(world));
    let mut worlds = lock(&WORLDS);
    worlds.retain(|_, world| world.strong_count() > 0);
    worlds.insert(number, Arc::downgrade(&world));
    drop(worlds);
    rusqlite::Connection::open(format!("file:/world-{number}{DB}?vfs=dash-torture"))
}

/// The world and the name that a path means.
fn place(path: &Path) -> Option<(Arc<World>, &OsStr)> {
    let number = path.parent()?.to_str()?.strip_prefix("/world-")?.parse().ok()?;
    let world = lock(&WORLDS).get(&number)?.upgrade()?;
    Some((world, path.file_name()?))
}

registered_vfs!(Torture);

struct Torture;

impl Vfs for Torture {
    fn name(&self) -> &'static CStr {
        c"dash-torture"
    }

    fn open(&self, host: &HostVfs, name: FileName<'_>, flags: OpenFlags) -> Result<Opened> {
        let Some((world, file)) = name.path().and_then(place) else {
            let (file, flags) = host.open(name, flags)?;
            return Ok(Opened { file: Box::new(file), flags });
        };
        match world.subject.sqlite_files().open(&world, file, flags)? {
            Some(file) => Ok(Opened { file, flags }),
            None => Err(Code::CANTOPEN.into()),
        }
    }

    fn delete(&self, host: &HostVfs, path: &Path, flush_folder: bool) -> Result<()> {
        match place(path) {
            Some((world, name)) => world.subject.sqlite_files().delete(&world, name, flush_folder),
            None => host.delete(path, flush_folder),
        }
    }

    fn access(&self, host: &HostVfs, path: &Path, check: AccessCheck) -> Result<bool> {
        match place(path) {
            Some((world, name)) => world.subject.sqlite_files().exists(&world, name),
            None => host.access(path, check),
        }
    }

    fn full_pathname(&self, _: &HostVfs, path: &Path) -> Result<FullPathname> {
        Ok(FullPathname { path: path.to_owned(), symlink: false })
    }

    /// Nobody else gets anywhere meanwhile.
    fn sleep(&self, _: &HostVfs, time: Duration) -> Duration {
        time
    }
}
