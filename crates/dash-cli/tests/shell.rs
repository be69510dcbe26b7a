//! `dash shell` opens a database of any name through dash, with sqlite3 and without.
#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

mod common;

use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Stdio};

use common::Home;

/// Names that a URI or a dot command would take for something else.
const NAMES: [&[u8]; 4] = [b"plain.db", b"two words.db", b"a?b#c%41\"d'e.db", b"not-utf8-\xff.db"];

#[test]
fn sqlite3_opens_any_name_through_dash() {
    if Command::new("sqlite3").arg("-version").output().is_err() {
        println!("skipped: sqlite3 is not installed");
        return;
    }
    for name in NAMES {
        let home = Home::new();
        let output = home
            .command(&["shell"])
            .arg(OsStr::from_bytes(name))
            .args(["--", "CREATE TABLE t(x); SELECT dash_engine()"])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            "shadow\n",
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        assert!(home.path().join(OsStr::from_bytes(name)).exists());
    }
}

#[test]
fn the_prompt_of_our_own_opens_any_name_through_dash() {
    for name in NAMES {
        let home = Home::new();
        let output = home
            .command(&["shell"])
            .arg(OsStr::from_bytes(name))
            .args(["--", "CREATE TABLE t(x); SELECT dash_engine(), NULL, 1.5, x'41'"])
            .env("PATH", "")
            .output()
            .unwrap();
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            "shadow||1.5|A\n",
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        assert!(home.path().join(OsStr::from_bytes(name)).exists());
    }
}

#[test]
fn the_prompt_reads_statements_over_lines_and_goes_on_after_an_error() {
    let home = Home::new();
    let mut prompt = home
        .command(&["shell", "app.db"])
        .env("PATH", "")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = "CREATE TABLE t(x);\nINSERT INTO t\nVALUES (';'),\n(2);\nSELECT nonsense;\nSELECT count(*) FROM t;\n.quit\n";
    prompt.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let output = prompt.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "2\n");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no such column: nonsense"));
}
