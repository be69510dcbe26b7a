//! The database as it was before the first commit that is run again: its file, and over it the
//! frames of `-wal` and of the log up to there; or a copy that the user gives, with the same
//! frames.
//!
//! A checkpoint copies pages into the file while the log still has them; how far, the wal-index
//! says. What was copied has to be part of the base. Where there is no wal-index, as after a power
//! loss, the pages tell: none may be as a commit of the window has left it.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::path::Path;

use dash_storage::Storage;
use dash_storage::real::Real;
use dash_wal::history::{History, OwnedFrame, Start, checkpointed, frames_before, in_wal};

use crate::image::Image;
use crate::{Error, Result};

/// How often files are read that change meanwhile.
const ATTEMPTS: u32 = 20;

/// See the module.
pub struct Base {
    pub history: History,
    pub image: Image,
    /// The last frame that it has.
    pub frame: u32,
    /// Why it may be another state.
    pub doubt: Option<String>,
}

/// Makes it in a folder of its own. `all`: of the log's oldest window, not of the one that counts.
pub fn of<S: Storage>(
    storage: &S,
    path: &Path,
    given: Option<&Path>,
    all: bool,
    folder: &Path,
) -> Result<Base> {
    let copy = folder.join("target.db");
    let mut attempts = 0;
    loop {
        attempts += 1;
        let before = checkpointed(storage, path)?;
        let mut history = History::read(storage, path)?.ok_or_else(|| none(path))?;
        history.look_into_wal(storage, path)?;
        let Some(start) = history.start(all)? else { return Err(none(path)) };
        let from = given.unwrap_or(path);
        std::fs::copy(from, &copy).map_err(|error| Error::Io(from.display().to_string(), error))?;
        let frames = frames_before(storage, path, start.salts(), start.first_frame)?;
        if checkpointed(storage, path)? != before {
            if attempts < ATTEMPTS {
                continue;
            }
            return Err(Error::NoBase(format!(
                "{} is being checkpointed all the time: try again",
                path.display()
            )));
        }
        let image = Image::open(&copy, start.page_size())?;
        let first = start.first_frame;
        if let Some(given) = given {
            let doubt = doubt(&start, &image, frames.as_deref(), given)?;
            put(&image, &frames.unwrap_or_default())?;
            return Ok(Base { history, image, frame: first.saturating_sub(1), doubt });
        }
        let frames = frames.or_else(|| (first <= 1).then(Vec::new)).ok_or_else(|| lost(path))?;
        let known = before.filter(|it| it.salts == start.salts());
        let earlier = first.saturating_sub(1);
        let frame = known.map_or(earlier, |it| it.frame.max(earlier));
        if known.is_none() {
            untouched(&history, &image, &frames, path)?;
        }
        put(&image, &frames)?;
        return Ok(Base { history, image, frame, doubt: None });
    }
}

/// Puts frames into it, but for pages that no state of it can have: each page of one is in the file
/// or in a frame, but for that of SQLite's lock bytes.
fn put(image: &Image, frames: &[OwnedFrame]) -> Result<()> {
    let more = u32::try_from(frames.len()).unwrap_or(u32::MAX).saturating_add(1);
    let room = image.pages()?.saturating_add(more);
    let mut frames = frames.iter().filter(|(number, _)| *number <= room);
    frames.try_for_each(|(number, bytes)| image.put(*number, bytes))
}

/// Pages that the database may have: those of the base, of its file and of the frames in `-wal`.
pub fn room(path: &Path, base: &Image) -> Result<u32> {
    let len = std::fs::metadata(path)
        .map_err(|error| Error::Io(path.display().to_string(), error))?
        .len();
    let file = u32::try_from(len / u64::from(base.page.max(1))).unwrap_or(u32::MAX);
    let wal = in_wal(&Real, path)?.and_then(|wal| wal.commits.last().copied());
    Ok(base.pages()?.max(file).saturating_add(wal.unwrap_or(0)).saturating_add(1))
}

fn none(path: &Path) -> Error {
    Error::NoBase(format!(
        "the log of {} holds no commit that is not in the database; --all, with a copy from before them as --base, runs \
         those again that it still has",
        path.display()
    ))
}

fn lost(path: &Path) -> Error {
    Error::NoBase(format!(
        "{}-wal has lost what came before the log's first commit: give a copy from before with --base",
        path.display()
    ))
}

/// Why a copy that is given, with the frames of `-wal` before the window, may not be the state that
/// the window starts from.
fn doubt(
    start: &Start,
    image: &Image,
    frames: Option<&[OwnedFrame]>,
    given: &Path,
) -> Result<Option<String>> {
    let given = given.display();
    let mut wal = OsString::from(given.to_string());
    wal.push("-wal");
    if std::fs::metadata(&wal).is_ok_and(|found| found.len() > 0) {
        return Err(Error::NoBase(format!(
            "{given} has a -wal of its own: open and close it with SQLite first"
        )));
    }
    if frames.is_none() && start.first_frame > 1 {
        return Ok(Some(format!(
            "{given} may lack commits that are not in the log: frames 1 to {} of -wal come before its first one, and are gone",
            start.first_frame - 1
        )));
    }
    let first = image.get(1)?.unwrap_or_default();
    let mut later = frames.unwrap_or_default().iter().filter(|(number, _)| *number == 1);
    let is_later = later.any(|(_, bytes)| bytes.get(..96) == first.get(..96));
    match is_later || start.may_begin_with(|number| image.get(number))? {
        true => Ok(None),
        false => Ok(Some(format!(
            "{given} is not the file that the log began with: it may lack commits that are not in the log, or have later ones"
        ))),
    }
}

/// That no checkpoint has copied a page of the window into the database.
fn untouched(history: &History, image: &Image, frames: &[OwnedFrame], path: &Path) -> Result<()> {
    let earlier: HashMap<u32, &Vec<u8>> =
        frames.iter().map(|(page, bytes)| (*page, bytes)).collect();
    let mut told = HashSet::new();
    history.replay(false, |_, _, frames| {
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
        Ok(true)
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    /// A number in a frame is anybody's. SEC S2-3
    #[test]
    fn no_frame_makes_a_copy_larger_than_the_frames_account_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.db");
        std::fs::write(&path, vec![1; 2 * 4096]).unwrap();
        let image = Image::open(&path, 4096).unwrap();
        let zero = put(&image, &[(0, vec![2; 4096])]).unwrap_err().to_string();
        assert!(zero.contains("page 0"), "{zero}");
        let frames = [2, 4, u32::MAX].map(|number| (number, vec![2; 4096]));
        put(&image, &frames).unwrap();
        assert_eq!((image.pages().unwrap(), image.get(0).unwrap()), (4, None));
        assert_eq!(image.get(4).unwrap(), Some(vec![2; 4096]));
        let frames = frames.iter().map(|(number, page)| (*number, &page[..])).collect::<Vec<_>>();
        image.apply(&frames, 3).unwrap();
        assert_eq!(image.pages().unwrap(), 3);
        let room = room(&path, &image).unwrap();
        assert_eq!(room, 4);
    }
}
