//! A process that is stopped (`SIGSTOP`) where it holds locks: others read on, get `SQLITE_BUSY`
//! when their timeout is over, and never break a lock; when it goes on, so does everybody.

use std::time::Duration;

use nix::sys::signal::Signal;

use super::check;
use super::process::Process;
use super::roles::{Said, TIMEOUT};
use super::round::{Report, Setting};
use super::workload;
use crate::random::Dice;
use crate::sqlite::{self, Wrong};

impl Setting<'_> {
    /// A round with a stopped process; `Err` says what must never happen.
    pub fn stop(&self, dice: &mut Dice) -> Result<Report, String> {
        let mut report = Report { stopped: 1, ..Report::default() };
        let ends = if dice.below(2) == 0 {
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
