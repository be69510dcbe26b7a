//! What a database's log holds, commit by commit, for whoever looks: no lock is taken and nothing
//! is written. A record that is being written has no checksum yet, and is not there.

mod beside;

use crate::annotation::{Known, SaidOf, carried_in};
use crate::bounds::FRAMES_MAX;
use crate::context::{Generation, RecordContext, page_of};
use crate::frames::{FrameHeader, frame_size};
use crate::logged::Frames;
use crate::names::Names;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_engine::open::open_if_there;
use dash_log::images::Images;
use dash_log::scan::{RecordPlace, Scan};
use dash_log::session::Place;
use dash_storage::{OpenMode, Storage};
use std::path::Path;
use std::sync::Arc;

use beside::WalFrames;
pub use beside::{
    Checkpointed, Frame, InWal, OwnedFrame, checkpointed, frames_before, in_wal, pages_in_wal,
};

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
    /// Pages of the database behind it; 0: its record does not say.
    pub database_pages: u32,
    /// Its statements carry it: the log has no frame of it.
    pub carried: bool,
    /// What is said of it.
    pub known: Known,
}

/// What was found.
pub struct History {
    scan: Scan,
    generation: Option<Generation>,
    wal: Option<WalFrames>,
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
        let (folder, names) = Names::split(path)?;
        let directory = storage.open_directory(folder).during(Operation::Open, folder.display())?;
        let db = open_if_there::<S>(&directory, &names.db, OpenMode::Read)?.map(Arc::new);
        let mut place = Place::beside(&Arc::new(directory), (*names).clone(), db.as_ref());
        if let Some(strayed) = place.follow(storage)? {
            return Err(place.refusal(strayed));
        }
        let opened = place.open_to_read()?.map_err(|strayed| place.refusal(strayed))?;
        let Some(log) = opened else { return Ok(None) };
        let mut attempts = 0;
        loop {
            attempts += 1;
            match Scan::examine(log.read_all()?, place.names.shown_log()) {
                // Some of it may have been read before it was overwritten, and some after.
                Err(Error::Corrupt(_)) if attempts < ATTEMPTS => {}
                Err(error) => return Err(error),
                Ok(scan) => {
                    let context = scan.chain.first().map(|place| context_of(&scan, place));
                    let generation = context.transpose()?.and_then(|context| context.start);
                    return Ok(Some(Self { scan, generation, wal: None }));
                }
            }
        }
    }

    /// Looks into `-wal` for the frames of commits that their statements carry, of which the log
    /// has none: [`Self::replay`] shows them then.
    ///
    /// # Errors
    ///
    /// As of [`Self::commits`], and those of the file system.
    pub fn look_into_wal<S: Storage>(&mut self, storage: &S, path: &Path) -> Result<()> {
        let commits = self.commits_in(&self.scan.found)?;
        let carried = commits.iter().filter(|commit| commit.carried);
        if let Some(first) = carried.map(|commit| commit.frames.0).min() {
            self.wal = WalFrames::read(storage, path, first)?;
        }
        Ok(())
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
            let (context, frames) = Frames::of(&record)?;
            let mut first = context.first_frame;
            for (frame, said) in carried_in(&record)? {
                let is_last = context.carried.as_ref().filter(|carried| carried.last == frame);
                commits.push(Commit {
                    record: record.sequence,
                    shared_by: 0,
                    bytes: record.padded,
                    generation: context.generation,
                    frames: (first, frame),
                    database_pages: is_last
                        .map_or(0, |carried| FrameHeader::decode(&carried.header).commit),
                    carried: true,
                    known: Known::Said(said),
                });
                first = frame.saturating_add(1);
            }
            let said = SaidOf::new(record.annotation);
            for frame in frames.filter(|frame| frame.is_commit()) {
                commits.push(Commit {
                    record: record.sequence,
                    shared_by: 0,
                    bytes: record.padded,
                    generation: context.generation,
                    frames: (first, frame.number),
                    database_pages: frame.commit,
                    carried: false,
                    known: said.frame(frame.number),
                });
                first = frame.number.saturating_add(1);
            }
            let shared_by = u32::try_from(commits.len() - before).unwrap_or(u32::MAX);
            commits[before..].iter_mut().for_each(|commit| commit.shared_by = shared_by);
        }
        Ok(commits)
    }

    /// Where [`Self::replay`] begins; `None`: no record counts.
    ///
    /// # Errors
    ///
    /// As of [`Self::commits`].
    pub fn start(&self, all: bool) -> Result<Option<Start>> {
        let windows = self.windows(all)?;
        Ok(windows.into_iter().next().map(|(start, _)| start))
    }

    /// Shows the frames of each commit that recovery would take, or with `all` of each one that is
    /// not overwritten, the oldest first; the first one of a window with what that starts from. One
    /// that its statements carry has none, but for those of [`Self::look_into_wal`].
    /// `show` answers whether to go on.
    ///
    /// # Errors
    ///
    /// As of [`Self::commits`], and those of `show`.
    pub fn replay<E: From<Error>>(
        &self,
        all: bool,
        mut show: impl FnMut(Option<&Start>, &Commit, &[Frame<'_>]) -> std::result::Result<bool, E>,
    ) -> std::result::Result<(), E> {
        for (start, places) in self.windows(all)? {
            let commits = self.commits_in(places)?;
            let (mut commits, mut first) = (commits.iter(), Some(&start));
            let mut images = Images::new(start.page_size());
            let mut frames = Vec::<(u32, Vec<u8>)>::new();
            for place in places {
                let record = self.scan.record(place)?;
                if record.unit_bytes != start.page_size() {
                    return Err(damaged("its pages have two sizes").into());
                }
                for _ in carried_in(&record)? {
                    if let Some(commit) = commits.next()
                        && !self.show_carried(&start, commit, |commit, frames| {
                            show(first.take(), commit, frames)
                        })?
                    {
                        return Ok(());
                    }
                }
                for frame in Frames::of(&record)?.1 {
                    // Those of a commit are in one record.
                    if frames.len() as u64 * frame_size(start.page_size()) > FRAMES_MAX {
                        return Err(damaged("it has frames that no commit ends").into());
                    }
                    frames.push((frame.entry.unit, images.feed(&frame.entry)?.to_vec()));
                    if frame.is_commit()
                        && let Some(commit) = commits.next()
                    {
                        let shown: Vec<_> =
                            frames.iter().map(|(page, image)| (*page, &image[..])).collect();
                        if !show(first.take(), commit, &shown)? {
                            return Ok(());
                        }
                        frames.clear();
                    }
                }
            }
        }
        Ok(())
    }

    /// Shows a commit that its statements carry, with its frames where `-wal` has them.
    fn show_carried<T>(
        &self,
        start: &Start,
        commit: &Commit,
        show: impl FnOnce(&Commit, &[Frame<'_>]) -> T,
    ) -> T {
        let found = self.wal.as_ref().and_then(|wal| wal.commit(start.salts(), commit.frames));
        match found {
            Some((database_pages, frames)) => {
                show(&Commit { database_pages, ..commit.clone() }, &frames.collect::<Vec<_>>())
            }
            None => show(commit, &[]),
        }
    }

    /// The windows that count, or all of which the beginning is there: in each, records that follow
    /// each other without a gap.
    fn windows(&self, all: bool) -> Result<Vec<(Start, &[RecordPlace])>> {
        let mut rest = if all { &self.scan.found[..] } else { &self.scan.chain[..] };
        let mut windows: Vec<(Start, &[RecordPlace])> = Vec::new();
        while let Some(place) = rest.first() {
            let context = context_of(&self.scan, place)?;
            let mut count = 1;
            while let Some(next) = rest.get(count)
                && next.sequence == place.sequence + count as u64
                && context_of(&self.scan, next)?.start.is_none()
            {
                count += 1;
            }
            let (places, behind) = rest.split_at(count);
            if let Some(generation) = context.start {
                windows.push((Start { generation, first_frame: context.first_frame }, places));
            }
            rest = behind;
        }
        Ok(windows)
    }
}

/// What a window starts from.
#[derive(Debug, Clone, Copy)]
pub struct Start {
    generation: Generation,
    /// The first frame in it.
    pub first_frame: u32,
}

impl Start {
    /// The salts of its generation.
    #[must_use]
    pub fn salts(&self) -> [u32; 2] {
        self.generation.salts()
    }

    /// Bytes of a page.
    #[must_use]
    pub fn page_size(&self) -> u32 {
        page_of(&self.generation.header)
    }

    /// Whether a database may be what the generation began with, by its header and the page that
    /// was written last before; `page` answers its pages.
    ///
    /// # Errors
    ///
    /// Those of `page`.
    pub fn may_begin_with<E>(
        &self,
        mut page: impl FnMut(u32) -> std::result::Result<Option<Vec<u8>>, E>,
    ) -> std::result::Result<bool, E> {
        let stamp = self.generation.stamp;
        if !stamp.is_known() {
            return Ok(true);
        }
        let header = page(1)?.is_some_and(|first| stamp.is_header_of(&first));
        Ok(header && (stamp.page == 0 || page(stamp.page)?.is_some_and(|it| stamp.is_page(&it))))
    }
}

fn damaged(what: &str) -> Error {
    Error::Corrupt(format!("the log is damaged: {what}"))
}

fn context_of(scan: &Scan, place: &RecordPlace) -> Result<RecordContext> {
    RecordContext::of(&scan.record(place)?)
}
