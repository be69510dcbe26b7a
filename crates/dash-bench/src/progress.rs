//! Progress of a row: a bar with an estimate on a terminal, a plain line now and then elsewhere.

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

impl Progress {
    /// A job of `total` steps, called `what`.
    pub fn new(what: &str, total: u64) -> Self {
        let plain = !std::io::stderr().is_terminal();
        let bar = if plain { ProgressBar::hidden() } else { ProgressBar::new(total) };
        if let Ok(style) = ProgressStyle::with_template("{msg:<44} {bar:30} {pos}/{len} ETA {eta}")
        {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_message(what.to_owned());
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { bar, what: what.to_owned(), done: 0, total, plain, printed: Instant::now() }
    }

    /// So many more steps are done; fails if Ctrl-C was pressed.
    pub fn step(&mut self, more: u64) -> Result<()> {
        self.done = self.total.min(self.done + more);
        self.bar.set_position(self.done);
        if self.plain && self.printed.elapsed() >= PLAIN_EVERY {
            self.printed = Instant::now();
            eprintln!(
                "{}: {} %",
                self.what,
                (self.done * 100).checked_div(self.total).unwrap_or(100)
            );
        }
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
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
