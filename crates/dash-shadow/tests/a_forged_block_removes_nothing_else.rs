//! SEC4: a block names the super-journal of a transaction over several databases, which is removed
//! when that is undone. A forged block named any file of whoever opened the database, and one open
//! and one SELECT removed it. Only what SQLite would have made is removed: by its name, in the
//! database's own folder, without a second name, and with this database in its list.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::ffi::OsStr;
use std::path::Path;

use super::common::{commit, read, write};
use dash_shadow::{Connection, OpenOptions, Tuning};
use dash_simulated::{Machine, Simulated};
use dash_storage::{Directory, File, OpenMode, Storage};

const OLD: [u8; 3] = [1, 2, 3];
const NEW: [u8; 3] = [9, 2, 8];
const LISTS_IT: &[u8] = b"/d/app.db-journal\0/d/b.db-journal\0";

fn open(process: &Simulated) -> Connection<Simulated> {
    let options = OpenOptions { tuning: Tuning::tiny(), ..OpenOptions::default() };
    Connection::open(process, Path::new("/d/app.db"), &options).unwrap()
}

/// Whether the file at `path` is still there after a database was recovered whose block names
/// `named`.
fn survives(path: &str, named: &str, content: &[u8], second_name: bool) -> bool {
    let machine = Machine::new(1);
    let process = machine.process();
    let root = process.open_directory(Path::new("/")).unwrap();
    root.create_directory("d".as_ref()).unwrap();
    let mut connection = open(&process);
    commit(&mut connection, &OLD).unwrap();
    let (folder, name) = path.rsplit_once('/').unwrap();
    let folder = process.open_directory(Path::new(&format!("{folder}/"))).unwrap();
    let create = OpenMode::CreateNew { permissions: 0o600 };
    let file = folder.open(name.as_ref(), create).unwrap();
    file.write_at(content, 0).unwrap();
    if second_name {
        folder.link(name.as_ref(), "second".as_ref()).unwrap();
    }
    write(&mut connection, &NEW).unwrap();
    connection.prepare(Some(OsStr::new(named))).unwrap();
    connection.flush().unwrap();
    machine.kill(&process);
    drop(connection);
    let process = machine.process();
    let mut connection = open(&process);
    assert_eq!(read(&mut connection).unwrap(), OLD, "the transaction was not committed");
    connection.close().unwrap();
    machine.file_view(path).is_some()
}

#[test]
fn what_sqlite_made_is_removed() {
    assert!(!survives("/d/app.db-mj0A1B2C9D3", "app.db-mj0A1B2C9D3", LISTS_IT, false));
}

/// Simulated machines know no `..`, which a name with a folder in it is refused for as well.
#[test]
fn nothing_else_is() {
    let cases = [
        ("/precious", "/precious", LISTS_IT, false),
        ("/d/precious", "precious", LISTS_IT, false),
        ("/app.db-mj0A1B2C9D3", "/app.db-mj0A1B2C9D3", LISTS_IT, false),
        ("/d/app.db-mj0A1B2C9D3", "app.db-mj0A1B2C9D3", b"precious", false),
        ("/d/app.db-mj0A1B2C9D3", "app.db-mj0A1B2C9D3", b"/d/b.db-journal\0", false),
        ("/d/app.db-mj0A1B2C9D3", "app.db-mj0A1B2C9D3", b"", false),
        ("/d/app.db-mj0A1B2C9D3", "app.db-mj0A1B2C9D3", LISTS_IT, true),
    ];
    for (path, named, content, second_name) in cases {
        assert!(survives(path, named, content, second_name), "{named} took {path} away");
    }
}
