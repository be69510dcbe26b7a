//! Counting system calls: this program starts itself under `strace -c` twice, with n and with 2 n
//! operations; the difference is what n operations cost, without start and end.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::process::{Command, Stdio};

use crate::failure::{Explain, Failure, Result};
use crate::numbers::{float, per};

/// Calls by name.
type Calls = BTreeMap<String, u64>;

/// What one operation calls.
pub struct PerOperation {
    /// All calls.
    pub total: f64,
    /// Calls that nearly every operation makes: without what one in ten or fewer adds, such as a
    /// page split.
    pub typical: f64,
    /// Those that flush.
    pub flushes: f64,
    /// By name, most frequent first.
    pub names: String,
}

/// Calls that flush a file or a folder.
const FLUSHING: [&str; 4] = ["fsync", "fdatasync", "syncfs", "msync"];

/// Whether it is installed.
pub fn is_there() -> bool {
    Command::new("strace").arg("-V").output().is_ok_and(|output| output.status.success())
}

/// Counts the calls of one operation of what this program does with these arguments, `--count`
/// aside.
pub fn count(arguments: &[OsString], operations: u64) -> Result<PerOperation> {
    // What the very first operation costs once, such as making dash's second copy, is in neither.
    run(arguments, 1)?;
    let once = run(arguments, operations)?;
    let twice = run(arguments, 2 * operations)?;
    let mut names: Vec<(String, f64)> = Vec::new();
    for (name, calls) in &twice {
        let more = calls.saturating_sub(once.get(name).copied().unwrap_or(0));
        names.push((name.clone(), per(more, operations)));
    }
    names.retain(|(_, share)| *share >= 0.005);
    names.sort_by(|a, b| b.1.total_cmp(&a.1));
    let total = |calls: &Calls| calls.values().sum::<u64>();
    Ok(PerOperation {
        total: (float(total(&twice)) - float(total(&once))) / float(operations),
        flushes: names
            .iter()
            .filter(|(name, _)| FLUSHING.contains(&name.as_str()))
            .fold(0.0, |sum, (_, share)| sum + share),
        typical: names
            .iter()
            .map(|(_, share)| (share + 0.4).floor())
            .fold(0.0, |sum, calls| sum + calls),
        names: names
            .iter()
            .map(|(name, share)| format!("{share:.2} {name}"))
            .collect::<Vec<_>>()
            .join(", "),
    })
}

fn run(arguments: &[OsString], operations: u64) -> Result<Calls> {
    let own = std::env::current_exe().explain("finding this program")?;
    let table = tempfile::NamedTempFile::new().explain("making a file for strace")?;
    let output = Command::new("strace")
        .args(["-f", "-c", "-o"])
        .arg(table.path())
        .arg(own)
        .args(arguments)
        .args(["--count", &operations.to_string()])
        .stdin(Stdio::null())
        .output()
        .explain("running strace")?;
    if !output.status.success() {
        return Err(Failure::new(format!(
            "strace: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        )));
    }
    parse(&std::fs::read_to_string(table.path()).explain("reading strace's table")?)
        .ok_or_else(|| Failure::new("strace's table has no columns called calls and syscall"))
}

fn parse(table: &str) -> Option<Calls> {
    let mut lines = table.lines().skip_while(|line| !line.contains("syscall"));
    lines.next()?;
    let mut calls = Calls::new();
    for line in lines {
        // % time, seconds, usecs/call, calls, [errors], syscall
        let words: Vec<&str> = line.split_whitespace().collect();
        if let (Some(count), Some(name)) =
            (words.get(3).and_then(|word| word.parse().ok()), words.last())
            && *name != "total"
        {
            calls.insert((*name).to_owned(), count);
        }
    }
    Some(calls)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_read_with_and_without_errors() {
        let table = "% time     seconds  usecs/call     calls    errors syscall\n------ ----------- ----------- --------- --------- ------\n 60.00    0.000100           1       100         3 fcntl\n 40.00    0.000050           2        25           pread64\n------ ----------- ----------- --------- --------- ------\n100.00    0.000150           1       125         3 total\n";
        let calls = parse(table).expect("columns");
        assert_eq!(calls.get("fcntl"), Some(&100));
        assert_eq!(calls.get("pread64"), Some(&25));
        assert_eq!(calls.len(), 2);
    }
}
