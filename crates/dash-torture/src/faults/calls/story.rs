//! One case: commits, an operation with a call that fails, the power lost at once and later, and
//! the same connection going on.

use dash_simulated::{Fault, Machine, Nothing, OperationKind, Random, Simulated};

use super::operation::Operation;
use super::series::Series;
use crate::random::mix;
use crate::sim::content::{self, Content};
use crate::sim::subject::{DB, Outcome, Session, Subject, Trouble};

/// What a database may hold.
struct Known {
    /// The newest content that was acknowledged.
    content: Content,
    /// What else may be found: commits of which nobody knows whether they happened.
    allowed: Vec<Content>,
}

impl Known {
    fn acknowledged(&mut self, content: Content) {
        self.allowed = vec![content.clone()];
        self.content = content;
    }
}

struct Case<'a> {
    subject: &'a dyn Subject,
    series: &'a Series,
    machine: Machine,
    known: Known,
}

type Live = Option<(Simulated, Box<dyn Session>)>;

/// Runs it; whether the call was there.
pub fn run(subject: &dyn Subject, series: &Series, number: u64) -> Result<bool, String> {
    let machine = Machine::new(number);
    subject.prepare(&machine, &series.setup);
    let known = Known { content: Vec::new(), allowed: vec![Vec::new()] };
    let mut case = Case { subject, series, machine, known };
    let mut live = case.before().map_err(|error| format!("before any fault: {error}"))?;
    let start = case.machine.steps();
    let fault = Fault::new(series.effect.1).after(number);
    let before = case.machine.journal().entries.len();
    case.machine.fail(if series.forever { fault.forever() } else { fault });
    let done = case.act(&mut live);
    let met = case.machine.steps() - start > number;
    let told = |what: String| {
        let entries = case.machine.journal().entries;
        let lines: Vec<_> = entries[before..].iter().map(ToString::to_string).collect();
        format!("{what}\n{}", lines.join("\n"))
    };
    let failed = matches!(done, Err(Trouble::Failed(_)));
    case.judge(done, number, start).map_err(&told)?;
    let survived = case.survives(4);
    survived.map_err(|what| told(format!("after a power loss right then: {what}")))?;
    case.machine.stop_failing();
    let mut case = case;
    case.go_on(live, failed).map_err(|what| {
        let entries = case.machine.journal().entries;
        let lines: Vec<_> = entries[before..].iter().map(ToString::to_string).collect();
        format!("{what}\n{}", lines.join("\n"))
    })?;
    Ok(met)
}

impl Case<'_> {
    fn size(&self) -> usize {
        self.series.setup.page
    }

    fn open(&self, machine: &Machine) -> Outcome<(Simulated, Box<dyn Session>)> {
        let process = machine.process();
        let session = self.subject.open(&process, DB, &self.series.setup)?;
        Ok((process, session))
    }

    /// A process commits something, and is killed after so many steps of that.
    fn casualty(
        &mut self,
        steps: usize,
        mut session: Box<dyn Session>,
        process: &Simulated,
    ) -> Outcome<()> {
        let next: Content =
            Operation::Grow.next(&self.known.content).iter().map(|v| v + 1).collect();
        content::write(&mut *session, self.size(), &next)?;
        content::begin_commit(&mut *session, steps)?;
        self.machine.kill(process);
        self.known.allowed.push(next);
        Ok(())
    }

    /// What there is before the operation.
    fn before(&mut self) -> Outcome<Live> {
        let (process, mut session) = self.open(&self.machine)?;
        for _ in 0..self.series.commits {
            let next = Operation::Grow.next(&self.known.content);
            content::commit(&mut *session, self.size(), &next)?;
            self.known.acknowledged(next);
        }
        match self.series.operation {
            Operation::Open | Operation::OpenForReading => {
                session.close()?;
                Ok(None)
            }
            Operation::OpenKilled(stage) => {
                self.casualty(stage, session, &process)?;
                Ok(None)
            }
            Operation::OpenCut(stage) => {
                self.casualty(stage, session, &process)?;
                let seed = mix(u64::from(self.series.commits));
                self.machine = self.machine.power_loss(&mut Random::new(seed));
                self.subject.prepare(&self.machine, &self.series.setup);
                Ok(None)
            }
            Operation::CommitBeside(stage) => {
                let other = self.open(&self.machine)?;
                self.casualty(stage, session, &process)?;
                Ok(Some(other))
            }
            _ => Ok(Some((process, session))),
        }
    }

    fn look(&self, session: &mut dyn Session) -> Outcome<()> {
        let seen = content::read(session, self.size())?;
        if self.known.allowed.contains(&seen) {
            return Ok(());
        }
        Err(Trouble::Wrong(format!("{seen:?} is read, {:?} is allowed", self.known.allowed)))
    }

    fn commit(&mut self, session: &mut dyn Session) -> Outcome<()> {
        // Beside a killed writer only the next writer finds out what the newest state is.
        let seen = match self.series.operation {
            Operation::CommitBeside(_) => content::read(session, self.size())?,
            _ => self.known.content.clone(),
        };
        let mut next = self.series.operation.next(&seen);
        next[0] += 100;
        self.known.allowed.push(next.clone());
        content::commit(session, self.size(), &next)?;
        self.known.acknowledged(next);
        Ok(())
    }

    fn act(&mut self, live: &mut Live) -> Outcome<()> {
        let (subject, setup) = (self.subject, self.series.setup);
        match (self.series.operation, live.as_mut()) {
            (Operation::OpenForReading, _) => {
                let process = self.machine.process();
                let mut session = subject.open_for_reading(&process, DB)?;
                self.look(&mut *session)?;
                session.close()
            }
            (_, None) => {
                let process = self.machine.process();
                let session = subject.open(&process, DB, &setup)?;
                *live = Some((process, session));
                live.as_mut().map_or(Ok(()), |(_, session)| self.look(&mut **session))
            }
            (Operation::Read, Some((_, session))) => self.look(&mut **session),
            (Operation::Idle, Some((_, session))) => session.idle(),
            (Operation::Close, Some(_)) => {
                live.take().map_or(Ok(()), |(_, session)| session.close())
            }
            (Operation::Rest, Some(_)) => {
                let Some((process, session)) = live.take() else { return Ok(()) };
                let closed = session.close();
                let session = subject.open(&process, DB, &setup)?;
                let (_, session) = live.insert((process, session));
                self.look(&mut **session)?;
                self.commit(&mut **session).and(closed)
            }
            (Operation::Rollback | Operation::RollbackFlushed, Some((_, session))) => {
                let next = Operation::Grow.next(&self.known.content);
                // Until the rollback has succeeded it may as well have happened.
                self.known.allowed.push(next.clone());
                let size = self.series.setup.page;
                let written = content::write(&mut **session, size, &next).and_then(|()| {
                    if self.series.operation == Operation::Rollback {
                        return Ok(());
                    }
                    content::prepare(&mut **session)
                });
                let ended = session.end();
                written.and(ended)?;
                self.known.allowed.pop();
                Ok(())
            }
            (_, Some((_, session))) => self.commit(&mut **session),
        }
    }

    /// Whether the operation may end like this.
    fn judge(&self, done: Outcome<()>, number: u64, start: u64) -> Result<(), String> {
        match done {
            Ok(()) => Ok(()),
            Err(Trouble::Wrong(what)) => Err(format!("under the fault: {what}")),
            Err(Trouble::Failed(message)) if message.is_empty() => {
                Err("an error without words".into())
            }
            Err(Trouble::Busy) => {
                let entries = self.machine.journal().entries;
                let locks = entries.iter().any(|entry| {
                    let kind = entry.operation.kind;
                    entry.step == start + number
                        && matches!(kind, OperationKind::Lock | OperationKind::LockConflict)
                });
                // A killed writer's locks are gone, and nobody else is there.
                let beside = matches!(self.series.operation, Operation::CommitBeside(_));
                if locks || beside { Ok(()) } else { Err("busy, where nobody else is".into()) }
            }
            Err(Trouble::Failed(_)) => Ok(()),
        }
    }

    /// The power goes, with so many fates.
    fn survives(&self, fates: u64) -> Result<(), String> {
        for fate in 0..fates {
            let after = match fate {
                0 => self.machine.power_loss(&mut Nothing),
                _ => self.machine.power_loss(&mut Random::new(fate)),
            };
            self.subject.prepare(&after, &self.series.setup);
            let found =
                self.open(&after).and_then(|(_process, mut session)| self.look(&mut *session));
            found.map_err(|error| format!("fate {fate}: {error}"))?;
        }
        Ok(())
    }

    /// Whoever is told that a commit `failed` makes it once more: it is not there for a connection
    /// that goes on.
    fn stands(&self, failed: bool, seen: &[u32]) -> bool {
        let commits = matches!(
            self.series.operation,
            Operation::Commit | Operation::Grow | Operation::Shrink | Operation::Rest
        );
        commits && failed && seen != self.known.content
    }

    /// The fault is over: the same connection goes on, or says that it can't; then a new one does.
    fn go_on(&mut self, live: Live, failed: bool) -> Result<(), String> {
        if let Some((_process, mut session)) = live {
            let seen = content::read(&mut *session, self.size());
            match seen {
                Ok(seen) if !self.known.allowed.contains(&seen) => {
                    return Err(format!("the connection goes on with {seen:?}"));
                }
                Err(Trouble::Wrong(what)) => return Err(format!("the connection goes on: {what}")),
                Ok(seen) => {
                    let mut next = Operation::Commit.next(&seen);
                    next[0] += 200;
                    self.known.allowed.push(next.clone());
                    let stands = self.stands(failed, &seen);
                    let committed = content::commit(&mut *session, self.size(), &next);
                    if committed.is_ok() && stands {
                        return Err("a commit has answered an error, and is there".into());
                    }
                    if committed.is_ok() {
                        self.known.acknowledged(next);
                    }
                }
                Err(Trouble::Busy | Trouble::Failed(_)) => {}
            }
            self.survives(3).map_err(|what| format!("after the connection went on: {what}"))?;
            // What closing leaves undone the next opener does.
            drop(session.close());
        }
        let again = |what: &str, error: Trouble| format!("{what}, when all is well again: {error}");
        let (_process, mut session) =
            self.open(&self.machine).map_err(|error| again("opening", error))?;
        self.look(&mut *session).map_err(|error| again("reading", error))?;
        let seen =
            content::read(&mut *session, self.size()).map_err(|error| again("reading", error))?;
        let mut next = Operation::Commit.next(&seen);
        next[0] += 300;
        content::commit(&mut *session, self.size(), &next)
            .map_err(|error| again("writing", error))?;
        self.known.acknowledged(next);
        self.survives(2).map_err(|what| format!("after the last commit: {what}"))?;
        session.close().map_err(|error| again("closing", error))?;
        self.subject
            .check_at_rest(&self.machine, DB, &[])
            .map_err(|what| format!("at rest: {what}"))
    }
}
