//! SEC9 and SEC10, and the odd journals of SEC12: a named pipe beside a database was waited for, a
//! hard link to a foreign file was overwritten and given other permissions, and beside a journal
//! that is no file every write failed without a word of why. What is put beside a database by
//! somebody else is refused at once, by name, with what to do; and left as it is.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

mod suite;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use dash_testing::names::beside;
use suite::peers::{Part, Session};
use suite::sql::run;

/// Against waiting for ever.
const PATIENCE: Duration = Duration::from_secs(30);

fn made() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    run(&suite::stock(&path), "CREATE TABLE t(v); INSERT INTO t VALUES (1)");
    (folder, path)
}

/// What a session says that reads and, if it may, writes.
fn session(path: &Path, more: &'static str) -> Result<i64, String> {
    suite::load();
    let (answer, answered) = mpsc::channel();
    let uri = suite::uri(path, more);
    std::thread::spawn(move || {
        let done = rusqlite::Connection::open(uri).and_then(|db| {
            if more.is_empty() {
                db.execute_batch("INSERT INTO t VALUES (2); INSERT INTO t VALUES (3)")?;
            }
            db.query_row("SELECT count(*) FROM t", [], |row| row.get(0))
        });
        answer.send(done.map_err(|error| format!("{error}; {}", suite::parts::last_error())))
    });
    answered.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("{more}: it waits"))
}

#[test]
fn a_pipe_or_a_socket_or_a_link() {
    for name in ["-shadow", "-dash", "-journal"] {
        for kind in ["pipe", "socket", "link"] {
            let (folder, path) = made();
            let odd = beside(&path, name);
            let _socket;
            match kind {
                "pipe" => {
                    nix::unistd::mkfifo(&odd, nix::sys::stat::Mode::S_IRWXU).unwrap();
                }
                "socket" => _socket = UnixListener::bind(&odd).unwrap(),
                _ => symlink(folder.path().join("elsewhere"), &odd).unwrap(),
            }
            let error = session(&path, "").unwrap_err();
            assert!(error.contains(&format!("app.db{name}")), "{name} {kind}: {error}");
            assert!(error.contains("remove it"), "{name} {kind}: {error}");
            // Who only reads does not wait either; where the odd one does not matter, it reads.
            if let Err(error) = session(&path, "&mode=ro") {
                assert!(error.contains(&format!("app.db{name}")), "{name} {kind}: {error}");
            }
            assert!(!folder.path().join("elsewhere").exists(), "{name} {kind}");
            assert!(fs::symlink_metadata(&odd).is_ok(), "{name} {kind} was not left as it was");
        }
    }
}

/// `app.db-shadow-tmp` is looked at only where one of the two files is missing.
#[test]
fn a_pipe_in_place_of_a_name_between_two_renames() {
    let (_folder, path) = made();
    run(&suite::open(&path), "INSERT INTO t VALUES (2)");
    fs::remove_file(beside(&path, "-shadow")).unwrap();
    nix::unistd::mkfifo(&beside(&path, "-shadow-tmp"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    for more in ["&mode=ro", ""] {
        if let Err(error) = session(&path, more) {
            assert!(error.contains("named pipe"), "{error}");
        }
    }
}

/// SEC A10-5: it was given the shadow's name, and the database was refused for that.
#[test]
fn a_folder_in_place_of_a_name_between_two_renames() {
    for is_lost in [true, false] {
        let (_folder, path) = made();
        run(&suite::open(&path), "INSERT INTO t VALUES (2)");
        if is_lost {
            fs::remove_file(beside(&path, "-shadow")).unwrap();
        }
        let odd = beside(&path, "-shadow-tmp");
        fs::create_dir(&odd).unwrap();
        fs::write(odd.join("x"), "mine").unwrap();
        for (more, count) in [("&mode=ro", 2), ("", 4), ("", 6)] {
            match session(&path, more) {
                Err(error) if is_lost && more.is_empty() => {
                    let says = error.contains("app.db-shadow-tmp: it is a folder, not a file");
                    assert!(says && error.contains("remove it"), "{error}");
                }
                done => assert_eq!(done, Ok(count), "{is_lost} {more}"),
            }
            assert_eq!(fs::read(odd.join("x")).unwrap(), b"mine");
        }
    }
}

/// Stock SQLite waits for a pipe under the names of its own files, and dash leaves those to it in
/// the plain modes: where the pipe may be read, and not written.
#[test]
fn a_pipe_in_place_of_a_file_of_sqlites_own() {
    const USER: u32 = 2001;
    if !dash_testing::machine::root_for("another user's pipe") {
        return;
    }
    for name in ["-wal", "-shm", "-journal"] {
        for parameters in ["&journal_mode=wal", "", "&mode=ro", "&journal_mode=delete"] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("app.db");
            let stock = rusqlite::Connection::open(&path).unwrap();
            run(&stock, "PRAGMA journal_mode=WAL; CREATE TABLE t(v)");
            drop(stock);
            std::os::unix::fs::chown(folder.path(), Some(USER), Some(USER)).unwrap();
            std::os::unix::fs::chown(&path, Some(USER), Some(USER)).unwrap();
            let odd = beside(&path, name);
            nix::unistd::mkfifo(&odd, nix::sys::stat::Mode::from_bits_truncate(0o644)).unwrap();
            let part = Part { parameters, user: Some(USER), ..Part::default() };
            let error = Session::dash(&path, part).map(Session::close);
            let error = error.expect_err(&format!("{name} {parameters}"));
            assert!(error.contains(&format!("app.db{name}")), "{name} {parameters}: {error}");
        }
    }
}

/// A user who can't write a file, but its folder's neighbour, gives it a second name that dash
/// writes.
#[test]
fn a_hard_link_to_another_file() {
    for name in ["-dash", "-shadow"] {
        for content in ["", "precious"] {
            let (folder, path) = made();
            let other = folder.path().join("other");
            fs::write(&other, content).unwrap();
            fs::set_permissions(&other, fs::Permissions::from_mode(0o600)).unwrap();
            fs::hard_link(&other, beside(&path, name)).unwrap();
            let done = session(&path, "");
            assert_eq!(fs::read_to_string(&other).unwrap(), content, "{name}: {done:?}");
            assert_eq!(fs::metadata(&other).unwrap().mode() & 0o777, 0o600, "{name}");
            if name == "-dash" {
                let error = done.unwrap_err();
                assert!(error.contains("app.db-dash is another file, too"), "{error}");
            }
        }
    }
}
