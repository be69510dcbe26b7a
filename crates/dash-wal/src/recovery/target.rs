//! `Target`: the database that statements are run on, and what of theirs is let in.
//!
//! What they write is bounded before it is taken: a record names its frames, and its statements get
//! no more of them. So a log costs no more memory and no more of a disk than it says.

use super::Recovery;
use crate::bounds::FRAMES_MAX;
use crate::execute::Pages;
use crate::frames::{FRAME_HEADER, FrameHeader, Prefix, WalHeader, frame_offset, walk};
use crate::made::Made;
use crate::mutation::{Mutation, broken};
use dash_engine::error::{Context, Error, Operation, Result};
use dash_engine::io::{read_exact, read_padded};
use dash_engine::memory::zeros;
use dash_storage::{File, Storage};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Bytes of frames that are written together, about.
const TOGETHER: usize = 256 << 10;

/// What is known of a record's commits before they are run.
pub(super) struct Check {
    /// How many are left.
    commits: usize,
    /// Frames that they may still write.
    frames: u64,
    /// What they made.
    made: Made,
}

impl Check {
    /// Of so many commits, which wrote so many frames. A second run may write one more page in
    /// each, which is as it was.
    pub(super) fn of(commits: usize, frames: u32, made: Made, header: &WalHeader) -> Self {
        let most = FRAMES_MAX / header.frame_size();
        Self { commits, frames: most.min(u64::from(frames) + commits as u64), made }
    }
}

impl<S: Storage> Recovery<'_, S> {
    /// The database as of the frames that are kept.
    pub(super) fn target(
        &self,
        header: &WalHeader,
        base: Prefix,
        wal: &S::File,
        checks: VecDeque<Check>,
    ) -> Result<Target<S::File>> {
        let name = self.files.names.shown_wal();
        let own = self.wal.find(self.files)?;
        let own = own.filter(|own| own.id() == wal.id());
        let own = own.ok_or_else(|| Error::CantOpen(format!("{name} was replaced: try again")))?;
        let mut frames = HashMap::new();
        let mut room = Ok(());
        walk(wal, header, Prefix::before_all(header), name, |number, frame, _| {
            room = frames.try_reserve(1);
            if room.is_err() {
                return ControlFlow::Break(());
            }
            frames.insert(frame.page, number);
            ControlFlow::Continue(())
        })?;
        room.map_err(|_| Error::OutOfMemory)?;
        let count = match base.committed {
            0 => {
                let len = self.files.database.size()?;
                u32::try_from(len / u64::from(header.page_size)).map_err(|_| Error::OutOfMemory)?
            }
            _ => base.pages,
        };
        Ok(Target {
            wal: own,
            database: Arc::clone(self.files.database.file()),
            names: [name, self.files.names.shown()].map(|name| name.to_string()),
            header: *header,
            last: base.last,
            checksum: base.checksum,
            count,
            frames,
            waiting: Vec::new(),
            checks,
        })
    }
}

/// The database that statements are run on: what `-wal` has, else the file.
pub(super) struct Target<F: File> {
    wal: Arc<F>,
    database: Arc<F>,
    /// Of both, for messages.
    names: [String; 2],
    header: WalHeader,
    /// Number and checksum of the last frame.
    last: u32,
    checksum: [u32; 2],
    /// Pages of the database.
    count: u32,
    /// The newest frame of each page.
    frames: HashMap<u32, u32>,
    /// The last frames, not written yet.
    waiting: Vec<u8>,
    /// Of each record that is not done.
    checks: VecDeque<Check>,
}

impl<F: File> Target<F> {
    /// The first frame that is not written.
    fn first_waiting(&self) -> u32 {
        let count = self.waiting.len() as u64 / self.header.frame_size();
        self.last + 1 - u32::try_from(count).unwrap_or(0)
    }

    /// Writes the frames that wait, when all records are done.
    pub(super) fn finish(&mut self) -> Result<()> {
        match self.checks.is_empty() {
            true => self.write(),
            false => Err(self.otherwise()),
        }
    }

    /// Writes the frames that wait.
    fn write(&mut self) -> Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let at = frame_offset(self.first_waiting(), self.header.page_size);
        self.wal.write_at(&self.waiting, at).during(Operation::Write, &self.names[0])?;
        self.waiting.clear();
        Ok(())
    }

    /// At the end of a record: whether its statements have made what they made the first time.
    fn check(&mut self) -> Result<()> {
        let Some(check) = self.checks.front_mut() else { return Ok(()) };
        check.commits -= 1;
        let made = match check.commits {
            0 => self.checks.pop_front().map(|check| check.made).unwrap_or_default(),
            _ => return Ok(()),
        };
        if made.is(|number| self.read(number))? || broken(Mutation::OtherwiseTaken) {
            return Ok(());
        }
        Err(self.otherwise())
    }

    /// Why a database isn't opened whose statements have not made what they made.
    fn otherwise(&self) -> Error {
        let [wal, db] = &self.names;
        Error::CantOpen(format!(
            "statements that carry commits of {db} (dash_commit=paper) come to something else than they did: this program sets \
             its connections otherwise (sqlite3_auto_extension), or {db} or {wal} is not as it was before them, as a program \
             without dash has changed it; open it with another program, restore a backup, or let `sqlite-dash recover {db} --discard` \
             go on without these commits"
        ))
    }

    /// Takes so many frames of what the record has.
    fn take_frames(&mut self, count: usize) -> Result<()> {
        let left = self.checks.front().map_or(0, |check| check.frames);
        match (left.checked_sub(count as u64), self.checks.front_mut()) {
            (Some(left), Some(check)) => check.frames = left,
            _ if broken(Mutation::OtherwiseTaken) => {}
            _ => return Err(self.otherwise()),
        }
        Ok(())
    }

    /// The page in a frame that waits.
    fn waiting(&self, frame: u32) -> Option<&[u8]> {
        let size = usize::try_from(self.header.frame_size()).ok()?;
        let index = usize::try_from(frame.checked_sub(self.first_waiting())?).ok()?;
        self.waiting.get(index * size + FRAME_HEADER..(index + 1) * size)
    }
}

impl<F: File> Pages for Target<F> {
    fn page_size(&self) -> u32 {
        self.header.page_size
    }

    fn count(&self) -> u32 {
        self.count
    }

    fn read(&mut self, number: u32) -> Result<Vec<u8>> {
        let size = self.header.page_size;
        let mut page = zeros(u64::from(size))?;
        if number > self.count {
            return Ok(page);
        }
        if let Some(frame) = self.frames.get(&number) {
            if let Some(waiting) = self.waiting(*frame) {
                return Ok(waiting.to_vec());
            }
            let at = frame_offset(*frame, size) + FRAME_HEADER as u64;
            let whole = read_exact(&self.wal, &mut page, at);
            return match whole.during(Operation::Read, &self.names[0])? {
                true => Ok(page),
                false => Err(Error::Corrupt(format!("{} was cut", self.names[0]))),
            };
        }
        if number > 0 {
            let at = u64::from(number - 1) * u64::from(size);
            read_padded(&*self.database, &mut page, at).during(Operation::Read, &self.names[1])?;
        }
        Ok(page)
    }

    fn commit(&mut self, pages: &BTreeMap<u32, Vec<u8>>, count: u32) -> Result<()> {
        let size = self.header.page_size;
        if pages.values().any(|page| u32::try_from(page.len()) != Ok(size)) {
            return Err(Error::Refused("a page of another length".to_owned()));
        }
        self.take_frames(pages.len())?;
        let mut left = pages.len();
        let frames = left.saturating_mul(usize::try_from(self.header.frame_size()).unwrap_or(left));
        self.waiting.try_reserve(frames).map_err(|_| Error::OutOfMemory)?;
        self.frames.try_reserve(left).map_err(|_| Error::OutOfMemory)?;
        for (number, page) in pages {
            left -= 1;
            let commit = if left == 0 { count } else { 0 };
            let header = FrameHeader::behind(&self.header, self.checksum, (*number, commit), page);
            self.checksum = FrameHeader::decode(&header).checksum;
            self.waiting.extend(header);
            self.waiting.extend(page);
            self.last += 1;
            self.frames.insert(*number, self.last);
        }
        self.count = count;
        self.check()?;
        match self.waiting.len() < TOGETHER {
            true => Ok(()),
            false => self.write(),
        }
    }
}
