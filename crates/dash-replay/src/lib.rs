//! The paper's recovery (SQLite/SSL, VLDB 2017, section 5) as a check: the statements that a
//! database's log has recorded are run again on a copy of the database, and each commit is compared
//! with what its differences make. Those are what counts; nothing of the user's files is changed.
//!
//! | | |
//! |---|---|
//! | `base` | the database as it was before the first commit that is run again |
//! | `image` | a database's file by pages |
//! | `run` | a transaction, run again |
//! | `guarded` | the connection that runs it |
//! | `authorizer`, `limits` | what it may do, and how much |
//! | `compare` | what differs between two databases |
//! | `schema` | what a verdict is given on: whether a transaction provably replays |
//! | `why` | why that may be |

#![forbid(unsafe_code)]

mod authorizer;
mod base;
mod compare;
mod guarded;
mod image;
mod limits;
mod run;
mod schema;
mod why;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use dash_statement::{Event, Reason, Transaction, Unprovable, has_parameters, provable};
use dash_storage::real::Real;
use dash_wal::Known;
use dash_wal::history::{Commit, Frame, Start};

use image::Image;
use limits::Limits;
use run::Settings;

/// What came of it.
#[derive(Debug, Default)]
pub struct Report {
    /// Commits that were run again, and came to the same pages.
    pub same: u64,
    /// Those that came to the same content in pages that are laid out otherwise.
    pub same_content: u64,
    /// Those that came to something else.
    pub divergences: Vec<Finding>,
    /// Those that could not be run again.
    pub not_run: Vec<Finding>,
    /// Commits that were run again and compared with nothing: their statements alone carry them
    /// (`dash_commit=paper`), and `-wal` has their pages no more.
    pub carried: u64,
    /// Commits that a checkpoint had copied into the database already.
    pub checkpointed: u64,
    /// Why the copy that was given may not be the state before the first commit.
    pub doubt: Option<String>,
    /// The commit before which it had to end, and why.
    pub ended: Option<Finding>,
    /// Commits whose statements would do to carry them: they provably replay, as far as the log
    /// tells.
    pub provable: u64,
    /// Of those, the ones that came to the same pages.
    pub provable_same: u64,
    /// The others, by the reason.
    pub unprovable: BTreeMap<Unprovable, u64>,
}

impl Report {
    /// Commits that were run again.
    #[must_use]
    pub fn run(&self) -> u64 {
        self.same + self.same_content + self.divergences.len() as u64 + self.carried
    }
}

/// A commit, and what is to be said of it.
#[derive(Debug)]
pub struct Finding {
    /// Which.
    pub commit: Commit,
    /// What differs; empty where it was not run.
    pub what: String,
    /// Why.
    pub reason: String,
}

/// Why nothing could be run again.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Of the log.
    #[error(transparent)]
    Log(#[from] dash_wal::Error),
    /// Of a file.
    #[error("{0}: {1}")]
    Io(String, std::io::Error),
    /// Of SQLite, on the copy.
    #[error("on the copy: {0}")]
    Sqlite(#[from] rusqlite::Error),
    /// The state before the first commit can't be had.
    #[error("{0}")]
    NoBase(String),
    /// A statement can't be stopped. It runs on, in a thread of this process.
    #[error(
        "a statement calls a function of SQLite's that takes longer than all of a statement on such a database may, and can't be \
         stopped: look who wrote the log"
    )]
    Endless,
}

pub(crate) type Result<T> = std::result::Result<T, Error>;

/// Runs again what the log of a database holds, from its window's beginning on, or from what a
/// checkpoint has left of that. `base`: a copy of the database from that beginning. `all`: from the
/// oldest window on that the log still has; `base` is a copy from the beginning of that.
///
/// # Errors
///
/// Why it could not be done.
pub fn replay(path: &Path, base: Option<&Path>, all: bool) -> Result<Report> {
    // Its maker's alone, whatever the umask: the database may be nobody else's.
    let folder = tempfile::Builder::new().permissions(Permissions::from_mode(0o700)).tempdir();
    let failed = |error| Error::Io("a temporary folder".into(), error);
    let folder = folder.map_err(failed)?;
    let limits = Arc::<OnceLock<Limits>>::default();
    let running = {
        let (limits, folder) = (Arc::clone(&limits), folder.path().to_owned());
        let (path, base) = (path.to_owned(), base.map(Path::to_owned));
        let run = move || within(&path, base.as_deref(), all, &folder, &limits);
        thread::Builder::new().stack_size(STACK).spawn(run).map_err(failed)?
    };
    while !running.is_finished() {
        thread::sleep(LOOK);
        if limits.get().is_some_and(|limits| limits.is_overdue(Instant::now())) {
            return Err(Error::Endless);
        }
    }
    running.join().unwrap_or_else(|panic| resume_unwind(panic))
}

/// The stack that statements run on: as the first thread has it as a rule.
const STACK: usize = 8 << 20;
/// Time between two looks at whether they run at all.
const LOOK: Duration = Duration::from_millis(5);

/// [`replay`] in a folder, with limits that it says as soon as it knows them.
fn within(
    path: &Path,
    base: Option<&Path>,
    all: bool,
    folder: &Path,
    limits: &OnceLock<Limits>,
) -> Result<Report> {
    let base = base::of(&Real, path, base, all, folder)?;
    let known = Limits::of(base::room(path, &base.image)?, base.image.page);
    let mut replay = Replay {
        limits: limits.get_or_init(|| known).clone(),
        target: base.image,
        copy: None,
        done: base.frame,
        last: None,
        report: Report { doubt: base.doubt, ..Report::default() },
        settings: Settings::default(),
        folder,
    };
    base.history.replay(all, |start, commit, frames| {
        let reason = match replay.gap(start, commit)?.or_else(|| replay.beyond(commit, frames)) {
            None if commit.carried && frames.is_empty() => replay.carried(commit)?,
            None => replay.commit(commit, frames)?,
            reason => reason,
        };
        let goes_on = reason.is_none();
        replay.report.ended = reason.map(|reason| {
            let (commit, what) = (commit.clone(), String::new());
            Finding { commit, what, reason }
        });
        Ok::<_, Error>(goes_on)
    })?;
    Ok(replay.report)
}

struct Replay<'a> {
    /// The database by its differences.
    target: Image,
    /// The database by its statements.
    copy: Option<Image>,
    /// The last frame that the base has, of the generation of the first commit.
    done: u32,
    /// The generation and the last frame of the commit before.
    last: Option<(u64, u32)>,
    report: Report,
    /// What statements may take.
    limits: Limits,
    /// What the connection was set to, as far as that was found.
    settings: Settings,
    folder: &'a Path,
}

impl Replay<'_> {
    /// Why a commit does not follow the one before, if it does not: what lies between is not in the
    /// log.
    fn gap(&mut self, start: Option<&Start>, commit: &Commit) -> Result<Option<String>> {
        let (generation, (first, end)) = (commit.generation, commit.frames);
        let Some(last) = self.last.replace((generation, end)) else { return Ok(None) };
        let is_same = last.0 == generation;
        let next = if is_same { last.1.saturating_add(1) } else { 1 };
        if first != next {
            return Ok(Some(format!(
                "frames {next} to {} of -wal are not in the log, as a flush of -wal made them durable, or their records \
                 are overwritten or damaged",
                first.saturating_sub(1)
            )));
        }
        if is_same {
            return Ok(None);
        }
        self.done = 0;
        let begins = match start {
            Some(start) => start.may_begin_with(|number| self.target.get(number))?,
            None => false,
        };
        Ok((!begins).then(|| "commits between it and the one before are not in the log".to_owned()))
    }

    /// Why a commit can't be what its record says, if it can't: each page that a database has is in
    /// its file, or in a frame.
    fn beyond(&mut self, commit: &Commit, frames: &[Frame<'_>]) -> Option<String> {
        let more = u32::try_from(frames.len()).unwrap_or(u32::MAX);
        self.limits.room = self.limits.room.saturating_add(more);
        let pages = commit.database_pages;
        (pages > self.limits.pages()).then(|| {
            format!("its record says {pages} pages, which is more than the database can have")
        })
    }

    /// Runs one again; why those after it can't be, if they can't.
    fn commit(&mut self, commit: &Commit, frames: &[Frame<'_>]) -> Result<Option<String>> {
        if commit.frames.1 <= self.done {
            self.report.checkpointed += 1;
            self.target.apply(frames, commit.database_pages)?;
            return Ok(None);
        }
        let mut copy = self.take_copy()?;
        let ran = known(&commit.known);
        match &ran {
            Ok(ran) => {
                let judged = provable(ran, &schema::of(&self.target)?);
                self.count(judged);
                let same = self.report.same;
                self.run(commit, frames, ran, &mut copy)?;
                if judged.is_ok() {
                    self.report.provable_same += self.report.same - same;
                }
            }
            Err(reason) => {
                self.count(Err(Unprovable::Incomplete));
                self.target.apply(frames, commit.database_pages)?;
                copy.apply(frames, commit.database_pages)?;
                self.not_run(commit, reason.clone());
            }
        }
        self.copy = Some(copy);
        let spent = "the replay took as long as that of any log of such a database may";
        Ok(self.limits.is_spent().then(|| spent.to_owned()))
    }

    fn not_run(&mut self, commit: &Commit, reason: String) {
        let (commit, what) = (commit.clone(), String::new());
        self.report.not_run.push(Finding { commit, what, reason });
    }

    /// Runs one again that only its statements carry: what they come to is what was committed. Why
    /// not, if they are not known.
    fn carried(&mut self, commit: &Commit) -> Result<Option<String>> {
        if commit.frames.1 <= self.done {
            self.report.checkpointed += 1;
            return Ok(None);
        }
        let ran = match known(&commit.known) {
            Ok(ran) => ran,
            Err(reason) => return Ok(Some(reason)),
        };
        let copy = self.take_copy()?;
        self.count(provable(&ran, &schema::of(&self.target)?));
        let done = run::run(&copy, &ran, Settings::default(), &self.limits)?;
        if done.refused.is_some() {
            return Ok(done.refused);
        }
        self.target.become_like(&copy, &done.pages)?;
        self.report.carried += 1;
        self.copy = Some(copy);
        Ok(None)
    }

    fn take_copy(&mut self) -> Result<Image> {
        match self.copy.take() {
            Some(copy) => Ok(copy),
            None => self.target.copy_to(&self.folder.join("copy.db")),
        }
    }

    fn count(&mut self, judged: core::result::Result<(), Unprovable>) {
        match judged {
            Ok(()) => self.report.provable += 1,
            Err(reason) => *self.report.unprovable.entry(reason).or_default() += 1,
        }
    }

    /// Runs it, and compares what came of it. Settings of a connection are not recorded: where they
    /// explain what differs, they are taken for what they were.
    fn run(
        &mut self,
        commit: &Commit,
        frames: &[Frame<'_>],
        ran: &Transaction,
        copy: &mut Image,
    ) -> Result<()> {
        let before = self.target.copy_to(&self.folder.join("before.db"))?;
        self.target.apply(frames, commit.database_pages)?;
        let mut first = None;
        for settings in self.settings.and_others() {
            let done = run::run(copy, ran, settings, &self.limits)?;
            let pages: BTreeSet<_> =
                done.pages.iter().copied().chain(frames.iter().map(|frame| frame.0)).collect();
            if let Some(reason) = done.refused {
                self.not_run(commit, reason);
                return copy.become_like(&self.target, &pages);
            }
            let is_same = copy.is_like(&self.target, &pages)?;
            let mut differs = match is_same {
                true => None,
                false => compare::difference(&self.target, copy, &self.limits)?,
            };
            if !is_same && self.report.doubt.is_some() && done.failed.is_some() {
                // Of what neither has nothing differs.
                differs.get_or_insert_with(|| "its pages are other ones".to_owned());
            }
            if differs.is_none() {
                self.settings = settings;
                self.report.same += u64::from(is_same);
                self.report.same_content += u64::from(!is_same);
                return copy.become_like(&self.target, &pages);
            }
            first.get_or_insert((differs, done));
            copy.become_like(&before, &pages)?;
        }
        copy.apply(frames, commit.database_pages)?;
        if let Some((Some(what), done)) = first {
            let reason = why::reason(ran, &done, &before, &self.limits)?;
            let doubt = self.report.doubt.iter();
            let reason = doubt.fold(reason, |reason, doubt| format!("{doubt}; or {reason}"));
            self.report.divergences.push(Finding { commit: commit.clone(), what, reason });
        }
        Ok(())
    }
}

/// What can be run again, or why not.
fn known(known: &Known) -> core::result::Result<Transaction, String> {
    let ran = known.transaction()?;
    let reasons: Vec<_> = ran.reasons.iter().map(Reason::sentence).collect();
    match (reasons.is_empty(), ran.events.is_empty()) {
        (false, _) => Err(reasons.join("; ")),
        (true, true) => Err("nothing is recorded of it".to_owned()),
        (true, false) => Ok(ran.once()),
    }
    .and_then(|ran| match ran.events.iter().find_map(unknown) {
        Some(reason) => Err(reason.to_owned()),
        None => Ok(ran),
    })
}

/// Why a step can't be run as it was.
fn unknown(event: &Event) -> Option<&'static str> {
    let sql = match event {
        Event::Statement(it) if it.values.is_none() && has_parameters(&it.sql) => {
            return Some("the values of a statement are not known");
        }
        Event::Statement(it) => &it.sql,
        Event::Control(_, sql) => sql,
    };
    if sql.contains(&0) {
        return Some("a statement's text has a zero byte, where SQLite's texts end");
    }
    let is_text = str::from_utf8(sql).is_ok();
    (!is_text).then_some(
        "a statement's text is no UTF-8, as which it would have to be given to SQLite here",
    )
}
