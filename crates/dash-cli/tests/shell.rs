//! `sqlite-dash shell` opens a database of any name through dash, with sqlite3 and without.
#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;

use super::common::{Home, Run};
use dash_testing::machine::has_sqlite3;

/// Names that a URI or a dot command would take for something else.
const NAMES: [&[u8]; 4] = [b"plain.db", b"two words.db", b"a?b#c%41\"d'e.db", b"not-utf8-\xff.db"];

#[test]
fn sqlite3_opens_any_name_through_dash() {
    if !has_sqlite3() {
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

/// A script must not run in a database in memory instead: all that it writes would be gone.
#[test]
fn a_uri_is_not_taken_for_the_name_of_a_file() {
    let home = Home::new();
    home.dash(&["shell", "file:app.db?vfs=dash&dash_wal=memory", "--", "SELECT 1"])
        .is(2)
        .says("takes the name of a file")
        .says("libdash.so");
    assert!(home.contents().is_empty(), "{:?}", home.contents().keys());
}

#[test]
fn a_script_does_not_run_where_the_database_can_not_be_opened() {
    let home = Home::new();
    std::fs::write(home.file("notes.txt"), "a shopping list, and nothing more\n".repeat(40))
        .unwrap();
    std::fs::create_dir(home.file("folder.db")).unwrap();
    let wal = rusqlite::Connection::open(home.file("wal.db")).unwrap();
    wal.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA locking_mode = EXCLUSIVE; CREATE TABLE t(x)",
    )
    .unwrap();
    home.shadowed();
    // What its shadow holds is not known to be the newest.
    std::fs::remove_file(home.file("app.db")).unwrap();
    std::fs::create_dir(home.file("app.db-journal")).unwrap();
    let sqlite3 = has_sqlite3();
    // With -readonly nothing is opened beforehand: sqlite3 itself has to stop.
    for option in [None, Some("-readonly")] {
        for (file, reason) in [
            ("notes.txt", "database"),
            ("folder.db", "open"),
            ("missing/app.db", "open"),
            ("wal.db", "in use by another process"),
            ("app.db", "app.db"),
        ] {
            for path in [None, Some("")] {
                if path.is_none() && !sqlite3 || path.is_some() && option.is_some() {
                    continue;
                }
                let mut command = home.command(&["shell", file]);
                command.args(option.map(|option| ["--", option]).into_iter().flatten());
                command.envs(path.map(|path| ("PATH", path)));
                command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
                let mut shell = command.spawn().unwrap();
                let script = b"CREATE TABLE x(y);\nSELECT 'it ran';\n";
                // It may be gone before it has read any of it.
                let _ = shell.stdin.take().unwrap().write_all(script);
                let output = shell.wait_with_output().unwrap();
                let errors = String::from_utf8_lossy(&output.stderr);
                assert_ne!(output.status.code(), Some(0), "{file} {option:?} {path:?}: {errors}");
                assert_eq!(
                    String::from_utf8_lossy(&output.stdout),
                    "",
                    "{file} {option:?} {path:?}"
                );
                // What sqlite3 says by itself is its own.
                let reason = if option.is_some() { "Error" } else { reason };
                assert!(errors.contains(reason), "{file} {option:?} {path:?}: {errors}");
            }
        }
    }
}

#[test]
fn a_script_goes_on_after_an_error_unless_told_to_bail() {
    if !has_sqlite3() {
        return;
    }
    for (options, seen) in [(&[][..], "after\n"), (&["--", "-bail"], "")] {
        let home = Home::new();
        let mut shell = home
            .command(&["shell", "app.db"])
            .args(options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let script = b"SELECT nonsense;\nSELECT 'after';\n";
        shell.stdin.take().unwrap().write_all(script).unwrap();
        let output = shell.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), seen);
    }
}

/// SQLite itself refuses, and names nothing.
#[test]
fn a_write_refused_in_a_folder_that_can_not_be_written_is_explained() {
    let home = Home::new();
    home.shadowed();
    let sql = ["INSERT INTO t (body) VALUES ('x')", "SELECT dash_last_error()"];
    let Some(mut command) = home.forbidden(&["shell", "app.db", "--", sql[0], sql[1]]) else {
        return;
    };
    let run = Run(command.env("PATH", "").output().unwrap());
    let run = run.is(1).says("readonly database");
    assert!(run.out().contains("app.db was opened for reading only: "), "{}", run.out());
    assert!(run.out().contains("Permission denied"), "{}", run.out());
}

/// "database is locked" was all.
#[test]
fn who_has_it_locked_is_named() {
    for path in [None, Some("")] {
        if path.is_none() && !has_sqlite3() {
            continue;
        }
        let home = Home::new();
        home.shadowed();
        dash_testing::extension::load();
        let uri = format!("file:{}?vfs=dash", home.db().display());
        let writer = rusqlite::Connection::open(uri).unwrap();
        writer.execute_batch("BEGIN IMMEDIATE").unwrap();
        let mut command = home.command(&["shell", "app.db", "--", "DELETE FROM t"]);
        command.envs(path.map(|path| ("PATH", path))).stdin(Stdio::null());
        let who = format!("app.db is locked: process {} (", std::process::id());
        Run(command.output().unwrap()).says("database is locked").says(&who);
    }
}
