//! Real-time priority for the thread that measures, so that others' load on the processors stays
//! out of the figures: without it a task that I/O wakes may wait for the next tick of the scheduler
//! (4 ms at 250 Hz) wherever somebody computes.
//!
//! Threads and processes started later do not inherit it.

use std::process::{Command, Stdio};

/// The lowest real-time priority that is above everything else.
const PRIORITY: &str = "10";

/// Gives it to this thread, which must be the first of the process; whether that worked.
pub fn raise() -> bool {
    let own = std::process::id().to_string();
    let raised = Command::new("chrt")
        .args(["--reset-on-fork", "--fifo", "--pid", PRIORITY, &own])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    raised.is_ok_and(|status| status.success())
}
