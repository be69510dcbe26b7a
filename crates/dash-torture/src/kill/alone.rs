//! The only connection that there is, without a busy timeout, as a plain script has it: nothing
//! keeps it out, neither at once nor in the middle of a transaction, whatever dash does in the
//! background.

use super::round::{Report, Setting};
use super::worker::{Said, Worker, say};
use crate::random::Dice;
use crate::sqlite;

/// Transactions of a script that are large.
const LARGE: usize = 2;
/// Small ones after each of these.
const SMALL: usize = 30;

impl Worker<'_> {
    /// Runs the script once.
    pub(super) fn run_script(&mut self) -> Result<(), String> {
        let file = &self.assignment.file;
        let failed = |what: &str, error: &rusqlite::Error| {
            let code = sqlite::code(error);
            format!("the only connection: {what}: {error} (code {code}); {}", sqlite::last_error())
        };
        say(Said::Opening)?;
        let db = sqlite::open(file, &self.assignment.task.parameters)
            .map_err(|error| failed("opening", &error))?;
        let run = |sql: &str| db.execute_batch(sql).map_err(|error| failed(sql, &error));
        run("CREATE TABLE IF NOT EXISTS t(x); DELETE FROM t")?;
        for _ in 0..LARGE {
            let bytes = [5_000_000, 9_000_000, 40_000_000][self.dice.index(3)];
            run(&format!("INSERT INTO t VALUES (zeroblob({bytes}))"))?;
            for _ in 0..SMALL {
                match self.dice.below(3) {
                    0 => run("BEGIN; SELECT count(*) FROM t; INSERT INTO t VALUES (1); COMMIT")?,
                    1 => run("INSERT INTO t VALUES (2)")?,
                    _ => run("DELETE FROM t WHERE x = 1")?,
                }
                if self.dice.one_in(3) {
                    std::thread::sleep(std::time::Duration::from_micros(self.dice.below(3_000)));
                }
            }
        }
        db.close().map_err(|(_, error)| failed("closing", &error))?;
        say(Said::Closed)?;
        // Until it is killed: that it ends by itself would be news.
        loop {
            std::thread::park();
        }
    }
}

impl Setting<'_> {
    /// A round of a script that has its database for itself.
    pub fn alone(&self, dice: &mut Dice) -> Result<Report, String> {
        let database = self.database.with_file_name("alone.db");
        let setting = Setting { database: &database, ..*self };
        let mut script = setting.start("alone", 0, dice)?;
        script.must_say(Said::Closed)?;
        let mut report = Report { alone: 1, ..Report::default() };
        report.take(script)?;
        Ok(report)
    }
}
