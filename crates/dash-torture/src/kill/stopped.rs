//! A process that is stopped (`SIGSTOP`) where it holds locks: others read on, get `SQLITE_BUSY`
//! when their timeout is over, and never break a lock; when it goes on, so does everybody.

use std::time::Duration;

use nix::sys::signal::Signal;

use super::check;
use super::process::Process;
use super::round::{Report, Setting};
use super::worker::{Said, TIMEOUT};
use super::workload;
use crate::random::Dice;
use crate::sqlite::{self, Wrong};

/// Whether an error means that another process has the database for itself, and says so.
fn is_told_who_has_it(error: &rusqlite::Error) -> bool {
    let said = sqlite::last_error();
    sqlite::is_busy(error) && said.contains(sqlite::IN_MEMORY) && said.contains("process ")
}

impl Setting<'_> {
    /// A round with a stopped process; `Err` says what must never happen.
    pub fn stop(&self, dice: &mut Dice) -> Result<Report, String> {
        let mut report = Report { stopped: 1, ..Report::default() };
        let ends = if self.is_of_one() {
            self.stop_the_only_one(dice)?
        } else if dice.below(2) == 0 {
            self.stop_a_writer_that_holds_the_lock(dice)?
        } else {
            self.stop_one_of_several_anywhere(dice)?
        };
        for process in ends {
            report.take(process)?;
        }
        check::dash_recovers(self.loaded, self.database, self.parameters, false)?;
        Ok(report)
    }

    fn stop_a_writer_that_holds_the_lock(&self, dice: &mut Dice) -> Result<Vec<Process>, String> {
        let mut holder = self.start("holder", 0, dice)?;
        holder.must_say(Said::Done)?;
        let failed = |what: &str, error: &rusqlite::Error| {
            format!("{what} beside a stopped writer: {error}; {}", sqlite::last_error())
        };
        let db = sqlite::open(self.database, self.parameters)
            .map_err(|error| failed("opening", &error))?;
        db.busy_timeout(TIMEOUT).map_err(|error| failed("opening", &error))?;
        holder.catch_up();
        holder.must_say(Said::Holding)?;
        holder.signal(Signal::SIGSTOP)?;
        // It may have gone on to its end before the signal came; then the lock is free.
        match db.execute_batch("BEGIN IMMEDIATE") {
            Err(error) if sqlite::is_busy(&error) => {}
            Err(error) => return Err(failed("BEGIN IMMEDIATE", &error)),
            Ok(()) => db.execute_batch("ROLLBACK").map_err(|error| failed("ROLLBACK", &error))?,
        }
        match workload::sound_state(&db) {
            Ok(_) => {}
            Err(Wrong::Sql(error)) => return Err(failed("reading", &error)),
            Err(Wrong::Content(what)) => return Err(format!("beside a stopped writer: {what}")),
        }
        holder.catch_up();
        holder.signal(Signal::SIGCONT)?;
        holder.must_say(Said::Done)?;
        // Now it is this connection's turn, sooner or later.
        db.busy_timeout(Duration::from_secs(30)).map_err(|error| failed("waiting", &error))?;
        db.execute_batch("BEGIN IMMEDIATE; ROLLBACK")
            .map_err(|error| failed("writing again", &error))?;
        db.close().map_err(|(_, error)| failed("closing", &error))?;
        Ok(vec![holder])
    }

    /// One that has the database for itself: nobody else is let in, and each is told why, also
    /// while it is stopped.
    fn stop_the_only_one(&self, dice: &mut Dice) -> Result<Vec<Process>, String> {
        let mut holder = self.start("holder", 0, dice)?;
        holder.must_say(Said::Done)?;
        self.is_refused("beside a writer")?;
        holder.catch_up();
        holder.must_say(Said::Holding)?;
        holder.signal(Signal::SIGSTOP)?;
        self.is_refused("beside a stopped writer")?;
        holder.catch_up();
        holder.signal(Signal::SIGCONT)?;
        holder.must_say(Said::Done)?;
        Ok(vec![holder])
    }

    fn is_refused(&self, when: &str) -> Result<(), String> {
        match sqlite::open(self.database, self.parameters) {
            Ok(_) => Err(format!("another process is let in {when}")),
            Err(error) if is_told_who_has_it(&error) => Ok(()),
            Err(error) => Err(format!("refused {when}: {error}; {}", sqlite::last_error())),
        }
    }

    fn stop_one_of_several_anywhere(&self, dice: &mut Dice) -> Result<Vec<Process>, String> {
        let mut all = Vec::new();
        for (slot, role) in
            ["patient writer", "visitor", "patient writer", "reader"].iter().enumerate()
        {
            all.push(self.start(role, slot, dice)?);
        }
        for process in &mut all {
            process.must_say(Said::Opening)?;
        }
        let chosen = usize::try_from(dice.below(all.len() as u64)).unwrap_or_default();
        std::thread::sleep(Duration::from_micros(dice.below(30_000)));
        all[chosen].signal(Signal::SIGSTOP)?;
        std::thread::sleep(TIMEOUT + Duration::from_micros(dice.below(100_000)));
        all[chosen].signal(Signal::SIGCONT)?;
        for process in &mut all {
            process.catch_up();
        }
        for process in &mut all {
            process.must_say(Said::Done)?;
        }
        Ok(all)
    }
}
