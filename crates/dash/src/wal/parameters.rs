//! The URI parameters of mode wal, and the words for what the engine can do.

use std::path::{Path, PathBuf};
use std::time::Duration;

use dash_wal::{Barrier, Durability, LogMedium, Stock};

use crate::mode::{Parameter, Parameters};
use crate::rest;
use crate::statements::{self, Text};

/// When a commit is durable.
pub const DURABILITY: &str = "dash_durability";
/// What a checkpoint relies on.
pub const BARRIER: &str = "dash_barrier";
/// Whether readers wait.
pub const READ: &str = "dash_read";
/// Where the log lies.
pub const LOG: &str = "dash_log";
/// Where `-wal` is.
pub const WAL: &str = "dash_wal";

/// What stock SQLite may do while the database is open.
pub const STOCK: &str = "dash_stock";

/// What [`rest::PARAMETER`] is if nothing is asked for.
const USUAL_REST: Duration = Duration::from_millis(200);

/// All of them.
pub const ALL: &[Parameter] = &[
    Parameter { name: DURABILITY, value: "KIND", check: |text| durability(text).map(drop) },
    Parameter { name: BARRIER, value: "FILE", check: |text| barrier(text).map(drop) },
    Parameter { name: READ, value: "WHAT", check: |text| reads(text).map(drop) },
    Parameter { name: rest::PARAMETER, value: "MS", check: |text| rest::read(text).map(drop) },
    Parameter { name: LOG, value: "PATH", check: |text| log(text).map(drop) },
    Parameter { name: WAL, value: "WHERE", check: |text| wal(text).map(drop) },
    Parameter { name: STOCK, value: "WHAT", check: |text| stock(text).map(drop) },
    Parameter {
        name: statements::PARAMETER,
        value: "on",
        check: |text| find(statements::PARAMETER, &SWITCH, text).map(drop),
    },
    Parameter {
        name: statements::TEXT,
        value: "EXTENT",
        check: |text| statement_text(text).map(drop),
    },
];

const DURABILITIES: [(&str, Durability); 4] = [
    ("host", Durability::Host),
    ("full", Durability::Full),
    ("device", Durability::Device),
    ("none", Durability::None),
];
const BARRIERS: [(&str, Barrier); 2] = [("log", Barrier::Log), ("wal", Barrier::Wal)];
const SWITCH: [(&str, bool); 2] = [("off", false), ("on", true)];
const TEXTS: [(&str, Text); 3] = [("slack", Text::Slack), ("full", Text::Full), ("off", Text::Off)];
const WALS: [(&str, bool); 2] = [("file", false), ("memory", true)];
const READS: [(&str, bool); 2] = [("latest", false), ("durable", true)];

/// What a word stands for, or a message with the right ones.
fn find<T: Copy>(parameter: &str, words: &[(&'static str, T)], text: &str) -> Result<T, String> {
    let found = words.iter().find(|(word, _)| text.eq_ignore_ascii_case(word));
    found.map(|(_, value)| *value).ok_or_else(|| {
        let words: Vec<_> = words.iter().map(|(word, _)| *word).collect();
        format!("no such {parameter}: {text}; there are {}", words.join(", "))
    })
}

fn name<T: PartialEq>(words: &[(&'static str, T)], value: &T) -> &'static str {
    words.iter().find(|(_, known)| known == value).map_or("", |(word, _)| word)
}

/// The durability of a name.
pub fn durability(text: &str) -> Result<Durability, String> {
    find(DURABILITY, &DURABILITIES, text)
}

/// The barrier of a name.
pub fn barrier(text: &str) -> Result<Barrier, String> {
    find(BARRIER, &BARRIERS, text)
}

/// Whether readers wait, of a name.
pub fn reads(text: &str) -> Result<bool, String> {
    find(READ, &READS, text)
}

/// How much of the statements is recorded in the log, of a name.
pub fn statement_text(text: &str) -> Result<Text, String> {
    find(statements::TEXT, &TEXTS, text)
}

/// And back.
pub fn name_of_text(text: Text) -> &'static str {
    name(&TEXTS, &text)
}

/// What was asked for.
pub fn chosen_text(parameters: &Parameters) -> Text {
    let chosen = parameters.own(statements::TEXT);
    chosen.and_then(|text| statement_text(text).ok()).unwrap_or_default()
}

/// Where the log is to lie: the folder is looked up, as the path is kept for whoever comes later.
pub fn log(text: &str) -> Result<PathBuf, String> {
    let path = Path::new(text);
    if !path.is_absolute() {
        return Err(format!(
            "{LOG}={text}: give an absolute path, of a folder or of the log itself"
        ));
    }
    // What is not there is looked for again by the engine, which says so.
    let found = path.canonicalize().ok().or_else(|| {
        let folder = path.parent()?.canonicalize().ok()?;
        Some(folder.join(path.file_name()?))
    });
    Ok(found.unwrap_or_else(|| path.to_owned()))
}

/// Whether `-wal` is in memory, of a name.
pub fn wal(text: &str) -> Result<bool, String> {
    find(WAL, &WALS, text)
}

/// And back.
pub fn name_of_wal(in_memory: bool) -> &'static str {
    name(&WALS, &in_memory)
}

/// What stock SQLite may do while the database is open, of a name.
pub fn stock(text: &str) -> Result<Stock, String> {
    find(STOCK, &Stock::NAMED, text)
}

/// What the log is written to, as `dash_stats` says it.
pub fn name_of_medium(medium: LogMedium) -> &'static str {
    match medium {
        LogMedium::Direct => "direct",
        LogMedium::Buffered => "buffered",
        LogMedium::Persistent => "persistent memory",
        LogMedium::Volatile => "tmpfs: not durable",
    }
}

/// The name of a durability.
pub fn name_of(durability: Durability) -> &'static str {
    name(&DURABILITIES, &durability)
}

/// The name of a barrier.
pub fn name_of_barrier(barrier: Barrier) -> &'static str {
    name(&BARRIERS, &barrier)
}

/// The name of what readers see.
pub fn name_of_reads(durable: bool) -> &'static str {
    name(&READS, &durable)
}

/// What was asked for that only the engine gives, and stock SQLite's WAL mode does not.
pub fn only_by_engine(parameters: &Parameters) -> Option<String> {
    let is = |name: &str, values: &[&str]| {
        let chosen = parameters.own(name)?;
        let is_it = values.is_empty() || values.iter().any(|it| chosen.eq_ignore_ascii_case(it));
        is_it.then(|| format!("{name}={chosen}"))
    };
    let mode = parameters.mode.filter(|mode| mode.records_statements());
    is(DURABILITY, &["full", "device"])
        .or_else(|| is(READ, &["durable"]))
        .or_else(|| is(LOG, &[]))
        .or_else(|| is(WAL, &["memory"]))
        .or_else(|| is(STOCK, &["read"]))
        .or_else(|| is(statements::PARAMETER, &["on"]))
        .or_else(|| mode.map(|mode| format!("journal_mode={}", mode.names()[0])))
}

/// What was asked for, or else the defaults.
pub fn options(parameters: &Parameters, create: bool) -> dash_wal::OpenOptions {
    fn own<T: Default>(
        parameters: &Parameters,
        name: &str,
        read: fn(&str) -> Result<T, String>,
    ) -> T {
        parameters.own(name).and_then(|text| read(text).ok()).unwrap_or_default()
    }
    let wal_in_memory = parameters.own(WAL).and_then(|text| wal(text).ok());
    // What comes to rest is written into `-wal`'s file, which is to be spared.
    let rest = if wal_in_memory == Some(true) { None } else { Some(USUAL_REST) };
    dash_wal::OpenOptions {
        create,
        permissions: parameters.permissions(),
        durability: own(parameters, DURABILITY, durability),
        barrier: own(parameters, BARRIER, barrier),
        durable_reads: own(parameters, READ, reads),
        rest: parameters.own(rest::PARAMETER).map_or(rest, |text| rest::read(text).ok().flatten()),
        wal_in_memory,
        stock: parameters.own(STOCK).and_then(|text| stock(text).ok()),
        log: parameters.own(LOG).and_then(|text| log(text).ok()),
        ..dash_wal::OpenOptions::default()
    }
}
