//! What this machine and this user can do.

use std::process::{Command, Stdio};

use crate::{Need, skip};

/// Whether this process is root's.
pub fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// The same; otherwise the test is skipped, as `what` takes root.
pub fn root_for(what: &str) -> bool {
    let root = is_root();
    if !root {
        skip(Need::Root, &format!("{what} takes root"));
    }
    root
}

/// Whether the running kernel is this one or a newer one.
pub fn kernel_is_at_least(major: u32, minor: u32) -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map_while(|n| n.parse().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (major, minor)
}

/// Whether a program runs with these arguments and succeeds.
pub fn runs(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Whether the program `sqlite3` is here; otherwise the test is skipped.
pub fn has_sqlite3() -> bool {
    let here = runs("sqlite3", &["-version"]);
    if !here {
        skip(Need::Sqlite3, "sqlite3 is not installed");
    }
    here
}
