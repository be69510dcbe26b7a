//! The database as it was before the first commit that can be run again: its file, and over it the
//! frames of `-wal` and of the log up to there.
//!
//! A checkpoint copies pages into the file while the log still has them; how far, the wal-index
//! says. What was copied has to be part of the base. Where there is no wal-index, as after a power
//! loss, the pages tell: none may be as a commit of the window has left it.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::path::Path;

use dash_storage::Storage;
use dash_wal::history::{Frame, History};

use crate::image::Image;
use crate::{Error, Result};

/// How often files are read that change meanwhile.
const ATTEMPTS: u32 = 20;
/// Of `-wal`: its header, and a frame's; where the salts are in both.
const WAL_HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
const SALTS: (usize, usize) = (16, 8);

/// See the module.
pub struct Base {
    pub history: History,
    pub image: Image,
    /// The last frame that it has.
    pub frame: u32,
}

/// Makes it in a folder of its own.
pub fn of<S: Storage>(
    storage: &S,
    path: &Path,
    given: Option<&Path>,
    folder: &Path,
) -> Result<Base> {
    let copy = folder.join("target.db");
    let mut attempts = 0;
    loop {
        attempts += 1;
        let before = checkpointed(path)?;
        let history = History::read(storage, path)?.ok_or_else(|| none(path))?;
        let Some((salts, page, first)) = history.window() else { return Err(none(path)) };
        let from = given.unwrap_or(path);
        std::fs::copy(from, &copy).map_err(|error| Error::Io(from.display().to_string(), error))?;
        let wal = read_beside(path, "-wal")?.unwrap_or_default();
        if checkpointed(path)? != before {
            if attempts < ATTEMPTS {
                continue;
            }
            return Err(Error::NoBase(format!(
                "{} is being checkpointed all the time: try again",
                path.display()
            )));
        }
        let image = Image::open(&copy, page)?;
        if given.is_some() {
            return Ok(Base { history, image, frame: first - 1 });
        }
        let frames = frames(&wal, salts, page, first - 1, path)?;
        let known = before.filter(|it| it.salts == salts);
        let frame = known.map_or(first - 1, |it| it.frame.max(first - 1));
        if known.is_none() {
            untouched(&history, &image, &frames, path)?;
        }
        for (number, bytes) in &frames {
            image.put(*number, bytes)?;
        }
        return Ok(Base { history, image, frame });
    }
}

fn none(path: &Path) -> Error {
    Error::NoBase(format!(
        "the log of {} holds no commit that is not in the database",
        path.display()
    ))
}

/// What a wal-index says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Checkpointed {
    salts: [u32; 2],
    /// Frames up to this one may be in the database.
    frame: u32,
}

/// `None`: there is no wal-index that says so. SQLite's `WalIndexHdr` and `WalCkptInfo` (wal.c).
fn checkpointed(path: &Path) -> Result<Option<Checkpointed>> {
    let Some(bytes) = read_beside(path, "-shm")? else { return Ok(None) };
    let native = |at: usize| {
        let bytes = bytes.get(at..at + 4).and_then(<[u8]>::first_chunk);
        bytes.map(|bytes| u32::from_ne_bytes(*bytes))
    };
    let is_initialized = bytes.get(12) == Some(&1);
    let (Some(one), Some(two)) = (native(32), native(36)) else { return Ok(None) };
    let (Some(copied), Some(attempted)) = (native(96), native(128)) else { return Ok(None) };
    let found = Checkpointed { salts: [one, two].map(u32::from_be), frame: copied.max(attempted) };
    Ok(is_initialized.then_some(found))
}

fn read_beside(path: &Path, suffix: &str) -> Result<Option<Vec<u8>>> {
    let mut name = OsString::from(path);
    name.push(suffix);
    match std::fs::read(&name) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::Io(name.to_string_lossy().into_owned(), error)),
    }
}

fn number(bytes: &[u8], at: usize) -> u32 {
    let bytes = bytes.get(at..at + 4).unwrap_or_default();
    bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

/// The frames of `-wal` before the window, which were durable there before it began.
fn frames(
    wal: &[u8],
    salts: [u32; 2],
    page: u32,
    last: u32,
    path: &Path,
) -> Result<Vec<(u32, Vec<u8>)>> {
    let salts_at = |bytes: &[u8], at: usize| [number(bytes, at), number(bytes, at + 4)];
    let size = FRAME_HEADER + page as usize;
    let found = wal.get(WAL_HEADER..).unwrap_or(&[]).chunks_exact(size).take(last as usize);
    let ours = |frame: &&[u8]| salts_at(frame, SALTS.1) == salts;
    let found: Vec<_> = found
        .take_while(ours)
        .map(|frame| (number(frame, 0), frame[FRAME_HEADER..].to_vec()))
        .collect();
    let is_whole = found.len() == last as usize;
    if last == 0 || is_whole && salts_at(wal, SALTS.0) == salts {
        return Ok(found);
    }
    Err(Error::NoBase(format!(
        "{}-wal has lost what came before the log's first commit: give a copy from before with --base",
        path.display()
    )))
}

/// That no checkpoint has copied a page of the window into the database.
fn untouched(
    history: &History,
    image: &Image,
    frames: &[(u32, Vec<u8>)],
    path: &Path,
) -> Result<()> {
    let earlier: HashMap<u32, &Vec<u8>> =
        frames.iter().map(|(page, bytes)| (*page, bytes)).collect();
    let mut told = HashSet::new();
    history.replay(|_, frames: &[Frame<'_>]| {
        for (page, bytes) in frames {
            let is_new = image.get(*page)?.as_deref() == Some(*bytes);
            let was_so = earlier.get(page).is_some_and(|earlier| earlier[..] == **bytes);
            if is_new && !was_so && told.insert(*page) {
                return Err(Error::NoBase(format!(
                    "a checkpoint has copied page {page} of {} into the database, and there is no wal-index that says how \
                     far it came: give a copy from before with --base",
                    path.display()
                )));
            }
        }
        Ok(())
    })
}
