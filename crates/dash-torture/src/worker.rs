//! The part of a worker process: every role is found here.
//!
//! A program that runs rings has to call [`run`] when it is started with what its [`Again`] says:
//! `dash-torture` before it reads its arguments, a test in an ignored test.

pub use crate::again::{Again, FOUND};
use crate::again::{assignment, role};

/// Plays the part that this process was started for, and answers the exit code to end with; `None`
/// if it was not started as a worker.
#[must_use]
pub fn run() -> Option<u8> {
    let role = role()?;
    let done = assignment().and_then(|assignment| {
        let of_faults = crate::faults::worker(&role, &assignment);
        of_faults.unwrap_or_else(|| crate::kill::worker(&role, &assignment))
    });
    Some(match done {
        Ok(()) => 0,
        Err(what) => {
            eprintln!("{what}");
            FOUND
        }
    })
}
