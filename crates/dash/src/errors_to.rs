//! `DASH_ERRORS`: what dash says, where a service's log has it. Hosts raise SQLite's own few words,
//! and many of them can't read its error log.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
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
    /// What can't be understood is said once, in the error log alone.
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

/// Says once what is wrong with the variable.
pub fn complain(host: &HostVfs) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let value = dash_ffi::variable(VARIABLE);
        let text = value.as_ref().map_or_else(String::new, |value| shown(value.as_bytes()));
        if To::of(value) == To::Unknown {
            let message = format!(
                "DASH_ERRORS={text} is ignored: it takes stderr, syslog, or an absolute path"
            );
            host.note(Code::WARNING, &message);
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
