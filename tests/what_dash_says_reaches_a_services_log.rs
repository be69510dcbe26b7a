//! `DASH_ERRORS`: hosts raise "database is locked" or "unable to open database file", and a
//! service's log has no more of it. With the variable each message of dash goes where that log is.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

mod suite;

use std::io::{Read, Write as _};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use dash_testing::machine::runs;
use dash_testing::{Need, skip};
use rusqlite::Connection;
use suite::parts::{Part, again};
use suite::peers::Session;
use suite::sql::run;

const ADD: &str = "INSERT INTO t VALUES (1)";

fn made(path: &Path) -> Connection {
    let db = suite::open(path);
    run(&db, "PRAGMA journal_mode=wal; CREATE TABLE t(x); BEGIN IMMEDIATE");
    db
}

fn service(path: &Path, to: &str) -> Command {
    let mut command = again("session", path, Part::default());
    command.env("DASH_ERRORS", to);
    command
}

/// Runs into the same twice, and into another thing once.
fn fails(mut service: Session) {
    service.must("PRAGMA busy_timeout=0");
    service.sql(ADD).unwrap_err();
    service.must("SELECT dash_last_error()");
    for _ in 0..2 {
        service.sql("PRAGMA dash_durability=ful").unwrap_err();
    }
    service.close();
}

/// Of databases of the same name, one a folder, each line says which one it is about.
fn is_told(lines: &[&str], folder: &Path) {
    let holder = format!(r"/app\x1b.db' is locked: process {} (", std::process::id());
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines.iter().all(|line| line.contains(folder.to_str().unwrap())), "{lines:?}");
    assert!(lines[0].contains(&holder), "{lines:?}");
    assert!(lines[1].contains("dash_durability"), "{lines:?}");
}

#[test]
fn in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let (path, log) = (folder.path().join("app\u{1b}.db"), folder.path().join("errors"));
    let _writer = made(&path);
    let session = Session::begin(service(&path, log.to_str().unwrap())).unwrap();
    let id = session.id();
    fails(session);
    let text = std::fs::read_to_string(&log).unwrap();
    is_told(&text.lines().collect::<Vec<_>>(), folder.path());
    let (time, rest) = text.split_once("Z ").unwrap();
    assert!(time.len() == "2026-11-29 12:34:56.789".len() && time.starts_with("20"), "{text}");
    assert!(rest.starts_with(&format!("dash[{id}]: ")), "{text}");
    assert_eq!(log.metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn on_standard_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app\u{1b}.db");
    let _writer = made(&path);
    let (mut reads, writes) = std::io::pipe().unwrap();
    let mut command = service(&path, "stderr");
    command.stderr(Stdio::from(writes));
    let session = Session::begin(command).unwrap();
    fails(session);
    let mut text = String::new();
    reads.read_to_string(&mut text).unwrap();
    is_told(
        &text.lines().filter(|line| line.starts_with("dash[")).collect::<Vec<_>>(),
        folder.path(),
    );
}

/// The kernel ends who writes past that limit (SIGXFSZ).
#[test]
fn but_not_past_a_limit_on_file_sizes() {
    let folder = tempfile::tempdir().unwrap();
    let (path, log) = (folder.path().join("app.db"), folder.path().join("errors"));
    std::fs::File::create(&log).unwrap().set_len(6 << 20).unwrap();
    let _writer = made(&path);
    let inside = service(&path, log.to_str().unwrap());
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -f 4096; exec \"$0\" \"$@\""]);
    command.arg(inside.get_program()).args(inside.get_args());
    command.envs(inside.get_envs().filter_map(|(name, value)| Some((name, value?))));
    fails(Session::begin(command).unwrap());
    assert_eq!(log.metadata().unwrap().len(), 6 << 20);
}

#[test]
fn nor_into_a_pipe_that_is_full() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let _writer = made(&path);
    let (reads, mut writes) = std::io::pipe().unwrap();
    writes.write_all(&[b'x'; 1 << 16]).unwrap(); // as much as it holds
    let mut command = service(&path, "stderr");
    command.stderr(Stdio::from(writes));
    fails(Session::begin(command).unwrap());
    drop(reads);
}

#[test]
fn in_the_machines_log() {
    if !runs("unshare", &["--mount", "true"]) {
        skip(Need::Root, "no mount namespace can be made");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (path, socket) = (folder.path().join("app\u{1b}.db"), folder.path().join("log"));
    let log = UnixDatagram::bind(&socket).unwrap();
    log.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let _writer = made(&path);
    let inside = service(&path, "syslog");
    let mut command = Command::new("unshare");
    let script = "mount -t tmpfs t /dev && ln -s \"$0\" /dev/log && mknod -m 666 /dev/null c 1 3 && \
                  mknod -m 666 /dev/urandom c 1 9 && exec \"$@\"";
    command.args(["--mount", "sh", "-c", script]).arg(&socket);
    command.arg(inside.get_program()).args(inside.get_args());
    command.envs(inside.get_envs().filter_map(|(name, value)| Some((name, value?))));
    fails(Session::begin(command).unwrap());
    let lines: Vec<_> = (0..2)
        .map(|_| {
            let mut bytes = [0; 4096];
            let length = log.recv(&mut bytes).unwrap();
            String::from_utf8_lossy(&bytes[..length]).into_owned()
        })
        .collect();
    assert!(lines.iter().all(|line| line.starts_with("<11>") && line.contains(": dash: ")));
    is_told(&lines.iter().map(|line| &**line).collect::<Vec<_>>(), folder.path());
}

#[test]
fn and_nowhere_where_that_is_not_understood() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let mut command = service(&path, "stdout");
    command.current_dir(folder.path());
    let mut session = Session::begin(command).unwrap();
    let said = session.must("SELECT dash_last_error()");
    assert_eq!(said, "DASH_ERRORS=stdout is ignored: it takes stderr, syslog, or an absolute path");
    session.sql("PRAGMA dash_durability=ful").unwrap_err();
    session.close();
    assert!(!folder.path().join("stdout").exists());
}

/// What is wrong with the variable is seen where a person looks first, and once.
#[test]
fn and_who_misspells_it_is_told_on_standard_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let nowhere = folder.path().join("nowhere/errors").display().to_string();
    let a_folder = folder.path().display().to_string();
    for (to, why) in [
        ("stdout", "takes stderr, syslog, or an absolute path"),
        ("./errors", "takes stderr, syslog, or an absolute path"),
        (&nowhere, "No such file or directory"),
        (&a_folder, "Is a directory"),
    ] {
        let (mut reads, writes) = std::io::pipe().unwrap();
        let mut command = service(&path, to);
        command.current_dir(folder.path()).stderr(Stdio::from(writes));
        let session = Session::begin(command).unwrap();
        session.close();
        let mut text = String::new();
        reads.read_to_string(&mut text).unwrap();
        let lines: Vec<_> = text.lines().filter(|line| line.starts_with("dash[")).collect();
        assert_eq!(lines.len(), 1, "{to}: {text}");
        assert!(lines[0].contains(&format!("DASH_ERRORS={to}")), "{text}");
        assert!(lines[0].contains(why), "{text}");
    }
    let fits = folder.path().join("errors").display().to_string();
    Session::begin(service(&path, &fits)).unwrap().close();
    assert!(!folder.path().join("errors").exists(), "it is made by the first line");
}
