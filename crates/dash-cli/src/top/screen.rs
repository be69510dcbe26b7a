//! The terminal: a page in the place of the one before, and the key `q`.

use std::io::{IsTerminal, Read};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::termios::{LocalFlags, SetArg, Termios, tcgetattr, tcsetattr};

use crate::failure::{Explain, Result};
use crate::interrupt::Interrupt;

/// Ctrl-C is noticed as soon.
const PAUSE: Duration = Duration::from_millis(100);

/// The cursor goes home; what is below it is cleared after the page.
const HOME: &str = "\x1b[H";

/// Clears what is left of a line, or of the screen.
const CLEAR_LINE: &str = "\x1b[K";
const CLEAR_BELOW: &str = "\x1b[J";

/// The terminal, as long as it shows pages; then it is as it was.
pub struct Screen {
    /// Pages take each other's place.
    paged: bool,
    /// What the keyboard was set to.
    keyboard: Option<Termios>,
}

impl Screen {
    /// Has keys come one by one, unseen, if `paged` and there is a keyboard.
    ///
    /// # Errors
    ///
    /// If the terminal can't be asked.
    pub fn take(paged: bool) -> Result<Self> {
        let stdin = std::io::stdin();
        if !paged || !stdin.is_terminal() {
            return Ok(Self { paged, keyboard: None });
        }
        let keyboard = tcgetattr(&stdin).explain("asking the terminal")?;
        let mut single = keyboard.clone();
        single.local_flags.remove(LocalFlags::ICANON | LocalFlags::ECHO);
        tcsetattr(&stdin, SetArg::TCSANOW, &single).explain("setting the terminal")?;
        print!("{HOME}{CLEAR_BELOW}");
        Ok(Self { paged, keyboard: Some(keyboard) })
    }

    /// The text, as it has to be written.
    pub fn page(&self, text: &str) -> String {
        if !self.paged {
            return format!("{text}\n");
        }
        let lines: String = text.lines().map(|line| format!("{line}{CLEAR_LINE}\r\n")).collect();
        format!("{HOME}{lines}{CLEAR_BELOW}")
    }

    /// Waits; whether the user wants to leave.
    ///
    /// # Errors
    ///
    /// If the keyboard can't be read.
    pub fn wait_until(&self, due: Instant, interrupt: &Interrupt) -> Result<bool> {
        loop {
            if interrupt.pressed() {
                return Ok(true);
            }
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            if self.keyboard.is_none() {
                std::thread::sleep(left.min(PAUSE));
            } else if self.wants_to_leave(left.min(PAUSE))? {
                return Ok(true);
            }
        }
    }

    fn wants_to_leave(&self, time: Duration) -> Result<bool> {
        let stdin = std::io::stdin();
        let mut keys = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
        let time =
            PollTimeout::try_from(time.max(Duration::from_millis(1))).unwrap_or(PollTimeout::ZERO);
        match poll(&mut keys, time) {
            Ok(0) | Err(nix::errno::Errno::EINTR) => return Ok(false),
            found => found.explain("waiting for a key")?,
        };
        let mut typed = [0; 64];
        let read = stdin.lock().read(&mut typed).explain("reading a key")?;
        // The terminal is gone where nothing comes.
        Ok(read == 0 || typed[..read].iter().any(|key| matches!(key, b'q' | b'Q')))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if let Some(keyboard) = &self.keyboard {
            let _ = tcsetattr(std::io::stdin(), SetArg::TCSANOW, keyboard);
        }
    }
}
