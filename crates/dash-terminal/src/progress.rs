//! Progress of anything that may take over a second: a bar with an estimate on a terminal, a plain
//! line now and then elsewhere.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::failure::Result;
use crate::interrupt;

/// How often a plain line is printed.
const PLAIN_EVERY: Duration = Duration::from_secs(5);

/// One job.
pub struct Progress {
    bar: ProgressBar,
    what: String,
    done: u64,
    total: u64,
    plain: bool,
    printed: Instant,
}

/// What is counted.
#[derive(Debug, Clone, Copy)]
pub enum Unit {
    /// Things.
    Count,
    /// Bytes.
    Bytes,
}

impl Progress {
    /// A job of `total` steps, called `what`.
    pub fn new(what: &str, total: u64, unit: Unit) -> Self {
        let plain = !std::io::stderr().is_terminal();
        let bar = if plain { ProgressBar::hidden() } else { ProgressBar::new(total) };
        let template = match unit {
            Unit::Count => "{msg:<40} {bar:30} {pos}/{len} ETA {eta}",
            Unit::Bytes => "{msg:<28} {bar:30} {bytes}/{total_bytes} {bytes_per_sec} ETA {eta}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_message(what.to_owned());
        Self { bar, what: what.to_owned(), done: 0, total, plain, printed: Instant::now() }
    }

    /// So many steps are done.
    pub fn set(&mut self, done: u64) {
        self.done = done.min(self.total);
        self.bar.set_position(self.done);
        if self.plain && self.printed.elapsed() >= PLAIN_EVERY {
            self.printed = Instant::now();
            eprintln!("{}: {} %", self.what, percent(self.done, self.total));
        }
    }

    /// So many more steps are done.
    ///
    /// # Errors
    ///
    /// If Ctrl-C was pressed.
    pub fn step(&mut self, more: u64) -> Result<()> {
        self.set(self.done + more);
        interrupt::check()
    }

    /// Says something above the bar.
    pub fn say(&self, text: &str) {
        if self.plain {
            eprintln!("{}: {text}", self.what);
        } else {
            self.bar.println(text);
        }
    }

    /// Takes the bar away, as dropping does.
    pub fn finish(self) {}
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn percent(done: u64, total: u64) -> u64 {
    (done * 100).checked_div(total).unwrap_or(100)
}

/// Which count of `/proc/self/io` tells how far a job is.
#[derive(Debug, Clone, Copy)]
pub enum Moving {
    /// Bytes read.
    Read,
    /// Bytes written.
    Written,
    /// Both together.
    Both,
}

/// Runs a job that reads or writes about `total` bytes, with a bar that follows this process's
/// own count of bytes moved: the job itself need not report anything.
pub fn follow<T>(what: &str, total: u64, moving: Moving, job: impl FnOnce() -> T) -> T {
    let begun = moved(moving);
    let (finished, watch) = std::sync::mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut progress = None;
            let tick = Duration::from_millis(200);
            while watch
                .recv_timeout(tick)
                .is_err_and(|reason| reason == std::sync::mpsc::RecvTimeoutError::Timeout)
            {
                // Drawn from the first tick on: a job that is over sooner needs no bar.
                let bar = progress.get_or_insert_with(|| Progress::new(what, total, Unit::Bytes));
                bar.set(moved(moving).saturating_sub(begun));
            }
            if let Some(bar) = progress {
                bar.finish();
            }
        });
        let result = job();
        drop(finished);
        result
    })
}

fn moved(moving: Moving) -> u64 {
    let names: &[&str] = match moving {
        Moving::Read => &["rchar:"],
        Moving::Written => &["wchar:"],
        Moving::Both => &["rchar:", "wchar:"],
    };
    let Ok(counts) = std::fs::read_to_string("/proc/self/io") else {
        return 0;
    };
    let count = |line: &str| {
        let number = names.iter().find_map(|name| line.strip_prefix(name))?;
        number.trim().parse::<u64>().ok()
    };
    counts.lines().filter_map(count).sum()
}
