//! SEC12: `TMPDIR` decided where a program put temporary files, also one that runs with
//! the rights of another user than who starts it.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use dash_testing::roles::{cast, role};
use dash_testing::{Need, skip};

const THEIRS: &str = "/of-who-starts-it";

/// What the program at `path` says, started by somebody.
fn said(path: &Path, user: Option<u32>) -> String {
    let mut command = Command::new(path);
    cast(&mut command, "a_program_says_its_folders", "");
    command.env("TMPDIR", THEIRS).env("DASH_ERRORS", THEIRS);
    if let Some(user) = user {
        command.uid(user).gid(user);
    }
    String::from_utf8_lossy(&command.output().unwrap().stdout).into_owned()
}

#[test]
fn who_starts_a_setuid_program_has_no_say() {
    let program = std::env::current_exe().unwrap();
    let plain = said(&program, None);
    assert!(plain.contains(THEIRS) && plain.contains("/var/tmp"), "{plain}");
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let other = folder.path().join("program");
    fs::copy(&program, &other).unwrap();
    if chown(&other, Some(2001), Some(2001)).is_err() {
        return skip(Need::Root, "giving a program away takes root");
    }
    fs::set_permissions(&other, fs::Permissions::from_mode(0o4755)).unwrap();
    let theirs = said(&other, Some(2002));
    if theirs.contains("trusted") {
        return skip(Need::Setuid, "programs here don't take the rights of their owner (nosuid)");
    }
    assert!(theirs.contains("/var/tmp") && !theirs.contains(THEIRS), "{theirs}");
}

#[test]
#[ignore = "a role of the test above"]
fn a_program_says_its_folders() {
    if role("a_program_says_its_folders").is_none() {
        return;
    }
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let users: Vec<_> =
        status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap().split('\t').collect();
    println!("{}", if users[1] == users[2] { "trusted" } else { "another's rights" });
    println!("{:?}", dash_ffi::temporary_folders());
    println!("{:?}", dash_ffi::variable(c"DASH_ERRORS"));
}
