//! Running statements again whose frames a power loss took: the recovery of protocol `paper`
//! (SQLite/SSL, VLDB 2017, section 5), as far as it is needed.
//!
//! Each record of statements names its last frame. Those whose frame `-wal` has, with the header
//! that it had, are done: its checksum covers everything before it. At the first one that `-wal`
//! lacks it is cut behind the one before, whatever is valid there, as it is of an earlier recovery
//! that was not finished, or was never acknowledged; and from there on all are run again (WAL-34).
//! A run may take another number of frames, or other ones, and comes to the same pages: each
//! record says which, with a checksum (`made.rs`). What comes to others is refused (WAL-39).

use super::Recovery;
use super::look::{Chain, Log, Look};
use super::target::Check;
use crate::annotation::carried_in;
use crate::context::{Carried, RecordContext};
use crate::execute::{Pages, Runner};
use crate::frames::{FrameHeader, Prefix, WalHeader, frame_offset, walk};
use crate::mutation::{Mutation, broken};
use dash_engine::error::{Context, Error, Operation, Result};
use dash_engine::memory::headroom;
use dash_storage::{File, Storage};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

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
        let check = |run: &Run| {
            let frames = run.carried.last - run.first + 1;
            Check::of(run.commits.len(), frames, run.carried.made.clone(), &header)
        };
        let checks = runs.iter().map(check).collect();
        let commits: Vec<_> = runs.into_iter().flat_map(|run| run.commits).collect();
        let len = frame_offset(base.last + 1, header.page_size);
        wal.set_len(len).during(Operation::Resize, name)?;
        let target = Arc::new(Mutex::new(self.target(&header, base, wal, checks)?));
        let pages: Arc<Mutex<dyn Pages>> = target.clone();
        let ran = executor.execute(&pages, &commits).map_err(|error| match error {
            Error::CantOpen(why) => Error::CantOpen(format!("{}: {why}", look.names.shown_log())),
            other => other,
        });
        let done =
            ran.and_then(|()| target.lock().unwrap_or_else(PoisonError::into_inner).finish());
        if done.is_err() {
            // What was written is of no use, and takes room on the disk. Where it can't be cut off,
            // the next opening does.
            drop(wal.set_len(len));
        }
        done
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
            false => Err(self.cut_wal()),
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
