//! Bits that flip, sectors that are zero, and files that end early: in `-wal`, in the wal-index and
//! in the log of a database that was left by a crash. What is found then is what a commit left,
//! with all before it, or a refusal; the log or `-wal` ends where it is damaged, and nothing that
//! is wrong is taken for content. Other files are as they were.

use std::fs;
use std::path::Path;

use rusqlite::ffi;

use crate::again::Again;
use crate::faults::part::{GoOn, case_folder, failed};
use crate::faults::sql::said::Said;
use crate::faults::sql::stage::{Stage, sound_state};
use crate::random::Dice;
use crate::sqlite::{self, Wrong};
use crate::{Options, Summary};

/// Bytes of the rows of the commits behind the first one.
const COMMITS: [i64; 5] = [100, 5_000, 100, 60_000, 100];
/// Bytes that a device writes as a whole.
const SECTOR: usize = 512;
/// Endings of the names of what may be damaged.
const FILES: [&str; 3] = ["-wal", "-dashlog", "-shm"];
/// Codes of a refusal.
const REFUSALS: [i32; 4] =
    [ffi::SQLITE_CANTOPEN, ffi::SQLITE_CORRUPT, ffi::SQLITE_IOERR, ffi::SQLITE_NOTADB];

/// How a database was left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    /// All processes were killed.
    Killed,
    /// The power was lost: of `-wal` there is what was flushed.
    Cut,
}

/// What is done to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Damage {
    Flip,
    Zero,
    End,
}

const LEFT: [(&str, Left); 2] = [("killed", Left::Killed), ("cut", Left::Cut)];
const DAMAGE: [(&str, Damage); 3] =
    [("flip", Damage::Flip), ("zero", Damage::Zero), ("end", Damage::End)];

/// The files of a database: endings and contents.
type Files = Vec<(&'static str, Vec<u8>)>;

/// A case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Case {
    left: (&'static str, Left),
    file: &'static str,
    damage: (&'static str, Damage),
    /// The bit, counted from the beginning of the file.
    bit: usize,
}

impl Case {
    fn name(&self) -> String {
        format!("bits/{}/{}/{}/{}", self.left.0, self.file, self.damage.0, self.bit)
    }

    fn named(name: &str) -> Option<Self> {
        let mut words = name.strip_prefix("bits/")?.split('/');
        let (left, file, damage) = (words.next()?, words.next()?, words.next()?);
        Some(Self {
            left: *LEFT.iter().find(|(name, _)| *name == left)?,
            file: FILES.into_iter().find(|name| *name == file)?,
            damage: *DAMAGE.iter().find(|(name, _)| *name == damage)?,
            bit: words.next()?.parse().ok()?,
        })
    }

    /// One of a file; half of them where something was written.
    fn draw(left: (&'static str, Left), files: &Files, dice: &mut Dice) -> Option<Self> {
        let (file, bytes) = dice.pick(files).filter(|(file, _)| FILES.contains(file))?;
        let mut byte = dice.index(bytes.len());
        if dice.one_in(2) {
            byte = (byte..bytes.len()).find(|&at| bytes[at] != 0).unwrap_or(byte);
        }
        let damage = dice.pick(&DAMAGE)?;
        Some(Self { left, file, damage, bit: byte * 8 + dice.index(8) })
    }

    fn apply(&self, files: &Files) -> Files {
        let mut files = files.clone();
        let Some((_, bytes)) = files.iter_mut().find(|(name, _)| *name == self.file) else {
            return files;
        };
        let byte = (self.bit / 8).min(bytes.len().saturating_sub(1));
        match self.damage.1 {
            Damage::Flip => {
                if let Some(byte) = bytes.get_mut(byte) {
                    *byte ^= 1 << (self.bit % 8);
                }
            }
            Damage::Zero => {
                let begin = byte / SECTOR * SECTOR;
                let end = (begin + SECTOR).min(bytes.len());
                bytes[begin..end].fill(0);
            }
            Damage::End => bytes.truncate(byte),
        }
        files
    }

    /// Opens what is there then.
    fn run(&self, files: &Files, newest: i64, parameters: &str) -> Result<(), String> {
        let folder = case_folder(None)?;
        put(folder.path(), &self.apply(files))?;
        let mut stage = Stage::new(folder.path(), "wal", parameters);
        sqlite::forget();
        let found = stage.open().map_err(Wrong::Sql).and_then(|()| sound_state(stage.db()));
        let found = match found {
            Ok(found) => found,
            Err(Wrong::Content(what)) => return Err(what),
            Err(Wrong::Sql(error)) => return refused(&Said::of(&error)),
        };
        // Where all that was committed is in another file, nothing is lost.
        let is_elsewhere = self.left.1 == Left::Killed && self.file != "-wal";
        let least = if is_elsewhere { newest } else { 0 };
        if !(least..=newest).contains(&found) {
            return Err(format!("commit {found} is found, of {newest}"));
        }
        (stage.acknowledged, stage.begun) = (found, found);
        let told = |what: &str, error: rusqlite::Error| {
            format!("{what}: {error}; {}", sqlite::last_error())
        };
        let next = if found == 0 { stage.make() } else { stage.commit(100) };
        next.and_then(|()| stage.close()).map_err(|error| told("a further commit", error))?;
        let stock = sqlite::open_stock(&stage.path).map_err(|error| told("stock SQLite", error))?;
        match sound_state(&stock) {
            Ok(seen) if seen == stage.acknowledged => Ok(()),
            other => Err(format!("at rest stock finds {other:?}, not {}", stage.acknowledged)),
        }
    }
}

fn refused(said: &Said) -> Result<(), String> {
    let is_fitting = REFUSALS.contains(&(said.code & 0xff)) && !said.message.is_empty();
    match is_fitting && !said.is_panic() {
        true => Ok(()),
        false => Err(format!("a refusal that fits nothing: {said:?}")),
    }
}

/// The files as they are now.
fn take(stage: &Stage) -> Result<Files, String> {
    let mut files = Files::new();
    for ending in ["", "-wal", "-dashlog", "-shm", "-dash"] {
        let mut name = stage.path.as_os_str().to_owned();
        name.push(ending);
        if let Ok(bytes) = fs::read(Path::new(&name)) {
            files.push((ending, bytes));
        }
    }
    match files.iter().any(|(ending, _)| *ending == "-dashlog") {
        true => Ok(files),
        false => Err("the log was never begun".to_owned()),
    }
}

/// Puts them into another folder, behind the name fence.
fn put(folder: &Path, files: &Files) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("putting files: {error}");
    for (ending, bytes) in files {
        fs::write(folder.join(format!("app.db{ending}")), bytes).map_err(failed)?;
    }
    fs::create_dir(folder.join("app.db-journal")).map_err(failed)
}

/// A database that a crash left, both ways, and its newest commit.
fn left(parameters: &str) -> Result<([Files; 2], i64), String> {
    let told = |error: rusqlite::Error| format!("{error}; {}", sqlite::last_error());
    let folder = case_folder(None)?;
    let mut stage = Stage::new(folder.path(), "wal", parameters);
    stage.open().map_err(told)?;
    stage.db().execute_batch("PRAGMA wal_autocheckpoint = 0").map_err(told)?;
    stage.make().map_err(told)?;
    // The first commit of a session is durable in `-wal` itself, the others are in the log.
    let wal = folder.path().join("app.db-wal");
    let flushed = fs::read(&wal).map_err(|error| error.to_string())?;
    for bytes in COMMITS {
        stage.commit(bytes).map_err(told)?;
    }
    let killed = take(&stage)?;
    let cut = killed
        .iter()
        .filter(|(ending, _)| !["-shm", "-dash"].contains(ending))
        .map(|(ending, bytes)| match *ending {
            "-wal" => (*ending, flushed.clone()),
            _ => (*ending, bytes.clone()),
        })
        .collect();
    Ok(([killed, cut], stage.acknowledged))
}

/// The part: cases until the time is over.
pub fn run(options: &Options, _: &Again, summary: &mut Summary, go_on: &mut GoOn<'_>) {
    const PARAMETERS: &str = "&journal_mode=wal";
    let made = sqlite::load(&options.library).and_then(|()| left(PARAMETERS));
    let (files, newest) = match made {
        Ok(made) => made,
        Err(what) => {
            failed(summary, &what, "bits");
            return;
        }
    };
    let of = |case: &Case| if case.left.1 == Left::Killed { &files[0] } else { &files[1] };
    let named = options.case.as_deref().map(Case::named);
    let mut dice = Dice::new(options.seed, 0);
    loop {
        let drawn = || {
            let left = LEFT[dice.index(LEFT.len())];
            let files = if left.1 == Left::Killed { &files[0] } else { &files[1] };
            Case::draw(left, files, &mut dice)
        };
        let Some(case) = named.unwrap_or_else(drawn) else {
            if named.is_some() {
                return;
            }
            continue;
        };
        summary.cases += 1;
        let result = case.run(of(&case), newest, PARAMETERS);
        let enough = result.is_err_and(|what| failed(summary, &what, &case.name()));
        if enough || named.is_some() || !go_on() {
            return;
        }
    }
}
