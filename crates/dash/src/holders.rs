//! Who is in the way of a connection, in words: which process, by the number that it has here, what
//! it is called, whether it runs, and whether it is on dash.
//!
//! The kernel's locks say who it is. How long it has been so is what the connections of an engine
//! say of themselves: there a process has the number that it knows itself by. It reads the locks of
//! other processes (`/proc`), so it is for when somebody is told.

use std::fmt::Write;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use dash_engine::names::with;
use dash_ffi::{Code, Error};
use dash_statement::shown;
use dash_storage::FileId;
use dash_storage::real::holders::{self, Held, Stopped};

/// What a connection was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// To write.
    Write,
    /// To write, by stock SQLite's rules, in WAL mode.
    WriteAsStock,
    /// To write, after others have committed since it began to read.
    Newest,
    /// To read.
    Read,
    /// To read, and to keep others from writing (`locking_mode=EXCLUSIVE` in an engine).
    ReadAlone,
    /// To checkpoint.
    Checkpoint,
    /// That nobody reads in `-wal`.
    NoReaderOfWal,
    /// That nobody reads.
    NoReader,
    /// To have the database alone.
    Alone,
}

/// What a connection of an engine says of itself: its process, for how long, and the byte of the
/// coordination file that it has locked.
pub type Told = (u32, Duration, u64);

/// What a database knows of who is in the way.
#[derive(Debug, Default)]
pub struct InTheWay {
    /// What connections say of themselves.
    pub told: Vec<Told>,
    /// All that there is to say, with what to do.
    pub why: Option<String>,
}

/// A file of a database.
#[derive(Clone, Copy)]
enum Place {
    Database,
    Shadow,
    Index,
    Coordination,
}
use Place::{Coordination, Database, Index, Shadow};

/// Bytes of a file, and whether only an exclusive lock of them is in the way.
type Lock = (Place, Range<u64>, bool);

/// SQLite's bytes of a database (os.h).
const PENDING: Range<u64> = 0x4000_0000..0x4000_0001;
const RESERVED: Range<u64> = 0x4000_0001..0x4000_0002;
const SHARED: Range<u64> = 0x4000_0002..0x4000_0200;

impl Wanted {
    /// The locks that are in the way of it: of stock SQLite (os.h, os_unix.c), and of dash's
    /// engines (their `shared/locks.rs`).
    fn locks(self) -> Vec<Lock> {
        let written = [PENDING, RESERVED, SHARED].map(|range| (Database, range, true));
        match self {
            Self::Write => {
                [vec![(Coordination, 1..2, false), (Index, 120..121, true)], written.to_vec()]
                    .concat()
            }
            Self::WriteAsStock => {
                [vec![(Index, 120..121, false), (Database, RESERVED, false)], written.to_vec()]
                    .concat()
            }
            Self::Newest => Vec::new(),
            Self::Read => {
                let more = [
                    (Coordination, 0..1, true),
                    (Coordination, 8..9, true),
                    (Index, 120..123, true),
                ];
                [more.to_vec(), written.to_vec()].concat()
            }
            Self::ReadAlone => [Self::Read.locks(), vec![(Coordination, 1..2, true)]].concat(),
            Self::Checkpoint => vec![(Coordination, 5..6, true), (Index, 121..122, true)],
            Self::NoReaderOfWal => vec![(Index, 123..128, false)],
            Self::NoReader => vec![(Database, SHARED, false), (Shadow, SHARED, false)],
            Self::Alone => vec![
                (Coordination, 2..3, false),
                (Database, SHARED, false),
                (Shadow, SHARED, false),
                (Database, RESERVED, true),
                (Index, 128..129, false),
            ],
        }
    }

    fn does(self) -> &'static str {
        match self {
            Self::Write => "has been writing",
            Self::WriteAsStock => "keeps it from being written by stock SQLite's rules",
            Self::Newest => "has committed",
            Self::Read | Self::ReadAlone => "has had it locked",
            Self::Checkpoint => "has been checkpointing",
            Self::NoReaderOfWal | Self::NoReader => "has been reading",
            Self::Alone => "has had it open",
        }
    }
}

/// As many are named.
const NAMED: usize = 4;

/// Who is in the way, in words that end a sentence: `process 17 (python3), on dash, has been
/// writing for 1.5 s`. `told` is what the engine knew when it was refused, `at_least` for how long
/// that has been so. `None`: nobody is, any more.
pub fn in_the_way(
    path: &Path,
    wanted: Wanted,
    told: &[Told],
    at_least: Duration,
) -> Option<String> {
    let locks = wanted.locks();
    let files = files(path);
    let ids: Vec<_> = files.iter().map(|(_, id)| *id).collect();
    let is_meant = |held: &Held| {
        let place = files.iter().find(|(_, id)| *id == held.file).map(|(place, _)| *place as usize);
        locks.iter().any(|(of, range, exclusive)| {
            Some(*of as usize) == place && held.meets(range) && (held.exclusive || !exclusive)
        }) && (wanted != Wanted::NoReader || !held.exclusive)
    };
    // Those who say so are asked first: the machine may have many processes.
    let likely: Vec<_> = told.iter().map(|(process, ..)| *process).collect();
    let mut held = holders::among(&ids, &likely);
    held.retain(is_meant);
    if held.is_empty() || !matches!(wanted, Wanted::Write | Wanted::Checkpoint) {
        held = holders::of(&ids);
        held.retain(is_meant);
    }
    let all = each_once(&held, wanted);
    if all.is_empty() {
        return of_elsewhere(&files, wanted, told);
    }
    let mut said: Vec<_> =
        all.iter().take(NAMED).map(|held| described(held, wanted, told, at_least)).collect();
    if all.len() > NAMED {
        said.push(format!("{} more", all.len() - NAMED));
    }
    Some(said.join("; "))
}

/// The same error, where others have the database, with who that is.
pub fn name_holders(path: &Path, error: Error) -> Error {
    let names = |message: &str| {
        let mut behind = message.split("process ").skip(1);
        behind.any(|text| text.starts_with(|first: char| first.is_ascii_digit()))
    };
    let Some(message) = error.message.as_ref().filter(|message| !names(message)) else {
        return error;
    };
    if error.code.primary() != Code::BUSY {
        return error;
    }
    let mut wanted = [Wanted::Write, Wanted::Alone].into_iter();
    match wanted.find_map(|wanted| in_the_way(path, wanted, &[], Duration::ZERO)) {
        Some(who) => Error::new(error.code, format!("{message} ({who})")),
        None => error,
    }
}

fn files(path: &Path) -> Vec<(Place, FileId)> {
    let named = [(Database, ""), (Shadow, "-shadow"), (Index, "-shm"), (Coordination, "-dash")];
    let found = named.into_iter().filter_map(|(place, ending)| {
        let found = Path::new(&with(path.as_os_str(), ending)).metadata().ok()?;
        Some((place, FileId { device: found.dev(), inode: found.ino() }))
    });
    found.collect()
}

/// Each process once. What is shared this connection may have itself.
fn each_once(held: &[Held], wanted: Wanted) -> Vec<&Held> {
    let own = std::process::id();
    let mut all: Vec<&Held> = Vec::new();
    for lock in held {
        let same = |other: &&Held| {
            other.process.id == lock.process.id && other.is_of_description == lock.is_of_description
        };
        if all.iter().any(same) {
            continue;
        }
        // Of one description all locks of a file are in one list.
        let of_file = held.iter().filter(|other| same(other) && other.file == lock.file);
        let may_be_own = matches!(wanted, Wanted::Alone | Wanted::Write)
            && lock.process.id == own
            && lock.is_of_description
            && !lock.exclusive;
        if may_be_own && of_file.count() < 2 {
            continue;
        }
        all.push(lock);
    }
    // Of the process's own, it may be this connection that has it: then others are in the way.
    let may_read = wanted == Wanted::NoReader;
    let may_be_own = |lock: &&Held| lock.process.id == own && lock.is_of_description == may_read;
    if all.iter().any(|lock| !may_be_own(lock)) {
        all.retain(|lock| !may_be_own(lock));
    }
    all
}

fn described(held: &Held, wanted: Wanted, told: &[Told], at_least: Duration) -> String {
    let process = &held.process;
    let mut said = match process.id == std::process::id() {
        true => format!("another connection of this process, {}", process.id),
        false => format!("process {}", process.id),
    };
    let kind = if held.is_of_description { "on dash" } else { "stock SQLite" };
    let by_number = told.iter().find(|(number, ..)| *number == process.id);
    let does = match wanted {
        Wanted::Write if !held.exclusive => "has been reading under locking_mode=EXCLUSIVE",
        // Only writers say of themselves that they are in its way.
        Wanted::ReadAlone if by_number.is_some() => Wanted::Write.does(),
        Wanted::WriteAsStock if held.exclusive => Wanted::Write.does(),
        wanted => wanted.does(),
    };
    _ = write!(said, " ({}), {kind}, {does}", shown(&process.command));
    // Where there is but one it is that one, whatever it knows itself by.
    let alone = told.first().filter(|_| told.len() == 1 && held.exclusive);
    match by_number.or(alone).filter(|_| held.is_of_description) {
        Some((_, age, _)) => _ = write!(said, " for {}", seconds(*age)),
        None if at_least > Duration::ZERO => {
            _ = write!(said, " for at least {}", seconds(at_least));
        }
        None => {}
    }
    match process.stopped {
        Some(Stopped::BySignal) => {
            _ = write!(said, ", and is stopped: kill -CONT {} lets it go on", process.id);
        }
        Some(Stopped::ByTracer) => said.push_str(", and is stopped by a debugger: end that"),
        None => {}
    }
    said
}

/// Nobody here has the lock: it was given up, or who has it can't be seen.
fn of_elsewhere(files: &[(Place, FileId)], wanted: Wanted, told: &[Told]) -> Option<String> {
    let (number, age, byte) = told.first()?;
    let (does, age) = (wanted.does(), seconds(*age));
    // One of that number may be another one, which has nothing to do with the database.
    let ids: Vec<_> = files.iter().map(|(_, id)| *id).collect();
    let of_number = holders::among(&ids, &[*number]);
    let coordination = files.iter().find(|(place, _)| *place as usize == Coordination as usize);
    let is_that = |held: &Held| {
        coordination.is_some_and(|(_, id)| *id == held.file)
            && held.exclusive
            && held.meets(&(*byte..byte + 1))
    };
    match *number == std::process::id() {
        true if of_number.iter().any(is_that) => {
            Some(format!("another connection of this process, {number}, {does} for {age}"))
        }
        // In a container each first process is number 1.
        true => Some(format!(
            "process {number} of another container (or gone by now), on dash, {does} for {age}"
        )),
        false => of_number.is_empty().then(|| {
            format!(
                "a process that knows itself as {number} (of another user or container, or gone by now), on dash, {does} for {age}"
            )
        }),
    }
}

/// `1.5 s`.
pub fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}
