//! `DASH_ERRORS`: what dash says, where a service's log has it. Hosts raise SQLite's own few words,
//! and many of them can't read its error log.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, Once, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use dash_ffi::{Code, HostVfs, Severity};
use dash_statement::{shown, utc};
use dash_storage::real;

const VARIABLE: &std::ffi::CStr = c"DASH_ERRORS";

/// A pipe without a reader holds nobody up.
const O_NONBLOCK: i32 = 0o4000;

/// Where it goes.
#[derive(Debug, PartialEq, Eq)]
enum To {
    Nowhere,
    StandardError,
    Syslog,
    File(PathBuf),
    /// What can't be understood is said once, on standard error and in the error log.
    Unknown,
}

impl To {
    fn of(value: Option<OsString>) -> Self {
        let Some(value) = value.filter(|value| !value.is_empty()) else { return Self::Nowhere };
        match value.to_str() {
            Some("stderr") => Self::StandardError,
            Some("syslog") => Self::Syslog,
            _ if PathBuf::from(&value).is_absolute() => Self::File(value.into()),
            _ => Self::Unknown,
        }
    }
}

/// Hands on what the host's error log is told, each text once as long as it is the same.
pub fn hear(code: Code, text: &str) {
    static TO: OnceLock<To> = OnceLock::new();
    static LAST: Mutex<String> = Mutex::new(String::new());
    let to = TO.get_or_init(|| To::of(dash_ffi::variable(VARIABLE)));
    if matches!(to, To::Nowhere | To::Unknown) {
        return;
    }
    // Whoever holds it says something just now, too; in a forked child that may be nobody.
    if let Ok(mut last) = LAST.try_lock() {
        if *last == text {
            return;
        }
        text.clone_into(&mut last);
    }
    // That it can't be written is no reason to fail.
    drop(write(to, code, &shown(text.as_bytes())));
}

/// What is wrong with the variable.
fn complaint() -> Option<String> {
    let value = dash_ffi::variable(VARIABLE)?;
    let shown = shown(value.as_bytes());
    let why = match To::of(Some(value)) {
        To::Nowhere | To::StandardError => return None,
        To::Unknown => {
            let what = "is ignored: it takes stderr, syslog, or an absolute path";
            return Some(format!("DASH_ERRORS={shown} {what}"));
        }
        To::Syslog => std::fs::metadata("/dev/log").err().map(|error| format!("/dev/log: {error}")),
        To::File(path) => appendable(&path).err().map(|error| error.to_string()),
    };
    why.map(|why| format!("DASH_ERRORS={shown}: what dash says will reach nobody there: {why}"))
}

/// Makes nothing: the first line does, perhaps as another user.
fn appendable(path: &Path) -> io::Result<()> {
    match OpenOptions::new().append(true).custom_flags(O_NONBLOCK).open(path) {
        Err(error) if error.raw_os_error() == Some(NO_READER) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            path.parent().map_or(Ok(()), |folder| folder.metadata().map(drop))
        }
        other => other.map(drop),
    }
}

/// `ENXIO`: a pipe that nobody reads from yet.
const NO_READER: i32 = 6;

/// Says once on standard error what is wrong with the variable, as dash is loaded.
pub fn check() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if let Some(complaint) = complaint() {
            drop(write(&To::StandardError, Code::WARNING, &complaint));
        }
    });
}

/// Says in the host's log what is wrong with it, once a database is opened.
pub fn complain(host: &HostVfs) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if let Some(complaint) = complaint() {
            host.note(Code::WARNING, &complaint);
        }
    });
}

fn write(to: &To, code: Code, text: &str) -> io::Result<()> {
    let process = std::process::id();
    match to {
        To::Nowhere | To::Unknown => Ok(()),
        To::StandardError => real::write_without_waiting(
            &io::stderr(),
            format!("dash[{process}]: {text}\n").as_bytes(),
        ),
        To::Syslog => {
            let severity = match code.primary() {
                Code::NOTICE => Severity::Notice,
                Code::WARNING => Severity::Warning,
                _ => Severity::Error,
            };
            dash_ffi::syslog_line(severity, &format!("dash: {text}"));
            Ok(())
        }
        To::File(path) => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let mut line = utc(i64::try_from(now.as_millis()).unwrap_or(i64::MAX));
            _ = writeln!(line, "Z dash[{process}]: {text}");
            let mut options = OpenOptions::new();
            options.append(true).create(true).mode(0o600).custom_flags(O_NONBLOCK);
            // One write: lines of several processes don't mix.
            let mut file = options.open(path)?;
            let end = file.metadata()?.len().saturating_add(line.len().try_into().unwrap_or(0));
            real::check_limit(end)?;
            file.write_all(line.as_bytes())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_takes_two_words_and_absolute_paths() {
        let of = |value: &str| To::of(Some(value.into()));
        assert_eq!(To::of(None), To::Nowhere);
        assert_eq!(of(""), To::Nowhere);
        assert_eq!(of("stderr"), To::StandardError);
        assert_eq!(of("syslog"), To::Syslog);
        assert_eq!(of("/var/log/dash"), To::File("/var/log/dash".into()));
        assert_eq!(of("stdout"), To::Unknown);
        assert_eq!(of("log/dash"), To::Unknown);
    }
}
