//! A worker that is a process of its own: this program, started as [`super::worker`].

use std::io::{BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use super::order::{Handle, Order, gone};
use crate::failure::{Explain, Result};
use crate::interleave::Timed;
use crate::row::Row;
use crate::workload::Settings;

/// Longer than anybody waits before killing it.
const KILLED_BY_THEN: Duration = Duration::from_secs(60);

/// The process.
pub struct Process {
    child: Child,
    orders: Option<ChildStdin>,
    results: BufReader<ChildStdout>,
}

impl Process {
    /// Starts it; it has its connection when this returns.
    pub fn start(
        settings: &Settings,
        row: &'static Row,
        path: &Path,
        index: usize,
        of: usize,
    ) -> Result<Self> {
        let own = std::env::current_exe().explain("finding this program")?;
        let mut child = Command::new(own)
            .args(["bench", "worker", "--row", row.word])
            .args(settings.arguments())
            .args(["--index", &index.to_string(), "--of", &of.to_string()])
            .arg(path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .explain("starting a process")?;
        let orders = child.stdin.take();
        let results = BufReader::new(child.stdout.take().ok_or_else(gone)?);
        let mut made = Self { child, orders, results };
        made.result()?;
        Ok(made)
    }

    fn number(&mut self) -> Result<u64> {
        let mut bytes = [0; 8];
        self.results.read_exact(&mut bytes).map_err(|_| gone())?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn numbers(&mut self) -> Result<Vec<u64>> {
        (0..self.number()?).map(|_| self.number()).collect()
    }
}

impl Handle for Process {
    fn order(&mut self, order: Order) -> Result<()> {
        let line = match order {
            Order::Steps(steps) => format!("steps {steps}\n"),
            Order::Time(time) => format!("micros {}\n", time.as_micros()),
        };
        let orders = self.orders.as_mut().ok_or_else(gone)?;
        orders.write_all(line.as_bytes()).map_err(|_| gone())
    }

    fn result(&mut self) -> Result<Timed> {
        let (elapsed, failures) = (self.number()?, self.number()?);
        let (writes, reads) = (self.numbers()?, self.numbers()?);
        Ok(Timed { writes, reads, elapsed, failures, ..Timed::default() })
    }
}

/// A process that is to be killed in the middle of its work.
pub struct Killable(Process);

impl Killable {
    /// Starts it.
    pub fn start(settings: &Settings, row: &'static Row, path: &Path) -> Result<Self> {
        Process::start(settings, row, path, 0, 1).map(Self)
    }

    /// So many steps, to their end.
    pub fn steps(&mut self, steps: usize) -> Result<()> {
        self.0.order(Order::Steps(steps))?;
        self.0.result().map(drop)
    }

    /// Lets it work for so long, then kills it (SIGKILL).
    pub fn kill_within(mut self, time: Duration) -> Result<()> {
        self.0.order(Order::Time(KILLED_BY_THEN))?;
        std::thread::sleep(time);
        self.0.child.kill().explain("killing a writer")?;
        self.0.child.wait().map(drop).explain("waiting for a killed writer")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Without orders it closes its database and ends.
        drop(self.orders.take());
        drop(self.child.wait());
    }
}
