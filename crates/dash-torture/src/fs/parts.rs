//! The other processes of the ring, and the lines they send each other. The program that runs the
//! ring is started again and told its part by an environment variable; the link is its standard
//! input, so that a part notices at once when its parent is gone, however it went.
//!
//! Workers live in a mount namespace of their own: whatever ends them, the kernel unmounts all they
//! mounted. A device is a process apart from its worker: a worker that waits in the kernel for
//! its device could otherwise never die.

use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::{actor, device, worker};

/// Names the part to be played.
const PART: &str = "DASH_TORTURE_FS_PART";
/// Names the folder to play it in.
const FOLDER: &str = "DASH_TORTURE_FS_FOLDER";
/// The test of that name plays parts where the program is a test; other programs ignore it.
const TEST: &str = "another_process_plays_its_part";

/// Both ends of the talk between two processes: JSON, a line each.
#[derive(Debug)]
pub struct Link {
    reader: BufReader<UnixStream>,
    writer: UnixStream,
    /// What has come of the next line; it stays when patience ends.
    line: String,
}

impl Link {
    fn new(stream: UnixStream) -> std::io::Result<Self> {
        Ok(Self {
            writer: stream.try_clone()?,
            reader: BufReader::new(stream),
            line: String::new(),
        })
    }

    /// Another sender to the same process.
    pub fn sender(&self) -> std::io::Result<UnixStream> {
        self.writer.try_clone()
    }

    /// Sends one message.
    pub fn send(&self, message: &Value) -> std::io::Result<()> {
        send(&self.writer, message)
    }

    /// The next message; `None` once the other process is gone.
    ///
    /// # Errors
    ///
    /// `WouldBlock` where there was none for as long as [`patience`](Self::patience) allows.
    pub fn receive(&mut self) -> std::io::Result<Option<Value>> {
        match self.reader.read_line(&mut self.line) {
            Ok(0) => Ok(None),
            Ok(_) => {
                let line = std::mem::take(&mut self.line);
                serde_json::from_str(&line).map(Some).map_err(std::io::Error::other)
            }
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// How long [`receive`](Self::receive) waits.
    pub fn patience(&self, time: Duration) -> std::io::Result<()> {
        self.writer.set_read_timeout(Some(time))
    }
}

/// Sends one message.
pub fn send(mut stream: &UnixStream, message: &Value) -> std::io::Result<()> {
    stream.write_all(format!("{message}\n").as_bytes())
}

/// Starts this program again in a part.
pub fn start(part: &str, folder: &Path) -> std::io::Result<(Child, Link)> {
    let (ours, theirs) = UnixStream::pair()?;
    let child = Command::new(std::env::current_exe()?)
        .args(["--exact", TEST, "--nocapture"])
        .env(PART, part)
        .env(FOLDER, folder)
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        // Ctrl-C is for the process that runs the ring; that one ends the parts in order.
        .process_group(0)
        .spawn()?;
    Ok((child, Link::new(ours)?))
}

/// Plays the part this process was started for and ends it; returns at once where there is none.
/// To be called first by every program that runs the ring.
pub fn play_part() {
    let Some(part) = std::env::var_os(PART) else { return };
    let folder = PathBuf::from(std::env::var_os(FOLDER).unwrap_or_default());
    let link = std::io::stdin()
        .as_fd()
        .try_clone_to_owned()
        .and_then(|descriptor| Link::new(UnixStream::from(descriptor)));
    let played = link.and_then(|link| match part.to_str() {
        Some("worker") => worker::play(link, &folder),
        Some("device") => device::play(link, &folder),
        Some("actor") => actor::play(link, &folder),
        _ => Err(std::io::Error::other("no such part")),
    });
    std::process::exit(match played {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("{}: {error}", part.display());
            1
        }
    });
}
