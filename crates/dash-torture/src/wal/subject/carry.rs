//! Commits that their statements carry, on simulated storage. What stands for a statement here is
//! what its transaction changes in each page, as a difference that is added to what the page was:
//! run twice, or on anything but the database as it was before, it makes something else.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use dash_ffi::Result;
use dash_simulated::Simulated;
use dash_wal::{Error, Execute, Pages, Runner, Said};

type Connection = dash_wal::Connection<Simulated>;

/// Bytes of a frame's header.
const HEADER: usize = 24;

/// Runs them.
#[derive(Debug)]
pub struct Executor;

impl Executor {
    /// What ran them: that, or another one.
    pub fn of(version: u32) -> Runner {
        Runner { version, build: 7 }
    }
}

impl Execute for Executor {
    fn runner(&self) -> Runner {
        Self::of(1)
    }

    fn execute(&self, pages: &Arc<Mutex<dyn Pages>>, commits: &[Vec<u8>]) -> dash_wal::Result<()> {
        let mut pages = pages.lock().unwrap_or_else(PoisonError::into_inner);
        for commit in commits {
            let damaged = || Error::Corrupt("what a commit ran can't be read".into());
            let (count, mut rest) = number(commit).ok_or_else(damaged)?;
            let mut written = BTreeMap::new();
            while !rest.is_empty() {
                let (page, behind) = number(rest).ok_or_else(damaged)?;
                let (changed, mut behind) = number(behind).ok_or_else(damaged)?;
                let mut bytes = pages.read(page)?;
                for _ in 0..changed {
                    let (at, after) = number(behind).ok_or_else(damaged)?;
                    let (len, after) = number(after).ok_or_else(damaged)?;
                    let [at, len] = [at, len].map(|it| usize::try_from(it).unwrap_or(usize::MAX));
                    let (more, after) = after.split_at_checked(len).ok_or_else(damaged)?;
                    let place = bytes.get_mut(at..).and_then(|rest| rest.get_mut(..len));
                    for (byte, more) in place.ok_or_else(damaged)?.iter_mut().zip(more) {
                        *byte = byte.wrapping_add(*more);
                    }
                    behind = after;
                }
                written.insert(page, bytes);
                rest = behind;
            }
            // Another number of frames than the first time, now and then.
            if commit.len().is_multiple_of(2)
                && let Some(other) = (1..=count).find(|page| !written.contains_key(page))
            {
                written.insert(other, pages.read(other)?);
            }
            pages.commit(&written, count)?;
        }
        Ok(())
    }
}

fn number(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (first, rest) = bytes.split_first_chunk()?;
    Some((u32::from_le_bytes(*first), rest))
}

fn len(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

/// Where something is added, with what lies between if that is little.
fn runs(more: &[u8]) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (at, _) in more.iter().enumerate().filter(|(_, more)| **more != 0) {
        match runs.last_mut() {
            Some(run) if at - run.end < 8 => run.end = at + 1,
            _ => runs.push(at..at + 1),
        }
    }
    runs
}

/// What a connection's transaction has written into `-wal`.
#[derive(Debug, Default)]
pub struct Carry {
    /// Its statements carry it, run by this version; 0: they don't.
    version: u32,
    /// The frames, by where they begin: which page, and what is on it. What a rollback leaves here
    /// the next transaction writes over, as in `-wal`: under locking_mode=EXCLUSIVE nothing tells
    /// that it begins.
    frames: BTreeMap<u64, (u32, Vec<u8>)>,
    /// Where the frame begins that ends the transaction; 0: it has not come. What comes behind it
    /// is the same page again, which pads a sector, in pieces.
    end: u64,
    /// The header of such a frame came in one piece: the same is said once more.
    again: bool,
    said: Option<Said>,
    /// The header of a commit frame, and where it goes, until its page comes.
    held: Option<(Vec<u8>, u64)>,
}

impl Carry {
    /// Whether they carry it from now on.
    pub fn ask_for(&mut self, version: u32) {
        self.version = version;
    }

    /// Another transaction begins, or one is committed.
    pub fn begin(&mut self) {
        *self = Self { version: self.version, ..Self::default() };
    }

    /// SQLite writes this. `true`: it waits for what SQLite writes next.
    pub fn holds(&mut self, data: &[u8], offset: u64) -> bool {
        if self.version == 0 {
            return false;
        }
        if self.end != 0 && offset > self.end + HEADER as u64 {
            self.again = data.len() == HEADER;
            return false;
        }
        if data.len() != HEADER {
            let frame = offset.checked_sub(HEADER as u64).and_then(|at| self.frames.get_mut(&at));
            if let Some((_, page)) = frame {
                *page = data.to_vec();
            }
            return false;
        }
        let page = u32::from_be_bytes([data[0], data[1], data[2], data[3]]);
        self.frames.entry(offset).or_default().0 = page;
        let waits = offset != self.end && data[4..8] != [0; 4];
        if waits {
            self.end = offset;
            self.held = Some((data.to_vec(), offset));
        }
        waits
    }

    /// A header that waits no more, with what is to be said of its transaction.
    pub fn complete(&mut self, engine: &mut Connection) -> Result<Option<(Vec<u8>, u64)>> {
        let runner = Some(Executor::of(self.version));
        if let Some(said) = self.said.clone().filter(|_| std::mem::take(&mut self.again)) {
            engine.say(said, true, runner);
        }
        let Some((header, offset)) = self.held.take() else { return Ok(None) };
        if let Some(newest) = engine.newest_commit() {
            let mut statements = header[4..8].to_vec();
            statements.reverse();
            let written = self.frames.range(..=offset).map(|(_, (number, page))| (*number, page));
            for (number, page) in &written.collect::<BTreeMap<_, _>>() {
                let before = engine.committed_page(newest, *number).ok().flatten();
                let before = before.unwrap_or_else(|| vec![0; page.len()]);
                let more: Vec<_> =
                    page.iter().zip(&before).map(|(new, old)| new.wrapping_sub(*old)).collect();
                let runs = runs(&more);
                for it in [*number, len(runs.len())] {
                    statements.extend(it.to_le_bytes());
                }
                for run in runs {
                    for it in [run.start, run.len()] {
                        statements.extend(len(it).to_le_bytes());
                    }
                    statements.extend(&more[run]);
                }
            }
            let said = Said { process: 1, connection: Some(1), time: 2, statements };
            self.said = Some(said.clone());
            engine.say(said, true, runner);
        }
        self.frames.clear();
        Ok(Some((header, offset)))
    }
}
