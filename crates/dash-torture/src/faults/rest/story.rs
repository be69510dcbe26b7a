//! What a process does whose database is to come to rest, and the process.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, raise};

use crate::again::Assignment;
use crate::again::FOUND;
use crate::faults::sql::inject::{self, EFFECTS, Fault, Injector};
use crate::faults::sql::stage::{Stage, state};
use crate::sqlite;

/// Its role, and the name of the part.
pub const ROLE: &str = "rest";

/// How long after its last commit the database comes to rest, in milliseconds: longer than the
/// commits take, so that all have come before.
const SOON: u32 = 150;
/// So many commits use the log in mode wal, however few the session before had.
const COMMITS: u32 = 12;
/// Never in a story.
const LATE: u32 = 3_600_000;
/// How long a fault lasts that stays.
const LASTS: Duration = Duration::from_millis(200);
/// Whoever makes no call for so long has done what it can.
const QUIET: Duration = Duration::from_millis(60);
/// It is tried once a second: by then it has come to rest.
const PATIENCE: Duration = Duration::from_secs(8);
/// Waiting is done in steps of this.
const STEP: Duration = Duration::from_millis(5);

/// What happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Story {
    /// The process stays, and the fault goes: the database comes to rest, or the next commit says
    /// why not; then it is killed.
    Idle,
    /// The process is killed under the fault.
    Killed,
    /// The process ends, and closes nothing.
    Exit,
}

impl Story {
    pub const ALL: [Self; 3] = [Self::Idle, Self::Killed, Self::Exit];

    pub fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Killed => "killed",
            Self::Exit => "exit",
        }
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|story| story.name() == name)
    }
}

/// Where a process says things. No lock is held meanwhile: a thread that is about to write waits
/// for the one that answers, and that one speaks, too.
struct Mouth(File);

impl Mouth {
    fn new() -> Result<Self, String> {
        let output = std::io::stdout().as_fd().try_clone_to_owned();
        output.map(|output| Self(output.into())).map_err(|error| error.to_string())
    }

    fn say(&self, line: &str) {
        // If nobody listens nobody is waiting for it either.
        drop((&self.0).write_all(format!("{line}\n").as_bytes()));
    }
}

/// The worker: [`Task::case`](crate::again::Task::case) is a story and a fault,
/// [`Task::seed`](crate::again::Task::seed) the newest commit of the database.
pub fn worker(assignment: &Assignment) -> Result<(), String> {
    sqlite::load(&assignment.library)?;
    let task = &assignment.task;
    let case = task.case.split_once('/').ok_or("a story and a fault")?;
    let story = Story::named(case.0).ok_or("no such story")?;
    let fault = Fault::named(case.1).ok_or("no such fault")?;
    let folder = assignment.file.parent().ok_or("a database has a folder")?;
    let newest = i64::try_from(task.seed).map_err(|error| error.to_string())?;
    let injector = Injector::new(folder, fault);
    let mouth = Mouth::new()?;
    let (mut seen, mut met) = (0, 0);
    inject::run_watched(
        &injector,
        || {
            let rest = if story == Story::Exit { LATE } else { SOON };
            let stage = Stage::new(folder, &task.engine, &task.parameters).resting(rest);
            Stage { acknowledged: newest, begun: newest, ..stage }
        },
        |stage, injector| {
            let told = Teller { stage, injector, mouth: &mouth, fault }.tell(story);
            // Whoever answers does so as long as the thread lives that sees to rest.
            if let Err(what) = told {
                eprintln!("{what}");
            }
            std::process::exit(FOUND.into())
        },
        || {
            let counts = EFFECTS.map(|effect| injector.seen(effect));
            let count = counts.iter().sum::<u64>();
            if std::mem::replace(&mut seen, count) == count {
                return;
            }
            mouth.say(&format!("seen {}", counts.map(|count| count.to_string()).join(" ")));
            for met in injector.met().iter().skip(std::mem::replace(&mut met, injector.met().len()))
            {
                mouth.say(&format!("met {met:?}"));
            }
        },
    )
}

struct Teller<'a> {
    stage: Stage,
    injector: &'a Injector,
    mouth: &'a Mouth,
    fault: Fault,
}

impl Teller<'_> {
    /// Does not come back if all is well.
    fn tell(mut self, story: Story) -> Result<(), String> {
        self.stage.open().map_err(|error| format!("opening: {error}"))?;
        for _ in 0..COMMITS {
            self.commit(100).map_err(|error| format!("before any fault: {error}"))?;
        }
        if !self.stage.is_fenced() {
            return Err("the name fence does not stand after a commit".into());
        }
        if story == Story::Exit {
            self.injector.arm(true);
            std::process::exit(0);
        }
        self.injector.spare_this_thread();
        self.injector.arm(true);
        self.wait(|teller| !teller.injector.met().is_empty() || !teller.stage.is_fenced());
        if story == Story::Killed {
            std::thread::sleep(if self.fault.stays() { LASTS } else { QUIET });
            return self.is_killed();
        }
        if self.fault.stays() {
            std::thread::sleep(LASTS);
            self.injector.arm(false);
        }
        self.rests_or_says_why()?;
        self.is_killed()
    }

    fn is_killed(&self) -> Result<(), String> {
        raise(Signal::SIGKILL).map_err(|error| error.to_string())
    }

    fn rests_or_says_why(&mut self) -> Result<(), String> {
        if !self.wait(|teller| !teller.stage.is_fenced()) {
            sqlite::forget();
            let why = match self.commit(100) {
                Ok(()) => "nothing is said".into(),
                Err(error) => format!("{error}; {}", sqlite::last_error()),
            };
            self.mouth.say(&format!("waits {}", why.replace('\n', " ")));
            return Ok(());
        }
        let mut seen = (self.calls(), Instant::now());
        while seen.1.elapsed() < QUIET {
            std::thread::sleep(STEP);
            if self.calls() != seen.0 {
                seen = (self.calls(), Instant::now());
            }
        }
        match state(self.stage.db()) {
            Ok(seen) if seen == self.stage.acknowledged => {}
            other => return Err(format!("its own connection sees {other:?} at rest")),
        }
        self.mouth.say("rests");
        Ok(())
    }

    /// Calls of storage by which it comes to rest, while they are watched.
    fn calls(&self) -> u64 {
        self.injector.seen(EFFECTS[0])
    }

    /// Waits for something to hold; whether it does.
    fn wait(&self, holds: impl Fn(&Self) -> bool) -> bool {
        let begun = Instant::now();
        while !holds(self) {
            if begun.elapsed() > PATIENCE {
                return false;
            }
            std::thread::sleep(STEP);
        }
        true
    }

    fn commit(&mut self, bytes: i64) -> rusqlite::Result<()> {
        self.mouth.say(&format!("begun {}", self.stage.begun + 1));
        self.stage.commit(bytes)?;
        self.mouth.say(&format!("acknowledged {}", self.stage.acknowledged));
        Ok(())
    }
}
