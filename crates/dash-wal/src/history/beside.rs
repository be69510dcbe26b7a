//! What lies beside a log: what `-wal` holds, and how far a checkpoint has come.

use crate::frames::{FRAME_HEADER, FrameHeader, Prefix, WalHeader, frame_offset, frames_in, walk};
use crate::index::FoundIndex;
use crate::names::Names;
use dash_engine::error::{Context, Operation, Result};
use dash_engine::io::read_exact;
use dash_engine::open::open_if_there;
use dash_storage::{File, OpenMode, Storage};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;

/// What `-wal` holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InWal {
    /// Its salts.
    pub salts: [u32; 2],
    /// The last frame of each commit.
    pub commits: Vec<u32>,
}

/// The commits in the `-wal` of a database; `None`: it has no header, or is not there.
///
/// # Errors
///
/// Those of the file system.
pub fn in_wal<S: Storage>(storage: &S, path: &Path) -> Result<Option<InWal>> {
    let mut commits = Vec::new();
    let salts = look(storage, path, |number, frame, _| {
        if frame.is_commit() {
            commits.push(number);
        }
        ControlFlow::Continue(())
    })?;
    Ok(salts.map(|salts| InWal { salts, commits }))
}

/// A frame: its page's number, and the page.
pub type Frame<'a> = (u32, &'a [u8]);

/// A frame that is kept: its page's number, and the page.
pub type OwnedFrame = (u32, Vec<u8>);

/// The frames of the `-wal` of a database before one; `None`:
/// it has other salts, or not all of them.
///
/// # Errors
///
/// Those of the file system.
pub fn frames_before<S: Storage>(
    storage: &S,
    path: &Path,
    salts: [u32; 2],
    first: u32,
) -> Result<Option<Vec<OwnedFrame>>> {
    let mut frames = Vec::new();
    let found = look(storage, path, |number, frame, page| match number < first {
        true => {
            frames.push((frame.page, page.to_vec()));
            ControlFlow::Continue(())
        }
        false => ControlFlow::Break(()),
    })?;
    let is_whole = frames.len() + 1 == first as usize;
    Ok((found == Some(salts) && is_whole).then_some(frames))
}

/// The frames of a `-wal` from one on.
pub(super) struct WalFrames {
    salts: [u32; 2],
    first: u32,
    /// Pages of the database behind each one that ends a commit, else 0, and the frame.
    frames: Vec<(u32, OwnedFrame)>,
}

impl WalFrames {
    /// Those of the `-wal` of a database; `None`: it has no header, or is not there.
    pub(super) fn read<S: Storage>(storage: &S, path: &Path, first: u32) -> Result<Option<Self>> {
        let mut frames = Vec::new();
        let salts = look(storage, path, |number, frame, page| {
            if number >= first {
                frames.push((frame.commit, (frame.page, page.to_vec())));
            }
            ControlFlow::Continue(())
        })?;
        Ok(salts.map(|salts| Self { salts, first, frames }))
    }

    /// The frames of a commit, and the pages of the database behind it; `None`: they are of another
    /// generation, or not all there.
    pub(super) fn commit(
        &self,
        salts: [u32; 2],
        (first, last): (u32, u32),
    ) -> Option<(u32, impl Iterator<Item = Frame<'_>>)> {
        let place = |number: u32| usize::try_from(number.checked_sub(self.first)?).ok();
        let frames = self.frames.get(place(first)?..=place(last)?)?;
        let (pages, _) = frames.last().filter(|(pages, _)| *pages > 0 && salts == self.salts)?;
        Some((*pages, frames.iter().map(|(_, (page, image))| (*page, &image[..]))))
    }
}

/// Goes through the frames of `-wal` that are valid. Its salts.
fn look<S: Storage>(
    storage: &S,
    path: &Path,
    visit: impl FnMut(u32, &FrameHeader, &[u8]) -> ControlFlow<()>,
) -> Result<Option<[u32; 2]>> {
    let (folder, names) = Names::split(path)?;
    let directory = storage.open_directory(folder).during(Operation::Open, folder.display())?;
    let Some(wal) = open_if_there::<S>(&directory, &names.wal, OpenMode::Read)? else {
        return Ok(None);
    };
    let name = names.shown_wal();
    let Some(header) = WalHeader::read(&wal, name)? else { return Ok(None) };
    walk(&wal, &header, Prefix::before_all(&header), name, visit)?;
    Ok(Some(header.salts))
}

/// The pages of which there are frames in the `-wal` of a database, valid or not: SQLite commits
/// some without a checksum.
///
/// # Errors
///
/// Those of the file system.
pub fn pages_in_wal<S: Storage>(storage: &S, path: &Path, page_size: u32) -> Result<BTreeSet<u32>> {
    let (folder, names) = Names::split(path)?;
    let directory = storage.open_directory(folder).during(Operation::Open, folder.display())?;
    let mut pages = BTreeSet::new();
    let Some(wal) = open_if_there::<S>(&directory, &names.wal, OpenMode::Read)? else {
        return Ok(pages);
    };
    let name = names.shown_wal();
    let len = wal.metadata().during(Operation::Stat, name)?.len;
    for number in 1..=frames_in(len, page_size) {
        let mut header = [0; FRAME_HEADER];
        read_exact(&wal, &mut header, frame_offset(number, page_size))
            .during(Operation::Read, name)?;
        // Behind the last frame that was ever written a file may be long, and empty.
        match FrameHeader::decode(&header).page {
            0 => break,
            page => pages.insert(page),
        };
    }
    Ok(pages)
}

/// What a wal-index says of checkpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checkpointed {
    /// The salts of its `-wal`.
    pub salts: [u32; 2],
    /// Frames up to this one may be in the database.
    pub frame: u32,
}

/// How far a checkpoint has come; `None`: there is no wal-index that says so.
///
/// # Errors
///
/// Those of the file system.
pub fn checkpointed<S: Storage>(storage: &S, path: &Path) -> Result<Option<Checkpointed>> {
    let (folder, names) = Names::split(path)?;
    let directory = storage.open_directory(folder).during(Operation::Open, folder.display())?;
    let found = FoundIndex::find::<S>(&directory, &names)?.and_then(|index| index.checkpoints());
    Ok(found.map(|(salts, frame)| Checkpointed { salts, frame }))
}
