//! Files that are none of a database's, beside it: whatever its blocks say, nobody touches them.

use std::path::Path;

use dash_simulated::Machine;
use dash_storage::{Directory, OpenMode, Storage};

/// Names that blocks may be made to say, and names that look like the database's own.
pub const NAMES: [&str; 6] =
    ["other", "app.db2", "app.db-shadow2", "other-mj0123456", "app.db-mjDEADBE9EF", "app.dbx-dash"];
/// What is in each.
pub const CONTENT: &[u8] = b"nobody's business of a database";

/// Puts them beside the database of a simulated machine.
pub fn put(machine: &Machine) -> std::io::Result<()> {
    let process = machine.process();
    let folder = process.open_directory(Path::new("/"))?;
    for name in NAMES {
        let file = folder.open(name.as_ref(), OpenMode::CreateNew { permissions: 0o600 })?;
        dash_storage::File::write_at(&file, CONTENT, 0)?;
    }
    Ok(())
}

/// Whether they are as they were.
pub fn untouched(machine: &Machine) -> Result<(), String> {
    match NAMES
        .iter()
        .find(|name| machine.file_view(format!("/{name}")).is_none_or(|content| content != CONTENT))
    {
        Some(name) => Err(format!("the file {name}, which is none of the database's, was touched")),
        None => Ok(()),
    }
}

/// The same in a folder of a real file system, in which nothing else may be but the database.
pub fn untouched_in(folder: &Path) -> Result<(), String> {
    for entry in std::fs::read_dir(folder).map_err(|error| error.to_string())? {
        let entry = entry.map_err(|error| error.to_string())?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let own = ["", "-shadow", "-dash", "-journal", "-shadow-tmp"];
        let own = own.iter().any(|suffix| name == format!("app.db{suffix}"));
        if !own && !NAMES.contains(&&*name) {
            return Err(format!("a file {name} was made"));
        }
    }
    for name in NAMES {
        if std::fs::read(folder.join(name)).is_ok_and(|content| content == CONTENT) {
            continue;
        }
        return Err(format!("the file {name}, which is none of the database's, was touched"));
    }
    Ok(())
}
