//! Running other programs.

use std::process::Command;

use anyhow::{Context, Result, ensure};

/// Runs a program to its end; what it says is seen.
///
/// # Errors
///
/// If it can't be started or fails.
pub fn run(command: &mut Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.status().with_context(|| format!("starting {name}"))?;
    ensure!(status.success(), "{name} failed: {status}");
    Ok(())
}
