//! What a database's log holds, commit by commit, for whoever looks: no lock is taken and nothing
//! is written. A record that is being written has no checksum yet, and is not there.

use crate::annotation::{Known, of_frame};
use crate::context::{Generation, RecordContext, page_of};
use crate::frames::{FRAME_HEADER, FrameHeader, Prefix, WalHeader, walk};
use crate::names::Names;
use crate::place::{self, Place};
use crate::strayed::refusal;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_engine::open::open_if_there;
use dash_log::images::Images;
use dash_log::scan::{RecordPlace, Scan};
use dash_storage::{File, OpenMode, Storage};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

/// How often a log is read that changes meanwhile.
const ATTEMPTS: u32 = 20;

/// A commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// The number of the record that it is in.
    pub record: u64,
    /// Commits in that record.
    pub shared_by: u32,
    /// Bytes of the record, padding included.
    pub bytes: u32,
    /// dash's number of the generation of `-wal`.
    pub generation: u64,
    /// The first and the last frame in `-wal`.
    pub frames: (u32, u32),
    /// Pages of the database behind it.
    pub database_pages: u32,
    /// What is said of it.
    pub known: Known,
}

/// A frame: its page's number, and the page.
pub type Frame<'a> = (u32, &'a [u8]);

/// What was found.
pub struct History {
    scan: Scan,
    generation: Option<Generation>,
}

impl History {
    /// Reads the log of a database; `None`: there is none.
    ///
    /// # Errors
    ///
    /// Those of the file system; [`Error::CantOpen`] for one that a newer dash wrote, or that lies
    /// elsewhere and strayed (WAL-26);
    /// [`Error::Corrupt`] for what no crash leaves.
    pub fn read<S: Storage>(storage: &S, path: &Path) -> Result<Option<Self>> {
        let (folder, mut names) = Names::split(path)?;
        let directory = storage.open_directory(folder).during(Operation::Open, folder.display())?;
        let place = find(storage, directory, &mut names)?;
        let opened = place.open_to_read()?.map_err(|strayed| refusal(&names, strayed))?;
        let Some(log) = opened else { return Ok(None) };
        let mut attempts = 0;
        loop {
            attempts += 1;
            match Scan::examine(log.read_all()?, names.shown_log()) {
                // Some of it may have been read before it was overwritten, and some after.
                Err(Error::Corrupt(_)) if attempts < ATTEMPTS => {}
                Err(error) => return Err(error),
                Ok(scan) => {
                    let context = scan.chain.first().map(|place| context_of(&scan, place));
                    let generation = context.transpose()?.and_then(|context| context.start);
                    return Ok(Some(Self { scan, generation }));
                }
            }
        }
    }

    /// The salts of `-wal` that recovery would go on from, bytes of a page, and the first frame
    /// that it would take from the log; `None`: no record counts.
    #[must_use]
    pub fn window(&self) -> Option<([u32; 2], u32, u32)> {
        let generation = self.generation?;
        let first = self.scan.chain.first()?;
        let first = context_of(&self.scan, first).ok()?.first_frame;
        Some((generation.salts(), page_of(&generation.header), first))
    }

    /// The commits that recovery would take from the log, the oldest first.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] for records that this dash did not write.
    pub fn commits(&self) -> Result<Vec<Commit>> {
        self.commits_in(&self.scan.chain)
    }

    /// Those in every record behind the one with this number, as far as they are not overwritten,
    /// also if they are in the database by now.
    ///
    /// # Errors
    ///
    /// As of [`Self::commits`].
    pub fn commits_behind(&self, record: u64) -> Result<Vec<Commit>> {
        let behind = self.scan.found.partition_point(|place| place.sequence <= record);
        self.commits_in(&self.scan.found[behind..])
    }

    /// The number of the newest record; 0: there is none.
    #[must_use]
    pub fn newest(&self) -> u64 {
        self.scan.found.last().map_or(0, |place| place.sequence)
    }

    /// The numbers of records that recovery would not take, as one before them is missing or
    /// damaged; `None`: there is none, as a rule.
    #[must_use]
    pub fn cut_off(&self) -> Option<(u64, u64)> {
        let last = self.scan.chain.last().map_or(self.scan.head.sequence, |place| place.sequence);
        let first = self.scan.found.partition_point(|place| place.sequence <= last);
        let first = self.scan.found.get(first)?.sequence;
        Some((first, self.newest()))
    }

    fn commits_in(&self, places: &[RecordPlace]) -> Result<Vec<Commit>> {
        let mut commits = Vec::new();
        for place in places {
            let before = commits.len();
            let record = self.scan.record(place)?;
            let context = RecordContext::decode(record.context)?;
            let mut first = context.first_frame;
            for (frame, entry) in (context.first_frame..).zip(record.entries()) {
                let Some(header) = header(entry.meta).filter(FrameHeader::is_commit) else {
                    continue;
                };
                commits.push(Commit {
                    record: record.sequence,
                    shared_by: 0,
                    bytes: record.padded,
                    generation: context.generation,
                    frames: (first, frame),
                    database_pages: header.commit,
                    known: of_frame(record.annotation, frame),
                });
                first = frame + 1;
            }
            let shared_by = u32::try_from(commits.len() - before).unwrap_or(u32::MAX);
            commits[before..].iter_mut().for_each(|commit| commit.shared_by = shared_by);
        }
        Ok(commits)
    }

    /// Shows the frames of each commit that recovery would take, the oldest first.
    ///
    /// # Errors
    ///
    /// As of [`Self::commits`], and those of `show`.
    pub fn replay<E: From<Error>>(
        &self,
        mut show: impl FnMut(&Commit, &[Frame<'_>]) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let Some((_, page, _)) = self.window() else { return Ok(()) };
        let commits = self.commits()?;
        let mut commits = commits.iter();
        let (mut images, mut frames) = (Images::new(page), Vec::<(u32, Vec<u8>)>::new());
        for record in self.scan.records() {
            for entry in record?.entries() {
                frames.push((entry.unit, images.feed(&entry)?.to_vec()));
                if header(entry.meta).is_some_and(|header| header.is_commit())
                    && let Some(commit) = commits.next()
                {
                    let shown: Vec<_> =
                        frames.iter().map(|(page, image)| (*page, &image[..])).collect();
                    show(commit, &shown)?;
                    frames.clear();
                }
            }
        }
        Ok(())
    }
}

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
    let (folder, names) = Names::split(path)?;
    let directory = storage.open_directory(folder).during(Operation::Open, folder.display())?;
    let Some(wal) = open_if_there::<S>(&directory, &names.wal, OpenMode::Read)? else {
        return Ok(None);
    };
    let name = names.shown_wal();
    let Some(header) = WalHeader::read(&wal, name)? else { return Ok(None) };
    let mut commits = Vec::new();
    walk(&wal, &header, Prefix::before_all(&header), name, |number, frame, _| {
        if frame.is_commit() {
            commits.push(number);
        }
        ControlFlow::Continue(())
    })?;
    Ok(Some(InWal { salts: header.salts, commits }))
}

/// Where the log is.
fn find<S: Storage>(storage: &S, directory: S::Directory, names: &mut Names) -> Result<Place<S>> {
    let directory = Arc::new(directory);
    let Some(db) = open_if_there::<S>(&directory, &names.db, OpenMode::Read)? else {
        return Ok(Place::beside(&directory, names));
    };
    let sign = place::read::<S>(&directory, names, &db)?;
    let sign = sign.map_err(|strayed| refusal(names, strayed))?;
    let Some(sign) = sign else { return Ok(Place::beside(&directory, names)) };
    let inode = db.id().inode;
    if place::is_void(&sign, inode) {
        return Ok(Place::nowhere());
    }
    names.log_is_at(&sign.path);
    let place = Place::of(storage, sign, &Arc::new(db))?;
    match place.strayed(inode)? {
        None => Ok(place),
        Some(strayed) => Err(refusal(names, strayed)),
    }
}

fn context_of(scan: &Scan, place: &RecordPlace) -> Result<RecordContext> {
    RecordContext::decode(scan.record(place)?.context)
}

fn header(meta: &[u8]) -> Option<FrameHeader> {
    <&[u8; FRAME_HEADER]>::try_from(meta).ok().map(FrameHeader::decode)
}
