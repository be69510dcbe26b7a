//! `FileControl`: the messages that SQLite and applications send to a file, typed.
//!
//! Controls that SQLite answers itself (FILE_POINTER, VFS_POINTER, JOURNAL_POINTER, DATA_VERSION,
//! RESERVE_BYTES, RESET_CACHE) never reach a VFS. Any control can be passed on to a wrapped
//! [`HostFile`](crate::HostFile) with its own `file_control`: what C passed arrives unchanged.

use crate::api::{Api, c_text};
use crate::cell::Gate;
use crate::connection::ConnectionHandle;
use crate::errand::Errand;
use crate::error::Result;
use crate::name::c_path;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::fmt;
use core::marker::PhantomData;
use std::path::Path;
use std::sync::Arc;

/// Whether a file knows a control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handled {
    /// It does: SQLite gets `SQLITE_OK`.
    Yes,
    /// It doesn't: SQLite gets `SQLITE_NOTFOUND`.
    No,
}

/// A file control and its argument; `&mut` is where the answer goes. Named after `SQLITE_FCNTL_*`.
#[derive(Debug)]
#[non_exhaustive]
pub enum FileControl<'a> {
    /// `LOCKSTATE` (1): answers the number of the lock held.
    LockState(&'a mut i32),
    /// `LAST_ERRNO` (4): answers the `errno` of the file's last failure.
    LastErrno(&'a mut i32),
    /// `SIZE_HINT` (5): the file is about to grow to so many bytes.
    SizeHint(i64),
    /// `CHUNK_SIZE` (6): the file is to grow in chunks of so many bytes.
    ChunkSize(i32),
    /// `PERSIST_WAL` (10): sets (0 or 1) or asks (negative) whether the log stays when the last one
    /// closes.
    PersistWal(&'a mut i32),
    /// `OVERWRITE` (11): this transaction overwrites the whole file, so many bytes if stated.
    Overwrite(Option<i64>),
    /// `VFSNAME` (12): fill in the name of the wrapped file's VFS, if there is one; our own is put
    /// before it in any case.
    VfsName(VfsName<'a>),
    /// `POWERSAFE_OVERWRITE` (13): sets (0 or 1) or asks (negative) for that device characteristic.
    PowersafeOverwrite(&'a mut i32),
    /// `PRAGMA` (14): every PRAGMA statement on this file's database, before SQLite looks at it.
    Pragma(Pragma<'a>),
    /// `BUSYHANDLER` (15): what to call while a lock is taken.
    BusyHandler(BusyHandler),
    /// `TEMPFILENAME` (16): answers a path for a temporary file.
    TempFilename(TempFilename<'a>),
    /// `MMAP_SIZE` (18): sets (not negative) the most bytes to map; answers what was set before.
    MmapSize(&'a mut i64),
    /// `TRACE` (19): a comment for a log.
    Trace(&'a CStr),
    /// `HAS_MOVED` (20): answers whether the path no longer leads to this file.
    HasMoved(&'a mut bool),
    /// `SYNC` (21): `xSync` is coming (or, with synchronous=OFF, is not). Not the commit: see
    /// [`FileControl::CommitPhaseTwo`].
    Sync {
        /// The super-journal, if the transaction spans several databases.
        super_journal: Option<&'a Path>,
    },
    /// `COMMIT_PHASETWO` (22): the transaction is committed; an error here reaches the application.
    CommitPhaseTwo,
    /// `PDB` (30): the connection that opened the file.
    Pdb(ConnectionHandle<'a>),
    /// `BEGIN_ATOMIC_WRITE` (31): the writes that follow are to take effect together.
    BeginAtomicWrite,
    /// `COMMIT_ATOMIC_WRITE` (32): let them.
    CommitAtomicWrite,
    /// `ROLLBACK_ATOMIC_WRITE` (33): forget them.
    RollbackAtomicWrite,
    /// `LOCK_TIMEOUT` (34): sets how many milliseconds to wait for a lock; answers what was set
    /// before.
    LockTimeout(&'a mut i32),
    /// `SIZE_LIMIT` (36): sets (not negative) or asks (negative) for the limit of an in-memory
    /// database.
    SizeLimit(&'a mut i64),
    /// `CKPT_DONE` (37): a checkpoint has copied its frames, the log is not yet reset.
    CheckpointDone,
    /// `CKPT_START` (39): a checkpoint is about to copy frames.
    CheckpointStart,
    /// `EXTERNAL_READER` (40): answers whether another process reads in WAL mode.
    ExternalReader(&'a mut i32),
    /// Any other control, a null argument where one is needed, or a text that is not UTF-8 in a
    /// PRAGMA.
    Unknown(UnknownControl<'a>),
}

/// A control without a type here.
#[derive(Debug)]
pub struct UnknownControl<'a> {
    op: i32,
    argument: *mut c_void,
    marker: PhantomData<&'a mut c_void>,
}

impl UnknownControl<'_> {
    /// Keeps what C passed.
    pub(crate) fn new(op: c_int, argument: *mut c_void) -> Self {
        Self { op, argument, marker: PhantomData }
    }

    /// The number of the control.
    #[must_use]
    pub const fn op(&self) -> i32 {
        self.op
    }

    /// The argument; what it points to is between the sender and who knows the number.
    #[must_use]
    pub const fn argument(&self) -> *mut c_void {
        self.argument
    }
}

/// A place for a text in memory of SQLite.
struct Answer<'a> {
    place: &'a mut *mut c_char,
    api: &'a Api,
}

impl Answer<'_> {
    fn set(&mut self, text: &CStr) {
        let text = self.api.allocate_bytes(text);
        // SAFETY: `place` is null or holds a text that this SQLite allocated, as whoever made
        // `self` states.
        unsafe { self.api.replace(self.place, text) }
    }

    fn get(&self) -> Option<&CStr> {
        // SAFETY: null, or a C string, as whoever made `self` states.
        (!self.place.is_null()).then(|| unsafe { CStr::from_ptr(*self.place) })
    }

    fn as_ptr(&mut self) -> *mut c_void {
        (&raw mut *self.place).cast()
    }
}

/// A PRAGMA statement.
pub struct Pragma<'a> {
    name: &'a str,
    value: Option<&'a str>,
    /// What C passed: answer, name, value.
    raw: *mut *mut c_char,
    api: &'a Api,
    errand: &'a Errand<'a>,
}

impl<'a> Pragma<'a> {
    /// Reads what C passed; `None` if a text is not UTF-8.
    ///
    /// # Safety
    ///
    /// `raw` points to three C strings for `'a`: a place for an answer in memory of the SQLite of
    /// `api`, the name, and the value or null.
    pub(crate) unsafe fn new(
        raw: *mut *mut c_char,
        api: &'a Api,
        errand: &'a Errand<'a>,
    ) -> Option<Self> {
        // SAFETY: three pointers, as the caller states.
        let (name, value) = unsafe { (*raw.add(1), *raw.add(2)) };
        if name.is_null() {
            return None;
        }
        // SAFETY: not null, and a C string, as the caller states.
        let name = unsafe { CStr::from_ptr(name) }.to_str().ok()?;
        let value = match value.is_null() {
            true => None,
            // SAFETY: not null, and a C string, as the caller states.
            false => Some(unsafe { CStr::from_ptr(value) }.to_str().ok()?),
        };
        Some(Self { name, value, raw, api, errand })
    }

    /// The name, spelled as the user did.
    #[must_use]
    pub fn name(&self) -> &'a str {
        self.name
    }

    /// What stands behind `=` or in parentheses.
    #[must_use]
    pub fn value(&self) -> Option<&'a str> {
        self.value
    }

    /// The text that the statement returns, as its only row, if the file then says
    /// [`Handled::Yes`].
    pub fn answer(&mut self, text: &str) {
        let text = self.api.allocate(text);
        // SAFETY: the first of the three pointers, null or a text that was allocated by this
        // SQLite.
        unsafe { self.api.replace(&mut *self.raw, text) }
    }

    /// Has statements run on the file's own connection, outside the file, when this control has
    /// returned; then the PRAGMA comes a second time, and [`Pragma::ran`] says what became of them.
    /// They get the name of the file's database in that connection, quoted.
    ///
    /// `false`: not possible, as the connection or the name is not known (an SQLite before 3.39
    /// names none but `main` and `temp`).
    pub fn run_first(&self, statements: impl FnOnce(&str) -> String) -> bool {
        self.errand.order(statements)
    }

    /// What became of the statements that the file asked for when the PRAGMA came first.
    #[must_use]
    pub fn ran(&self) -> Option<Result<()>> {
        self.errand.outcome()
    }

    pub(crate) fn raw(&mut self) -> *mut c_void {
        self.raw.cast()
    }
}

impl fmt::Debug for Pragma<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pragma").field("name", &self.name).field("value", &self.value).finish()
    }
}

macro_rules! text_answers {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        pub struct $name<'a>(Answer<'a>);

        impl<'a> $name<'a> {
            /// # Safety
            ///
            /// `place` is null or holds a C string that the SQLite of `api` allocated.
            pub(crate) unsafe fn new(place: &'a mut *mut c_char, api: &'a Api) -> Self {
                Self(Answer { place, api })
            }

            pub(crate) fn raw(&mut self) -> *mut c_void {
                self.0.as_ptr()
            }
        }

        impl fmt::Debug for $name<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_tuple(stringify!($name)).field(&self.0.get()).finish()
            }
        }
    )*};
}

text_answers! {
    /// Where the name of a VFS goes.
    VfsName;
    /// Where the path of a temporary file goes.
    TempFilename;
}

impl VfsName<'_> {
    /// Fills in a name; the trampoline puts our VFS and a slash before it.
    pub fn answer(&mut self, name: &str) {
        self.0.set(&c_text(name));
    }
}

impl TempFilename<'_> {
    /// Fills in a path.
    ///
    /// # Errors
    ///
    /// `SQLITE_CANTOPEN` if there is a zero byte in it.
    pub fn answer(&mut self, path: &Path) -> Result<()> {
        self.0.set(&c_path(path, crate::Code::CANTOPEN)?);
        Ok(())
    }
}

/// The busy handler of the connection that opened a file.
#[derive(Clone)]
pub struct BusyHandler {
    /// What C passed: the function and its argument, kept by SQLite while the file is open.
    raw: *mut c_void,
    function: Option<unsafe extern "C" fn(*mut c_void) -> c_int>,
    argument: *mut c_void,
    gate: Arc<Gate>,
}

// SAFETY: the pointers are used only by the thread that is inside a callback of the file (see
// `call`).
unsafe impl Send for BusyHandler {}

impl BusyHandler {
    /// # Safety
    ///
    /// `raw` points to a function (or null) and its argument, which the function may be called with
    /// during every callback of the file that `gate` belongs to.
    pub(crate) unsafe fn new(raw: *mut c_void, gate: Arc<Gate>) -> Self {
        // SAFETY: two pointers, the first to a function or null, as the caller states.
        let (function, argument) = unsafe {
            (
                *raw.cast::<Option<unsafe extern "C" fn(*mut c_void) -> c_int>>(),
                *raw.cast::<*mut c_void>().add(1),
            )
        };
        Self { raw, function, argument, gate }
    }

    /// Asks the connection whether to try again; it may sleep before it answers. Always false
    /// outside a callback of the file this handler was given to, for then its connection may be
    /// gone.
    #[must_use]
    pub fn call(&self) -> bool {
        let Some(function) = self.function else {
            return false;
        };
        // SAFETY: this thread is inside a callback of the file, so the connection is there, and
        // locked by this thread.
        self.gate.in_callback() && unsafe { function(self.argument) != 0 }
    }

    /// What C passed, as long as SQLite keeps it.
    pub(crate) fn raw(&self) -> Option<*mut c_void> {
        self.gate.in_callback().then_some(self.raw)
    }
}

impl fmt::Debug for BusyHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BusyHandler").finish_non_exhaustive()
    }
}
