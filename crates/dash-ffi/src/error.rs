//! The error that every callback answers, and where its message goes.
//!
//! SQLite carries only a number through most of its VFS calls, so a message takes three ways: the
//! error log of the host (`sqlite3_log`), [`last_error`] for an SQL function to show, and, where
//! SQLite has a place for text (PRAGMA, SQL functions, tables), the statement itself.
//!
//! Invariant: a message reaches SQLite only as the argument of `"%s"`, never as a format.

use crate::api::Api;
use crate::code::Code;
use core::ffi::c_int;
use core::fmt;
use std::borrow::Cow;
use std::cell::RefCell;
use std::path::Path;
use std::sync::{Mutex, OnceLock};
use std::thread::ThreadId;
use std::time::Instant;

/// A failure, as SQLite is told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// What SQLite receives.
    pub code: Code,
    /// What people read: who, what and where. Errors without one (a lock that is taken, a code
    /// passed on from the host's VFS) are not logged.
    pub message: Option<String>,
}

/// The result of every callback.
pub type Result<T> = core::result::Result<T, Error>;

impl Error {
    /// An error that people read: `message` says who, what and where.
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: Some(message.into()) }
    }

    /// The same, by a message that [says in which folder](in_folder_of).
    #[must_use]
    pub(crate) fn in_folder_of(self, path: &Path) -> Self {
        Self { message: self.message.map(|message| in_folder_of(path, &message)), ..self }
    }

    /// The error of a raw result code, without a message; `Ok` for `SQLITE_OK`.
    ///
    /// # Errors
    ///
    /// Every code other than `SQLITE_OK`.
    pub fn check(code: c_int) -> Result<()> {
        Code::from_raw(code).map_or(Ok(()), |code| Err(code.into()))
    }
}

/// A message with the file's folder, where it does not name it: a log may be about many.
#[must_use]
pub fn in_folder_of(path: &Path, message: &str) -> String {
    match path.parent().map(Path::to_string_lossy) {
        Some(folder) if !folder.is_empty() && !message.contains(&*folder) => {
            format!("{message} (in {folder})")
        }
        _ => message.to_owned(),
    }
}

impl From<Code> for Error {
    fn from(code: Code) -> Self {
        Self { code, message: None }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.message {
            Some(message) => f.write_str(message),
            None => fmt::Display::fmt(&self.code, f),
        }
    }
}

impl core::error::Error for Error {}

/// A message, as it is kept.
#[derive(Clone)]
struct Kept {
    text: String,
    /// A call failed for it; else it is for the user to know, whatever comes next.
    is_of_failure: bool,
    thread: ThreadId,
    at: Instant,
}

thread_local! {
    static LAST_OF_THREAD: RefCell<Option<Kept>> = const { RefCell::new(None) };
}

static LAST_OF_PROCESS: Mutex<Option<Kept>> = Mutex::new(None);

/// The last message of this thread, or else the last that any thread of the process had: of an
/// error that was reported to SQLite, or what the user should know though no call failed. `None` if
/// there was none, or it was an error's and its thread has opened a database since, or begun to
/// write.
#[must_use]
pub fn last_error() -> Option<String> {
    let own = LAST_OF_THREAD.try_with(|last| last.borrow().clone()).ok().flatten();
    let last = own.or_else(|| LAST_OF_PROCESS.try_lock().ok().and_then(|last| last.clone()));
    last.map(|kept| kept.text)
}

/// Since when this thread itself has one.
#[must_use]
pub fn last_error_at() -> Option<Instant> {
    LAST_OF_THREAD.try_with(|last| Some(last.borrow().as_ref()?.at)).ok().flatten()
}

/// Makes a message the answer of [`last_error`] until there is another one.
pub(crate) fn remember(message: &str) {
    keep(message, false);
}

/// Makes a message the answer of [`last_error`] as an error's own is, for one that comes so often
/// that it is no news for the host's log.
pub fn explain(message: &str) {
    keep(message, true);
}

fn keep(message: &str, is_of_failure: bool) {
    let thread = std::thread::current().id();
    let text = in_one_line(message).into_owned();
    let kept = Kept { text, is_of_failure, thread, at: Instant::now() };
    // A thread that is being torn down has no cell left: the process's then holds it alone.
    let _ = LAST_OF_THREAD.try_with(|last| *last.borrow_mut() = Some(kept.clone()));
    // Whoever holds it reports an error just now, too; in a forked child that may be nobody.
    if let Ok(mut last) = LAST_OF_PROCESS.try_lock() {
        *last = Some(kept);
    }
}

/// The failure that this thread reported last is history: it opens a database, or asks for its
/// write lock. What goes wrong with that has a message of its own, or none.
pub(crate) fn forget() {
    let is_history = |last: &mut Option<Kept>| last.take_if(|kept| kept.is_of_failure).is_some();
    let had = LAST_OF_THREAD.try_with(|last| is_history(&mut last.borrow_mut()));
    if had != Ok(true) {
        return;
    }
    if let Ok(mut last) = LAST_OF_PROCESS.try_lock()
        && last.as_ref().is_some_and(|kept| kept.thread == std::thread::current().id())
    {
        is_history(&mut last);
    }
}

static HEARS: OnceLock<fn(Code, &str)> = OnceLock::new();

/// Has `hears` called with all that the host's log is told.
pub fn hear_with(hears: fn(Code, &str)) {
    let _ = HEARS.set(hears);
}

/// Writes a line to the host's log, and has it heard.
pub(crate) fn log(api: &Api, code: Code, message: &str) {
    let line = in_one_line(message);
    for part in parts(&line, line_of(api)) {
        api.log(code, &part);
    }
    if let Some(hears) = HEARS.get() {
        hears(code, &line);
    }
}

/// A message in lines of at most `most` bytes: SQLite cuts a longer one, and what to do comes last.
fn parts(mut message: &str, most: usize) -> Vec<String> {
    let mut parts = Vec::new();
    while message.len() > most {
        let end = message.floor_char_boundary(most.saturating_sub(GOES_ON.len()));
        let (fits, _) = message.split_at(end);
        let end = fits.rfind(' ').filter(|space| *space > 0).unwrap_or(end);
        let (part, rest) = message.split_at(end);
        parts.push(format!("{part}{GOES_ON}"));
        message = rest.trim_start();
    }
    parts.push(message.to_owned());
    parts
}

/// As many bytes of a message come into the host's log (main.c `renderLogMsg`).
fn line_of(api: &Api) -> usize {
    if api.version() < LONG_LINES_SINCE { 209 } else { 699 }
}

/// The first version that is known to log 700 bytes of a message, and not 210.
const LONG_LINES_SINCE: i32 = 3_050_002;

/// Ends a line whose message goes on in the next one.
const GOES_ON: &str = " ...";

/// A message without control characters: the name of a file may have some, and would begin a line
/// of a log, or have a terminal do something.
fn in_one_line(message: &str) -> Cow<'_, str> {
    if !message.contains(char::is_control) {
        return message.into();
    }
    let escaped = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.into() };
    message.chars().map(escaped).collect()
}

/// Reports an error to the host's log and to [`last_error`]; answers the number for SQLite.
pub(crate) fn report(api: &Api, error: &Error) -> c_int {
    if let Some(message) = &error.message {
        keep(message, true);
        log(api, error.code, message);
    }
    error.code.raw()
}

/// Reports a result; `Ok` is `SQLITE_OK`.
pub(crate) fn answer(api: &Api, result: Result<()>) -> c_int {
    match result {
        Ok(()) => crate::code::OK,
        Err(error) => report(api, &error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SQLite cut it after 209 bytes, before what to do.
    #[test]
    fn a_long_message_comes_whole_in_several_lines() {
        let message = "é is locked: end that transaction or wait ".repeat(12);
        let message = message.trim_end();
        let lines = parts(message, 209);
        assert!(lines.len() > 2 && lines.iter().all(|line| line.len() <= 209), "{lines:?}");
        let whole: Vec<_> =
            lines.iter().map(|line| line.strip_suffix(GOES_ON).unwrap_or(line)).collect();
        assert_eq!(whole.join(" "), message);
        assert_eq!(parts("short", 209), ["short"]);
        assert_eq!(parts(&"x".repeat(300), 209).concat().matches('x').count(), 300);
        assert!(parts(&"é".repeat(300), 209).iter().all(|line| line.len() <= 209));
    }
}
