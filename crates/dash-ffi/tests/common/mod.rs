//! `pass`: a VFS that hands everything to the host's, tells what it was asked, and fails on
//! command.
//!
//! A test owns a database path and gets its [`Probe`]; files find it by their path, so tests run
//! side by side. The VFS is registered the way a Rust program does it: through rusqlite's own
//! `sqlite3_auto_extension`, with no version of rusqlite named outside the dev-dependencies.

#![allow(dead_code, reason = "each test binary uses another part")]
#![allow(unsafe_code, reason = "tests call SQLite's C interface directly")]
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
#![allow(missing_docs, reason = "test code")]

mod pass;

pub use pass::{PassFile, PassVfs};

use core::ffi::{CStr, c_char, c_int};
use dash_ffi::{
    ApiRoutines, BusyHandler, Capture, Code, Connection, ConnectionRef, Context, Error, Extension,
    FunctionFlags, KeptConnection, Result, ScalarFunction, SlotInfo, TableFunction, Value, Vfs,
};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Once};

/// What a probe makes of a call.
#[derive(Clone)]
pub enum Fault {
    Error(Code, Option<&'static str>),
    Panic(&'static str),
    /// `xRead` claims to have read so many bytes.
    Claim(usize),
    /// `xLock` asks the busy handler until it gives up.
    AskBusyHandler,
}

/// What a test knows of the files of one database.
#[derive(Default)]
pub struct Probe {
    events: Mutex<Vec<String>>,
    faults: Mutex<HashMap<&'static str, Fault>>,
    pub busy: Mutex<Option<BusyHandler>>,
    pub kept: Mutex<Option<KeptConnection>>,
}

impl Probe {
    pub fn events(&self) -> Vec<String> {
        self.events.lock().unwrap().clone()
    }

    /// The events since the last call that begin with `prefix`.
    pub fn take(&self, prefix: &str) -> Vec<String> {
        let events = std::mem::take(&mut *self.events.lock().unwrap());
        events.into_iter().filter(|event| event.starts_with(prefix)).collect()
    }

    pub fn fail(&self, call: &'static str, fault: Fault) {
        self.faults.lock().unwrap().insert(call, fault);
    }

    pub fn heal(&self) {
        self.faults.lock().unwrap().clear();
    }

    fn note(&self, event: String) {
        self.events.lock().unwrap().push(event);
    }

    fn fault(&self, call: &str) -> Option<Fault> {
        self.faults.lock().unwrap().get(call).cloned()
    }

    fn check(&self, call: &str) -> Result<()> {
        match self.fault(call) {
            Some(Fault::Error(code, message)) => {
                Err(Error { code, message: message.map(str::to_owned) })
            }
            Some(Fault::Panic(text)) => panic!("{text}"),
            _ => Ok(()),
        }
    }
}

static PROBES: Mutex<Option<HashMap<PathBuf, Arc<Probe>>>> = Mutex::new(None);

/// The probe of a database, also by the path of its journal or log.
pub fn probe(path: &Path) -> Arc<Probe> {
    let bytes = path.as_os_str().as_bytes();
    let database = [&b"-journal"[..], b"-wal"]
        .iter()
        .find_map(|suffix| bytes.strip_suffix(*suffix))
        .unwrap_or(bytes);
    let mut probes = PROBES.lock().unwrap();
    let probes = probes.get_or_insert_with(HashMap::new);
    Arc::clone(probes.entry(Path::new(OsStr::from_bytes(database)).to_owned()).or_default())
}

fn make_vfs(_: &SlotInfo) -> Box<dyn Vfs> {
    Box::new(PassVfs)
}

/// `pass_kind(schema)`: "pass" for a file of ours, "none" for any other.
fn kind(context: &mut Context<'_>) -> Result<Value> {
    let Some(Value::Text(schema)) = context.args().first() else {
        return Err(Error::new(Code::MISMATCH, "pass_kind: a schema's name, please; 100% of %s"));
    };
    let is_ours =
        context.connection().with_file(schema, |file| file.downcast_mut::<PassFile>().is_some());
    Ok(if is_ours == Some(true) { "pass" } else { "none" }.into())
}

/// `pass_kind_below(schema)`: the same, whatever is stacked on it.
fn kind_below(context: &mut Context<'_>) -> Result<Value> {
    let is_ours = context
        .connection()
        .with_file_below("main", |file| file.downcast_mut::<PassFile>().is_some());
    Ok(if is_ours == Some(true) { "pass" } else { "none" }.into())
}

/// `pass_twice()`: whether a file can be visited while it is being visited.
fn twice(context: &mut Context<'_>) -> Result<Value> {
    let connection = context.connection();
    let inner = connection.with_file("main", |_| connection.with_file("main", |_| ()));
    Ok(i64::from(inner.flatten().is_some()).into())
}

fn echo(context: &mut Context<'_>) -> Result<Value> {
    Ok(context.args().first().cloned().unwrap_or(Value::Null))
}

fn panics(_: &mut Context<'_>) -> Result<Value> {
    panic!("100% of %s")
}

static CAPTURES: Mutex<Option<HashMap<PathBuf, Arc<dyn Capture>>>> = Mutex::new(None);

/// From now on `capture` is told of the statements of connections to the database.
pub fn tell(database: &Database, capture: Arc<dyn Capture>) {
    let mut captures = CAPTURES.lock().unwrap();
    captures.get_or_insert_default().insert(database.path.clone(), capture);
}

/// Who is told of a connection that was just opened: once for each time that somebody asked.
fn told(connection: &ConnectionRef<'_>) -> Option<Arc<dyn Capture>> {
    let path = connection.path("main")?;
    CAPTURES.lock().unwrap().as_mut()?.remove(&path)
}

const fn scalar(
    name: &'static CStr,
    (min_args, max_args): (u8, u8),
    call: fn(&mut Context<'_>) -> Result<Value>,
) -> ScalarFunction {
    ScalarFunction { name, min_args, max_args, flags: FunctionFlags::INNOCUOUS, call }
}

pub static EXTENSION: Extension = Extension {
    make_vfs,
    stands_on: None,
    functions: &[
        scalar(c"pass_kind", (0, 1), kind),
        scalar(c"pass_kind_below", (0, 0), kind_below),
        scalar(c"pass_echo", (0, 1), echo),
        scalar(c"pass_panic", (0, 0), panics),
        scalar(c"pass_twice", (0, 0), twice),
        ScalarFunction { flags: FunctionFlags::DIRECTONLY, ..scalar(c"pass_act", (0, 0), echo) },
    ],
    tables: &[TableFunction {
        name: c"pass_table",
        columns: &["name", "value"],
        rows: |connection, schema| match schema {
            Some("missing") => Err(Error::new(Code::ERROR, "no such schema: 100% of %s")),
            Some("panic") => panic!("100% of %s"),
            _ => Ok(vec![
                vec!["schema".into(), schema.into()],
                vec!["version".into(), i64::from(connection.sqlite_version()).into()],
                vec!["short".into()],
            ]),
        },
    }],
    capture: told,
    without_fork: |work| work(),
    automatic,
};

pub unsafe extern "C" fn automatic(
    db: *mut Connection,
    error: *mut *mut c_char,
    api: *const ApiRoutines,
) -> c_int {
    // SAFETY: SQLite's own arguments.
    unsafe { dash_ffi::load_automatically(db, error, api, &EXTENSION) }
}

/// Registers `pass`, once.
pub fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: this is sqlite3_auto_extension.
        unsafe { dash_ffi::register_with(rusqlite::ffi::sqlite3_auto_extension, automatic) }
            .unwrap();
        drop(rusqlite::Connection::open_in_memory().unwrap());
    });
}

/// A database of its own, in a directory of its own.
pub struct Database {
    pub directory: tempfile::TempDir,
    pub path: PathBuf,
    pub probe: Arc<Probe>,
}

impl Database {
    pub fn new() -> Self {
        register();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().canonicalize().unwrap().join("app.db");
        Self { probe: probe(&path), path, directory }
    }

    /// Opens it with `pass`; `parameters` follow in the URI.
    pub fn open(&self, parameters: &str) -> rusqlite::Result<rusqlite::Connection> {
        rusqlite::Connection::open(format!("file:{}?vfs=pass{parameters}", self.path.display()))
    }
}

/// SQLite's own handle of the main database's file.
pub fn file_pointer(db: &rusqlite::Connection) -> *mut rusqlite::ffi::sqlite3_file {
    let mut file: *mut rusqlite::ffi::sqlite3_file = core::ptr::null_mut();
    // SAFETY: an open connection, and a place for a pointer.
    let code = unsafe {
        rusqlite::ffi::sqlite3_file_control(
            db.handle(),
            c"main".as_ptr(),
            rusqlite::ffi::SQLITE_FCNTL_FILE_POINTER,
            (&raw mut file).cast(),
        )
    };
    assert_eq!(code, 0);
    file
}
