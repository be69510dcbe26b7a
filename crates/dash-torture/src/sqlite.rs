//! Stock SQLite with the extension under test loaded: the rings that run SQL open databases here.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::OnceLock;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use rusqlite::{Connection, OpenFlags};

/// What means something in a URI; the rest of a path stays as it is.
const ESCAPED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'/').remove(b'.').remove(b'_').remove(b'-').remove(b'~');

/// What is wrong with a state, or SQLite's error.
#[derive(Debug)]
pub enum Wrong {
    /// No transaction ever left such a state.
    Content(String),
    /// An error of SQLite.
    Sql(rusqlite::Error),
}

impl From<rusqlite::Error> for Wrong {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

/// What is read of a database, and SQLite's own opinion, in one read transaction.
///
/// # Errors
///
/// What is wrong with it.
pub fn sound<T>(
    db: &Connection,
    read: impl FnOnce(&Connection) -> Result<T, Wrong>,
) -> Result<T, Wrong> {
    db.execute_batch("BEGIN")?;
    let state = read(db)?;
    let verdict: String = db.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
    db.execute_batch("COMMIT")?;
    if verdict == "ok" { Ok(state) } else { Err(Wrong::Content(verdict)) }
}

/// Loads the extension into the SQLite that is linked here, once a process.
///
/// # Errors
///
/// SQLite's message, the same at every later call.
pub fn load(library: &Path) -> Result<(), String> {
    static LOADED: OnceLock<Result<(), String>> = OnceLock::new();
    LOADED
        .get_or_init(|| {
            load_once(library).map_err(|error| format!("loading {}: {error}", library.display()))
        })
        .clone()
}

#[expect(unsafe_code, reason = "loading an extension runs its code; it is the one under test")]
fn load_once(library: &Path) -> rusqlite::Result<()> {
    let scratch = Connection::open_in_memory()?;
    // SAFETY: the file is the extension of this project, or one that was named in its place; its
    // entry point keeps SQLite's contract for loadable extensions, and it stays loaded.
    unsafe {
        let _guard = rusqlite::LoadExtensionGuard::new(&scratch)?;
        scratch.load_extension(library, Some("sqlite3_dash_init"))
    }
}

/// Has SQLite's log said on standard error where it tells of corruption: nothing else says where in
/// SQLite that was found. For a process that has used SQLite for nothing yet.
///
/// # Errors
///
/// SQLite's, where it was used already.
#[expect(unsafe_code, reason = "SQLite's configuration is the whole process's")]
pub fn tell_corruption() -> Result<(), String> {
    let tell = |code: std::ffi::c_int, message: &str| {
        if matches!(code & 0xff, rusqlite::ffi::SQLITE_CORRUPT | rusqlite::ffi::SQLITE_NOTADB) {
            eprintln!("SQLite's log: {message}");
        }
    };
    // SAFETY: no connection is open, as SQLite refuses it otherwise, and the callback only prints.
    unsafe { rusqlite::trace::config_log(Some(tell)) }.map_err(|error| format!("its log: {error}"))
}

/// Opens `path` through dash, with more URI parameters, such as `&dash_commit=paper`.
///
/// # Errors
///
/// SQLite's; [`last_error`] says more.
pub fn open(path: &Path, parameters: &str) -> rusqlite::Result<Connection> {
    Connection::open_with_flags(
        uri(path, parameters),
        OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_URI,
    )
}

/// Opens `path` as any SQLite would, for reading.
///
/// # Errors
///
/// SQLite's.
pub fn open_stock(path: &Path) -> rusqlite::Result<Connection> {
    Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
}

/// What stands in parameters for a path beside the database that is no name of its own.
pub const ELSEWHERE: &str = "{elsewhere}";

/// What parameters say that keep `-wal` in the memory of one process.
pub const IN_MEMORY: &str = "dash_wal=memory";
/// Lets stock SQLite write beside dash, or checkpoint, too.
pub const STOCK_WRITES: &str = "dash_stock=";

/// The URI of `path` in dash.
#[must_use]
pub fn uri(path: &Path, parameters: &str) -> String {
    let mut name = OsString::from("log-of-");
    name.push(path.file_name().unwrap_or_default());
    let parameters = parameters.replace(ELSEWHERE, &escaped(&path.with_file_name(name)));
    format!("{}?vfs=dash{parameters}", stock_uri(path))
}

/// The URI of `path` for any SQLite; every byte that means something there is escaped.
#[must_use]
pub fn stock_uri(path: &Path) -> String {
    format!("file:{}", escaped(path))
}

fn escaped(path: &Path) -> String {
    percent_encode(path.as_os_str().as_bytes(), ESCAPED).to_string()
}

/// Makes dash say something else, so that [`last_error`] is not an older error; what it will say is
/// about this parameter.
pub fn forget() {
    let _ = open(Path::new("/nowhere"), &format!("&dash_commit={FORGOTTEN}"));
}

/// What [`last_error`] contains as long as nothing failed after [`forget`].
pub const FORGOTTEN: &str = "forgotten";

/// What dash said last in this process.
#[must_use]
pub fn last_error() -> String {
    Connection::open_in_memory()
        .and_then(|db| {
            db.query_row("SELECT dash_last_error()", [], |row| row.get::<_, Option<String>>(0))
        })
        .ok()
        .flatten()
        .unwrap_or_default()
}

/// The extended result code of an SQLite error; 0 for an error of the binding.
#[must_use]
pub fn code(error: &rusqlite::Error) -> i32 {
    match error {
        rusqlite::Error::SqliteFailure(failure, _) => failure.extended_code,
        _ => 0,
    }
}

/// Whether an error says that a lock is taken, and nothing worse.
#[must_use]
pub fn is_busy(error: &rusqlite::Error) -> bool {
    code(error) & 0xff == rusqlite::ffi::SQLITE_BUSY
}
