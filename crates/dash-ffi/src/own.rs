//! Statements with values, on a connection of dash's own that nobody else sees; and what SQLite it
//! is that runs them.

use crate::api::Api;
use crate::code::Code;
use crate::confined::{Bounds, Confined};
use crate::error::{Error, Result};
use crate::flags::OpenFlags;
use crate::host::HostVfs;
use crate::nested::Nested;
use crate::statement_api::StatementApi;
use crate::sys::UTF8;
use crate::sys::statement::{DONE, ROW, RawStatement};
use core::ffi::{CStr, c_char, c_int, c_uchar, c_void};
use core::ptr::null_mut;
use std::collections::HashMap;
use std::path::Path;

/// Statements that stay prepared.
const PREPARED: usize = 64;

/// A value to be bound, as it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ToBind<'a> {
    /// NULL.
    Null,
    /// An integer.
    Integer(i64),
    /// A real number.
    Real(f64),
    /// A text in UTF-8, zero bytes included.
    Text(&'a [u8]),
    /// Bytes.
    Blob(&'a [u8]),
    /// So many zeros.
    Zeros(u64),
}

/// What came of a statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Ran {
    /// It ran to its end.
    Done,
    /// It can't be prepared.
    Unprepared(Error),
    /// It failed, having begun.
    Failed(Error),
}

/// See the module. One thread at a time may use it.
pub struct OwnConnection {
    /// Before the connection, which can't be closed while they live.
    prepared: HashMap<Box<[u8]>, Prepared>,
    api: &'static StatementApi,
    nested: Nested,
    /// Behind the connection, which has its address.
    confined: Option<Box<Confined>>,
}

/// A statement of such a connection; finished when it is dropped.
struct Prepared {
    raw: *mut RawStatement,
    api: &'static StatementApi,
}

impl Drop for Prepared {
    fn drop(&mut self) {
        // SAFETY: null or a statement of our own, finished once.
        unsafe { (self.api.finalize)(self.raw) };
    }
}

impl Api {
    /// What this SQLite is made of: its source id, and all options that it was built with, as far
    /// as it says.
    fn build(&self) -> Vec<String> {
        // SAFETY: it takes nothing.
        let source = self.sourceid.map(|source| unsafe { source() });
        let option = |number| {
            // SAFETY: any number; null behind the last one.
            self.compileoption_get.map(|get| unsafe { get(number) })
        };
        let options = (0..).map_while(|number| option(number).filter(|text| !text.is_null()));
        let texts = source.filter(|text| !text.is_null()).into_iter().chain(options);
        // SAFETY: C strings that stay.
        texts.map(|text| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()).collect()
    }
}

impl HostVfs {
    /// Opens a database through the VFS of this name, in a connection that shares no cache.
    ///
    /// # Errors
    ///
    /// SQLite's code and message; `SQLITE_ERROR` where SQLite lacks what that takes.
    pub fn connect(&self, path: &Path, flags: OpenFlags, vfs: &CStr) -> Result<OwnConnection> {
        let Some(api) = &self.api.statements else {
            return Err(Error::new(Code::ERROR, "this SQLite was built without what that takes"));
        };
        let nested = Nested::open(self.api, path, flags, vfs)?;
        Ok(OwnConnection { prepared: HashMap::new(), api, nested, confined: None })
    }

    /// The number of the SQLite version, such as 3045001.
    #[must_use]
    pub fn sqlite_version(&self) -> i32 {
        self.api.version()
    }

    /// Its source id, and all options that it was built with, as far as it says.
    #[must_use]
    pub fn sqlite_build(&self) -> Vec<String> {
        self.api.build()
    }
}

impl OwnConnection {
    /// From here on it does nothing beyond that: what is refused is an error that says so, and
    /// `SQLITE_INTERRUPT` when the instructions or the time are used up.
    ///
    /// # Errors
    ///
    /// SQLite's code and message.
    pub fn confine(&mut self, bounds: &Bounds) -> Result<()> {
        self.confined = Some(Confined::new(&self.nested, self.api, bounds)?);
        Ok(())
    }

    /// Runs statements without values.
    ///
    /// # Errors
    ///
    /// SQLite's code and message.
    pub fn run(&self, sql: &str) -> Result<()> {
        self.nested.run(sql).map_err(|error| self.cause(error))
    }

    fn cause(&self, error: Error) -> Error {
        match &self.confined {
            Some(confined) => confined.cause(error),
            None => error,
        }
    }

    /// Runs one statement to its end, with values for its parameters from the first one on. Those
    /// without a value are NULL. Rows are passed over.
    pub fn execute(&mut self, sql: &[u8], values: &[ToBind<'_>]) -> Ran {
        if let Some(Err(error)) = self.confined.as_ref().map(|confined| confined.begin()) {
            return Ran::Failed(error);
        }
        let raw = match self.prepare(sql) {
            Ok(raw) => raw,
            Err(error) => return Ran::Unprepared(self.cause(error)),
        };
        if raw.is_null() {
            return Ran::Done; // a comment
        }
        let api = self.api;
        // SAFETY: a statement of this connection, which no other thread has; for all calls.
        let ran = unsafe {
            let count = usize::try_from((api.bind_parameter_count)(raw)).unwrap_or(0);
            let bound = (1..).zip(values.iter().take(count));
            let mut codes = bound.map(|(number, value)| bind(api, raw, number, value));
            match codes.find_map(Code::from_raw) {
                Some(code) => Ran::Failed(code.into()),
                None => self.step_to_end(raw),
            }
        };
        // SAFETY: as above. What a reset answers is what the step did.
        unsafe {
            (api.reset)(raw);
            (api.clear_bindings)(raw);
        }
        ran
    }

    /// # Safety
    ///
    /// A statement of this connection, which no other thread has.
    unsafe fn step_to_end(&self, raw: *mut RawStatement) -> Ran {
        let code = loop {
            // SAFETY: the caller's.
            match unsafe { (self.api.step)(raw) } {
                ROW => {}
                code => break code,
            }
        };
        match code {
            DONE => Ran::Done,
            code => match self.nested.check(code) {
                Ok(()) => Ran::Done,
                Err(error) => Ran::Failed(self.cause(error)),
            },
        }
    }

    /// Whether no transaction is open.
    #[must_use]
    pub fn is_autocommit(&self) -> bool {
        // SAFETY: an open connection.
        unsafe { (self.api.get_autocommit)(self.nested.db) != 0 }
    }

    fn prepare(&mut self, sql: &[u8]) -> Result<*mut RawStatement> {
        if let Some(prepared) = self.prepared.get(sql) {
            return Ok(prepared.raw);
        }
        let length = c_int::try_from(sql.len()).map_err(|_| Code::TOOBIG)?;
        let mut prepared = Prepared { raw: null_mut(), api: self.api };
        // SAFETY: an open connection, a text of that length, and a place for the statement.
        let code = unsafe {
            let (text, place) = (sql.as_ptr().cast(), &raw mut prepared.raw);
            (self.api.prepare_v2)(self.nested.db, text, length, place, null_mut())
        };
        self.nested.check(code)?;
        if self.prepared.len() >= PREPARED {
            self.prepared.clear();
        }
        let raw = prepared.raw;
        self.prepared.insert(sql.into(), prepared);
        Ok(raw)
    }
}

/// Binds a value to the parameter with a number, from 1.
///
/// # Safety
///
/// `raw` is a live statement that is not running.
unsafe fn bind(
    api: &StatementApi,
    raw: *mut RawStatement,
    number: c_int,
    value: &ToBind<'_>,
) -> c_int {
    let copied = crate::value::transient();
    /// A null would stand for NULL.
    fn start(bytes: &[u8]) -> *const c_void {
        if bytes.is_empty() { c"".as_ptr().cast() } else { bytes.as_ptr().cast() }
    }
    // SAFETY: as the caller states; SQLite copies the bytes before it returns.
    unsafe {
        match *value {
            ToBind::Null => (api.bind_null)(raw, number),
            ToBind::Integer(value) => (api.bind_int64)(raw, number, value),
            ToBind::Real(value) => (api.bind_double)(raw, number, value),
            ToBind::Text(text) => {
                let (start, len) = (start(text).cast::<c_char>(), text.len() as u64);
                (api.bind_text64)(raw, number, start, len, copied, UTF8 as c_uchar)
            }
            ToBind::Blob(blob) => {
                (api.bind_blob64)(raw, number, start(blob), blob.len() as u64, copied)
            }
            ToBind::Zeros(count) => (api.bind_zeroblob64)(raw, number, count),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linked::host;

    #[test]
    fn it_says_what_it_is_made_of() {
        let build = host().sqlite_build();
        assert!(build.len() > 3 && build[0].starts_with("20"), "{build:?}");
        assert_eq!(host().sqlite_version(), rusqlite::version_number());
    }

    #[test]
    fn values_are_bound_as_they_are() {
        let host = host();
        let flags = OpenFlags::READWRITE | OpenFlags::CREATE;
        let mut db = host.connect(Path::new(":memory:"), flags, host.name()).unwrap();
        db.run("CREATE TABLE t(v, k CHECK (typeof(v) = k AND length(v) IS NOT 7))").unwrap();
        let insert = b"INSERT INTO t VALUES (?, ?)";
        let values = [
            (ToBind::Null, "null"),
            (ToBind::Integer(i64::MIN), "integer"),
            (ToBind::Real(-0.1), "real"),
            (ToBind::Text(b""), "text"),
            (ToBind::Text(b"a\0b"), "text"),
            (ToBind::Blob(b""), "blob"),
            (ToBind::Blob(&[0, 255]), "blob"),
            (ToBind::Zeros(5), "blob"),
        ];
        for (value, kind) in values {
            let ran = db.execute(insert, &[value, ToBind::Text(kind.as_bytes())]);
            assert_eq!(ran, Ran::Done, "{value:?}");
        }
        // What was bound before is there no more.
        assert_eq!(db.execute(insert, &[]), Ran::Done);
        let failed = db.execute(insert, &[ToBind::Zeros(7), ToBind::Text(b"blob")]);
        assert!(matches!(&failed, Ran::Failed(error) if error.code.primary() == Code::CONSTRAINT));
        let unknown = db.execute(b"INSERT INTO u VALUES (1)", &[]);
        assert!(matches!(unknown, Ran::Unprepared(_)), "{unknown:?}");
        assert_eq!(db.execute(b"-- nothing", &[]), Ran::Done);
        assert!(db.is_autocommit());
        assert_eq!(db.execute(b"BEGIN", &[]), Ran::Done);
        assert!(!db.is_autocommit());
        // More statements than stay prepared.
        for number in 0..100 {
            let sql = format!("INSERT INTO t VALUES ({number}, 'integer')");
            assert_eq!(db.execute(sql.as_bytes(), &[]), Ran::Done);
        }
        let counted =
            b"INSERT INTO t SELECT sum(typeof(v) = k), 'integer' FROM t WHERE k IS NOT NULL";
        assert_eq!(db.execute(counted, &[]), Ran::Done);
        let right = b"INSERT INTO t SELECT 1, 'x' FROM t WHERE v = 108";
        assert!(matches!(db.execute(right, &[]), Ran::Failed(_)), "all of them were counted");
    }
}
