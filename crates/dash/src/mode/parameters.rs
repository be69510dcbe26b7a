//! URI parameters: `file:app.db?vfs=dash&journal_mode=shadow&dash_commit=single`.
//!
//! A typo must not go unnoticed, or somebody believes in a durability that is not there: what
//! begins with `dash_`, or is a near miss of a name of dash, fails the open with the right names.
//! Everything else passes: SQLite has parameters of its own, and so have drivers, which leave them
//! in the URI (`_journal_mode`, `_busy_timeout`, `_txlock` of Go's).

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::PathBuf;

use dash_ffi::{Code, Error, FileName, Result};

use super::{Mode, Modes};
use crate::{file_system, rest};

/// The parameter that chooses the mode.
const JOURNAL_MODE: &str = "journal_mode";
/// The parameter by which a program lets SQL make files ([`crate::backup`]), whatever the mode.
pub const BACKUP: &str = "dash_backup";
/// Its value then.
pub const ON: &str = "on";
/// The parameter of the mode that a database stays in whatever it was left in, and whatever `PRAGMA
/// journal_mode` asks for in passing.
pub const DEFAULT: &str = "dash_default";
/// The parameter of how commits are carried, in the modes in which there are several ways.
pub const COMMIT: &str = "dash_commit";
/// How many letters a name may be away from one of dash's and still be taken for it.
const NEAR: usize = 2;

/// What the URI asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parameters {
    /// `journal_mode`.
    pub mode: Option<&'static dyn Mode>,
    /// The modes' own ([`Mode::parameters`]), checked.
    own: BTreeMap<&'static str, String>,
    /// `nolock=1`.
    pub nolock: bool,
    /// `immutable=1`.
    pub immutable: bool,
    /// `psow`, if given.
    pub powersafe_overwrite: Option<bool>,
    /// `dash_filesystem=any`: whatever file system it is on.
    pub any_file_system: bool,
    /// `modeof`: the file whose permissions a new database gets.
    pub mode_of: Option<PathBuf>,
}

impl Parameters {
    /// Reads and checks the parameters of a database.
    ///
    /// # Errors
    ///
    /// `SQLITE_CANTOPEN` for a parameter or a value that dash doesn't know.
    pub fn of(name: &FileName<'_>, modes: &Modes) -> Result<Self> {
        Self::read(name.parameters(), modes)
    }

    fn read<'a>(
        pairs: impl Iterator<Item = (&'a OsStr, &'a OsStr)>,
        modes: &Modes,
    ) -> Result<Self> {
        let mut parameters = Self::default();
        for (key, value) in pairs {
            parameters
                .take(&key.to_string_lossy(), value, modes)
                .map_err(|message| Error::new(Code::CANTOPEN, message))?;
        }
        Ok(parameters)
    }

    fn take(
        &mut self,
        key: &str,
        value: &OsStr,
        modes: &Modes,
    ) -> core::result::Result<(), String> {
        let text = value.to_string_lossy();
        match key {
            JOURNAL_MODE => {
                self.mode = Some(modes.named(&text).ok_or_else(|| modes.unknown(&text))?);
            }
            // Whoever is asked for a backup reads it where SQLite keeps it.
            BACKUP => backup(&text)?,
            file_system::PARAMETER if text.eq_ignore_ascii_case(file_system::ANY) => {
                self.any_file_system = true;
            }
            file_system::PARAMETER => {
                return Err(format!("no such {key}: {text}; there is {}", file_system::ANY));
            }
            "nolock" => self.nolock = boolean(&text),
            "immutable" => self.immutable = boolean(&text),
            "psow" => self.powersafe_overwrite = Some(boolean(&text)),
            "modeof" => self.mode_of = Some(PathBuf::from(value)),
            _ => return self.take_own(key, &text, modes),
        }
        Ok(())
    }

    fn take_own(
        &mut self,
        key: &str,
        text: &str,
        modes: &Modes,
    ) -> core::result::Result<(), String> {
        if let Some(parameter) = modes.parameters().find(|parameter| parameter.name == key) {
            (parameter.check)(text)?;
            self.own.insert(parameter.name, text.to_owned());
        } else if let Some(meant) = misspelt(key, modes) {
            let mut all: Vec<_> = ours(modes).collect();
            // Modes may have one in common.
            let mut seen = BTreeSet::new();
            all.retain(|name| seen.insert(*name));
            return Err(format!(
                "no such parameter: {key}; did you mean {meant}? dash's parameters are {}",
                all.join(", ")
            ));
        }
        Ok(())
    }

    /// One of the modes' own, if it was given.
    pub(crate) fn own(&self, name: &str) -> Option<&str> {
        self.own.get(name).map(String::as_str)
    }

    /// Whether one of the modes' own that is `on` or `off` was given as `on`.
    pub(crate) fn is_on(&self, name: &str) -> bool {
        self.own(name).is_some_and(|text| text.eq_ignore_ascii_case("on"))
    }

    /// Whether a database that is not told otherwise by the URI stays in this mode.
    pub(crate) fn stays_in(&self, mode: &dyn Mode) -> bool {
        self.own(DEFAULT).is_some_and(|name| mode.names().contains(&name))
    }

    /// As if the URI had asked for this.
    pub(crate) fn set_own(&mut self, name: &'static str, value: &str) {
        self.own.insert(name, value.to_owned());
    }
}

/// dash's own parameters.
fn ours(modes: &Modes) -> impl Iterator<Item = &'static str> {
    let common = [JOURNAL_MODE, BACKUP, file_system::PARAMETER];
    common.into_iter().chain(modes.parameters().map(|parameter| parameter.name))
}

/// Checks the value of [`BACKUP`].
fn backup(text: &str) -> core::result::Result<(), String> {
    match [ON, "off"].iter().any(|known| text.eq_ignore_ascii_case(known)) {
        true => Ok(()),
        false => Err(format!("no such {BACKUP}: {text}; there are on, off")),
    }
}

/// As `sqlite3_uri_boolean` reads a value: a number, or yes, true, on.
fn boolean(text: &str) -> bool {
    match text.parse::<i64>() {
        Ok(number) => number != 0,
        Err(_) => ["yes", "true", "on"].iter().any(|yes| text.eq_ignore_ascii_case(yes)),
    }
}

/// The parameter of dash that an unknown one was probably meant to be; `None` for everybody else's.
///
/// An underscore in front is the mark of a driver's own, so `_journal_mode` is no miss of
/// `journal_mode`; but no driver has a `_dash_commit`.
fn misspelt(key: &str, modes: &Modes) -> Option<&'static str> {
    let key = key.to_ascii_lowercase();
    let own = key.trim_start_matches('_').strip_prefix("dash").is_some_and(|rest| {
        // `dash_` and `dash-`; not `dashboard`.
        rest.starts_with(|c: char| !c.is_ascii_alphanumeric())
    });
    let plain = |text: &str| text.chars().filter(char::is_ascii_alphanumeric).collect::<String>();
    let letters = plain(&key);
    if letters == "dashlinger" {
        return Some(rest::PARAMETER); // what has taken its place
    }
    let (name, distance) = ours(modes)
        .map(|name| (name, distance(&plain(name), &letters)))
        .min_by_key(|(_, distance)| *distance)?;
    let near = distance <= NEAR && !key.starts_with('_');
    (own || near).then_some(name)
}

/// Edits that turn one text into the other.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let cost = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = cost.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modes::MODES;

    fn read(pairs: &[(&str, &str)]) -> Result<Parameters> {
        let pairs = pairs.iter().map(|(key, value)| (OsStr::new(*key), OsStr::new(*value)));
        Parameters::read(pairs, &MODES)
    }

    #[test]
    fn known_parameters_are_read() {
        let read = read(&[
            ("vfs", "dash"),
            ("journal_mode", "Shadow"),
            ("dash_commit", "paper"),
            ("dash_rest", "250"),
            ("immutable", "on"),
            ("psow", "0"),
            ("my_own", "1"),
        ]);
        let own = [("dash_commit", "paper".to_owned()), ("dash_rest", "250".to_owned())];
        let expected = Parameters {
            mode: MODES.named("shadow"),
            own: own.into(),
            immutable: true,
            powersafe_overwrite: Some(false),
            ..Parameters::default()
        };
        assert_eq!(read, Ok(expected));
    }

    #[test]
    fn parameters_of_sqlite_and_of_drivers_pass() {
        let others = [
            // SQLite's
            "vfs",
            "mode",
            "cache",
            "psow",
            "nolock",
            "immutable",
            "modeof",
            "hexkey",
            "delete",
            // mattn/go-sqlite3's and modernc.org/sqlite's
            "_journal_mode",
            "_journal",
            "_busy_timeout",
            "_timeout",
            "_txlock",
            "_foreign_keys",
            "_fk",
            "_synchronous",
            "_sync",
            "_locking_mode",
            "_locking",
            "_pragma",
            "_loc",
            "_mutex",
            "_cache_size",
            "_auto_vacuum",
            "_query_only",
            "_time_format",
            "_writable_schema",
            // others'
            "journal",
            "synchronous",
            "busy_timeout",
            "filename",
            "dashboard",
            "commit",
            "linger",
            "ptr",
            "my_own",
            "",
        ];
        for key in others {
            // With a value that is wrong for every parameter of dash's.
            assert!(read(&[(key, "WAL")]).is_ok(), "{key}");
        }
    }

    #[test]
    fn a_misspelt_parameter_or_value_fails_with_the_right_names() {
        for (key, value, hint) in [
            ("journal_mode", "shadwo", "shadow, wal, statement, delete"),
            ("journal_mode", "inpage", "isn't available"),
            ("dash_wal", "disk", "file, memory"),
            ("dash_stock", "all", "read, write, checkpoint"),
            ("dash_log", "pmem", "absolute path"),
            ("dash_default", "wal", "there is only shadow"),
            ("dash_defualt", "shadow", "dash_default"),
            ("dash_durability", "fully", "host, full, device, none"),
            ("dash_barrier", "shm", "log, wal"),
            ("dash_read", "dirty", "latest, durable"),
            ("dash_statements", "yes", "off, on"),
            ("dash_statement", "on", "dash_statements"),
            ("dash_statement_text", "all", "slack, full, off"),
            ("journalmode", "shadow", "journal_mode"),
            ("jornal_mode", "shadow", "journal_mode"),
            ("Journal-Mode", "shadow", "journal_mode"),
            ("dash_comit", "single", "dash_commit"),
            ("dash_engine", "shadow", "dash_commit"),
            ("dash_commit", "double", "single, paper, exclusive"),
            ("dash_backup", "yes", "on, off"),
            ("dash_backups", "on", "dash_backup"),
            ("dash_linger", "1000", "dash_rest"),
            ("dahs_rest", "1", "dash_rest"),
            ("DASH-COMMIT", "single", "dash_commit"),
            ("dashcommit", "single", "dash_commit"),
            ("_dash_commit", "single", "dash_commit"),
            ("jounral_mode", "shadow", "journal_mode"),
        ] {
            let error = read(&[(key, value)]).expect_err(key);
            assert_eq!(error.code, Code::CANTOPEN);
            let message = error.message.unwrap_or_default();
            assert!(message.contains(hint), "{key}={value}: {message}");
        }
    }
}
