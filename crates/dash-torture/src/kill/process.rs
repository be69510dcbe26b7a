//! One worker process as its driver sees it: started, listened to, stopped, killed.

use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ChildStdout};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::worker::Said;
use crate::again::{Again, Task};

/// How long a worker may take to begin.
const PATIENCE: Duration = Duration::from_secs(60);

/// A worker process.
pub struct Process {
    child: Child,
    said: Receiver<u8>,
    listener: Option<JoinHandle<()>>,
    heard: Vec<u8>,
    /// What it was started as, for messages.
    pub role: String,
}

/// How a worker came to its end.
#[derive(Debug, Clone, Default)]
pub struct End {
    /// It was killed between beginning to open the database and having it open.
    pub while_opening: bool,
    /// Commits and snapshots that it finished.
    pub done: u64,
    /// Times it found a lock taken.
    pub busy: u64,
    /// Times it switched the mode.
    pub switched: u64,
    /// What it saw that must never happen, or how it ended otherwise than by being killed.
    pub wrong: Option<String>,
}

fn listen(mut output: ChildStdout, tell: &std::sync::mpsc::Sender<u8>) {
    let mut bytes = [0; 256];
    while let Ok(read @ 1..) = output.read(&mut bytes) {
        for &byte in &bytes[..read] {
            if tell.send(byte).is_err() {
                return;
            }
        }
    }
}

impl Process {
    /// Starts one.
    pub fn start(
        again: &Again,
        role: &str,
        file: &Path,
        library: &Path,
        task: &Task,
    ) -> Result<Self, String> {
        let mut child = again
            .command(role, file, library, task)
            .spawn()
            .map_err(|error| format!("starting a worker: {error}"))?;
        let output = child.stdout.take().ok_or("a worker was started without a pipe")?;
        let (tell, said) = channel();
        let listener = std::thread::spawn(move || listen(output, &tell));
        let role = format!("{role} {}", task.slot);
        Ok(Self { child, said, listener: Some(listener), heard: Vec::new(), role })
    }

    /// Waits until it says something; `false` if it ended, or nothing came for a minute.
    pub fn hears(&mut self, what: Said) -> bool {
        self.hears_within(what, PATIENCE)
    }

    /// The same, for not so long.
    pub fn hears_within(&mut self, what: Said, patience: Duration) -> bool {
        let begun = Instant::now();
        loop {
            let rest = patience.saturating_sub(begun.elapsed());
            match self.said.recv_timeout(rest) {
                Ok(byte) => {
                    self.heard.push(byte);
                    if byte == what as u8 {
                        return true;
                    }
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return false,
            }
        }
    }

    /// Waits until it has killed itself.
    pub fn must_die(&mut self) -> Result<(), String> {
        let begun = Instant::now();
        loop {
            match self.child.try_wait() {
                Ok(None) if begun.elapsed() < PATIENCE => {
                    std::thread::sleep(Duration::from_micros(200));
                }
                Ok(Some(_)) => return Ok(()),
                _ => return Err(format!("{} hangs", self.role)),
            }
        }
    }

    /// How it ended, if it did otherwise than by being killed, and its last words.
    fn ended(&mut self) -> Option<String> {
        let status = self.child.try_wait().ok().flatten()?;
        if status.signal() == Some(libc::SIGKILL) {
            return None;
        }
        let mut words = String::new();
        if let Some(pipe) = &mut self.child.stderr {
            // Words that can't be read are few enough to do without.
            drop(pipe.read_to_string(&mut words));
        }
        Some(format!("{} ended by itself ({status}): {}", self.role, words.trim()))
    }

    /// Waits until it says something; `Err` tells what it did instead.
    pub fn must_say(&mut self, what: Said) -> Result<(), String> {
        if self.hears(what) {
            return Ok(());
        }
        let heard = String::from_utf8_lossy(&self.heard).into_owned();
        let ended = self.ended().unwrap_or_else(|| format!("{} hangs", self.role));
        Err(format!("{ended}: waited for {what:?} after {heard}"))
    }

    /// Forgets what it said until now, so that [`Process::hears`] waits for something new.
    pub fn catch_up(&mut self) {
        self.heard.extend(self.said.try_iter());
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) -> Result<(), String> {
        let pid = i32::try_from(self.child.id()).map_err(|error| error.to_string())?;
        kill(Pid::from_raw(pid), signal).map_err(|error| format!("{signal}: {error}"))
    }

    /// `kill -9`, and what is to be said of it.
    pub fn kill(mut self) -> End {
        let wrong = self.ended();
        drop(self.child.kill());
        drop(self.child.wait());
        if let Some(listener) = self.listener.take() {
            drop(listener.join());
        }
        self.catch_up();
        let count =
            |what: Said| self.heard.iter().filter(|&&byte| byte == what as u8).count() as u64;
        let last = self.heard.iter().rev().find(|&&byte| byte != Said::Busy as u8);
        End {
            while_opening: last == Some(&(Said::Opening as u8)),
            done: count(Said::Done),
            busy: count(Said::Busy),
            switched: count(Said::Switched),
            wrong,
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
