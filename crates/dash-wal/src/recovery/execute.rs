//! Running statements again whose frames a power loss took: the recovery of protocol `paper`
//! (SQLite/SSL, VLDB 2017, section 5), as far as it is needed.
//!
//! Each record of statements names its last frame. Those whose frame `-wal` has, with the header
//! that it had, are done: its checksum covers everything before it. At the first one that `-wal`
//! lacks it is cut behind the one before, whatever is valid there, as it is of an earlier recovery
//! that was not finished, or was never acknowledged; and from there on all are run again (WAL-34).
//! A run may take another number of frames, or other ones, and comes to the same pages: each
//! record says which, with a checksum ([`Made`]). What comes to others is refused (WAL-39).

use super::Recovery;
use super::look::{Chain, Log, Look};
use crate::annotation::carried_in;
use crate::context::{Carried, RecordContext};
use crate::execute::{Pages, Runner};
use crate::frames::{FRAME_HEADER, FrameHeader, Prefix, WalHeader, frame_offset, walk};
use crate::made::Made;
use crate::mutation::{Mutation, broken};
use dash_engine::error::{Context, Error, Operation, Result};
use dash_engine::io::{read_exact, read_padded};
use dash_engine::memory::{headroom, zeros};
use dash_storage::{File, Storage};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of frames that are written together, about.
const TOGETHER: usize = 256 << 10;

/// What the items of an annotation take in memory, in lengths of the record.
const COPIES: usize = 16;

/// A record of statements.
struct Run {
    first: u32,
    carried: Carried,
    /// What its commits ran.
    commits: Vec<Vec<u8>>,
}

impl<S: Storage> Recovery<'_, S> {
    /// Has those run again that `-wal` lacks, which is flushed once it is described.
    ///
    /// # Errors
    ///
    /// `CantOpen`, with `-wal` as it was, where nobody can run them here, or somebody has put the
    /// log there who may not write the database; those of running them.
    pub(super) fn execute(&self, log: &Log<S::File>, chain: &Chain, wal: &S::File) -> Result<()> {
        if !chain.carries || broken(Mutation::NotExecuted) {
            return Ok(());
        }
        let (look, name) = (self.look(), self.files.names.shown_wal());
        let Some((header, runs, base)) = look.to_be_run(log, chain, wal)? else { return Ok(()) };
        if let Some(refusal) =
            look.statements_of_strangers(log, runs.iter().map(|run| run.commits.len()).sum())?
        {
            return Err(Error::CantOpen(refusal));
        }
        let executor = self.settings.executor.as_ref();
        let here = executor.map(|executor| executor.runner());
        let is_other = |run: &Run| here != Some(run.carried.runner);
        let others = runs.iter().any(is_other) && !broken(Mutation::OthersExecute);
        let (Some(executor), false) = (executor, others) else {
            return Err(Error::CantOpen(look.statements_of_others(&runs, here)));
        };
        let checks = runs.iter().map(|run| (run.commits.len(), run.carried.made.clone())).collect();
        let commits: Vec<_> = runs.into_iter().flat_map(|run| run.commits).collect();
        let len = frame_offset(base.last + 1, header.page_size);
        wal.set_len(len).during(Operation::Resize, name)?;
        let target = self.target(&header, base, wal, checks)?;
        let target = Arc::new(Mutex::new(target));
        let pages: Arc<Mutex<dyn Pages>> = target.clone();
        executor.execute(&pages, &commits).map_err(|error| match error {
            Error::CantOpen(why) => Error::CantOpen(format!("{}: {why}", look.names.shown_log())),
            other => other,
        })?;
        let mut target = target.lock().unwrap_or_else(PoisonError::into_inner);
        match target.checks.is_empty() {
            true => target.write(),
            false => Err(target.otherwise()),
        }
    }

    /// The database as of the frames that are kept.
    fn target(
        &self,
        header: &WalHeader,
        base: Prefix,
        wal: &S::File,
        checks: VecDeque<(usize, Made)>,
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

impl<S: Storage> Look<'_, S> {
    /// What statements carry and `-wal` lacks: its header, the records, and what it has before
    /// them; `None`: it has all.
    fn to_be_run(
        &self,
        log: &Log<S::File>,
        chain: &Chain,
        wal: &S::File,
    ) -> Result<Option<(WalHeader, Vec<Run>, Prefix)>> {
        let (mut runs, header) = (self.runs(log)?, self.header_of(chain)?);
        let Some((lacks, base)) = self.lacks(&runs, &header, wal)? else { return Ok(None) };
        runs.drain(..lacks);
        Ok(Some((header, runs, base)))
    }

    fn header_of(&self, chain: &Chain) -> Result<WalHeader> {
        let header = WalHeader::decode(&chain.generation.header, self.names.shown_wal())?;
        header.ok_or_else(|| self.damaged_log("it has no header of -wal"))
    }

    /// What a program is told that runs no statements, where opening has some run again, and
    /// whether it has not, as they are a stranger's. `-wal` may lack frames before them, too, which
    /// opening writes first.
    pub(crate) fn needs_statements(
        &self,
        log: &Log<S::File>,
        wal: Option<&S::File>,
    ) -> Result<Option<(bool, String)>> {
        let (Some(chain), Some(wal)) = (log.chain.as_ref().filter(|it| it.carries), wal) else {
            return Ok(None);
        };
        let (runs, header) = (self.runs(log)?, self.header_of(chain)?);
        let (done, _) = self.done(&runs, &header, wal)?;
        let Some(left) = runs.get(done..).filter(|left| !left.is_empty()) else { return Ok(None) };
        Ok(Some(
            match self
                .statements_of_strangers(log, left.iter().map(|run| run.commits.len()).sum())?
            {
                Some(refusal) => (true, refusal),
                None => (false, self.statements_of_others(left, None)),
            },
        ))
    }

    /// The records of statements, in order.
    fn runs(&self, log: &Log<S::File>) -> Result<Vec<Run>> {
        let damaged = || self.damaged_log("what carries its commits can't be");
        let mut runs: Vec<Run> = Vec::new();
        for record in log.scan.records() {
            let record = record?;
            let context = RecordContext::of(&record)?;
            let Some(carried) = context.carried else {
                match runs.is_empty() {
                    true => continue,
                    // Frames never follow statements (WAL-32).
                    false => return Err(damaged()),
                }
            };
            headroom(record.length().saturating_mul(COPIES))?;
            let known = carried_in(&record).map_err(|_| damaged())?;
            let commits: Vec<_> = known.into_iter().map(|(_, said)| said.statements).collect();
            let first = context.first_frame;
            let follows =
                runs.last().is_none_or(|run| run.carried.last.checked_add(1) == Some(first));
            if commits.is_empty() || !follows {
                return Err(damaged());
            }
            runs.push(Run { first, carried, commits });
        }
        Ok(runs)
    }

    /// The first one that `-wal` lacks, and what `-wal` has before it; `None`: it has all.
    fn lacks(
        &self,
        runs: &[Run],
        header: &WalHeader,
        wal: &S::File,
    ) -> Result<Option<(usize, Prefix)>> {
        let (done, all) = self.done(runs, header, wal)?;
        let Some(run) = runs.get(done) else { return Ok(None) };
        let base = match done.checked_sub(1) {
            Some(before) => runs[before].carried.last,
            None => run.first - 1,
        };
        if broken(Mutation::ExecutedOnTop) {
            return Ok(Some((done, all)));
        }
        let (before_all, name) = (Prefix::before_all(header), self.names.shown_wal());
        let upto = walk(wal, header, before_all, name, |number, _, _| match number > base {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        })?;
        match upto.last == base && upto.committed == base {
            true => Ok(Some((done, upto))),
            false => Err(self.missing_frames()),
        }
    }

    /// Of how many `-wal` has the last frame, and all that it has.
    fn done(&self, runs: &[Run], header: &WalHeader, wal: &S::File) -> Result<(usize, Prefix)> {
        let mut done = 0;
        let (before_all, name) = (Prefix::before_all(header), self.names.shown_wal());
        let all = walk(wal, header, before_all, name, |number, found, _| {
            if let Some(run) = runs.get(done).filter(|run| run.carried.last == number)
                && FrameHeader::decode(&run.carried.header) == *found
            {
                done += 1;
            }
            ControlFlow::Continue(())
        })?;
        Ok((done, all))
    }

    /// Why a database isn't opened whose commits have to be run again by somebody else.
    fn statements_of_others(&self, runs: &[Run], here: Option<Runner>) -> String {
        let (db, log) = (self.names.shown(), self.names.shown_log());
        let commits: usize = runs.iter().map(|run| run.commits.len()).sum();
        let by = runs.iter().map(|run| run.carried.runner);
        let by = by.clone().find(|by| here != Some(*by)).or_else(|| by.clone().next());
        let by = by.map(|runner| runner.to_string()).unwrap_or_default();
        let here = match here {
            Some(here) => format!("this is {here}"),
            None => "this program runs none".to_owned(),
        };
        format!(
            "{log} holds {commits} commits by their statements alone (dash_commit=paper), which {by} ran and has to run again; \
             {here}: open {db} once, through dash, with a program that has that SQLite, or let `sqlite-dash recover {db} --discard` go \
             on without these commits"
        )
    }
}

/// The database that statements are run on: what `-wal` has, else the file.
struct Target<F: File> {
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
    /// For each record how many of its commits are left, and what they made.
    checks: VecDeque<(usize, Made)>,
}

impl<F: File> Target<F> {
    /// The first frame that is not written.
    fn first_waiting(&self) -> u32 {
        let count = self.waiting.len() as u64 / self.header.frame_size();
        self.last + 1 - u32::try_from(count).unwrap_or(0)
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
        let Some((left, _)) = self.checks.front_mut() else { return Ok(()) };
        *left -= 1;
        let made = match left {
            0 => self.checks.pop_front().map(|(_, made)| made).unwrap_or_default(),
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
