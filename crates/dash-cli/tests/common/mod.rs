//! Running the program in a folder of its own, and making databases in states worth looking at.
#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

pub mod forged;
pub mod killed;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use dash_testing::machine::is_root;
use dash_testing::{Need, skip};
use rusqlite::Connection;

/// The program under test. Asked for when a test runs: a shell between cargo and rustc
/// (`.cargo/rustc`) drops a name with a hyphen.
pub fn program() -> OsString {
    std::env::var_os("CARGO_BIN_EXE_sqlite-dash").unwrap()
}

/// A folder with a database `app.db` that need not exist.
pub struct Home {
    folder: tempfile::TempDir,
}

impl Home {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    pub fn db(&self) -> PathBuf {
        self.file("app.db")
    }

    /// Runs `dash` with these arguments, in the folder, with nobody to answer.
    pub fn dash(&self, arguments: &[&str]) -> Run {
        Run(self.command(arguments).stdin(Stdio::null()).output().unwrap())
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program());
        command.args(arguments).current_dir(self.path());
        command
    }

    /// A session of `sqlite-dash shell` that is told what to do, and killed or closed by who has
    /// it.
    pub fn shell(&self) -> Child {
        let mut command = self.command(&["shell", "app.db"]);
        command.env("PATH", "").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        command.spawn().unwrap()
    }

    /// A connection in mode wal whose statements are recorded; with these parameters more.
    pub fn recorded(&self, more: &str) -> Connection {
        dash_testing::extension::load();
        let path = self.db().display().to_string();
        let uri = format!("file:{path}?vfs=dash&journal_mode=wal&dash_statements=on{more}");
        Connection::open(uri).unwrap()
    }

    /// The database, with all that lies beside it, as a kill leaves it now.
    pub fn as_killed(&self) -> Self {
        let copy = Self::new();
        for (name, bytes) in self.contents() {
            if self.file(&name).is_dir() {
                fs::create_dir(copy.file(&name)).unwrap();
            } else {
                fs::write(copy.file(&name), bytes).unwrap();
            }
        }
        copy
    }

    /// The same command by somebody who may write nothing here; `None` if nobody can be that.
    pub fn forbidden(&self, arguments: &[&str]) -> Option<Command> {
        let mut command = self.command(arguments);
        if is_root() {
            command.uid(65_534).gid(65_534);
            let mut probe = Command::new(program());
            probe.arg("--version").uid(65_534).gid(65_534).stdout(Stdio::null());
            if !probe.status().is_ok_and(|status| status.success()) {
                skip(Need::Traverse, "another user can't run what was built here");
                return None;
            }
            fs::set_permissions(self.path(), fs::Permissions::from_mode(0o755)).unwrap();
        } else {
            fs::set_permissions(self.path(), fs::Permissions::from_mode(0o555)).unwrap();
        }
        command.stdin(Stdio::null());
        Some(command)
    }

    /// A plain database with a few rows, made by stock SQLite.
    pub fn plain(&self) -> Connection {
        let db = Connection::open(self.db()).unwrap();
        db.execute_batch(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, body TEXT);
             WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
             INSERT INTO t SELECT i, printf('body %090d', i) FROM n",
        )
        .unwrap();
        db
    }

    /// A database that was under dash for some commits and was closed.
    pub fn shadowed(&self) {
        drop(self.plain());
        self.dash(&["convert", "app.db", "--to", "shadow"]).is(0);
        for number in 0..3 {
            self.sql(&format!("INSERT INTO t (body) VALUES ('by dash {number}')"));
        }
    }

    /// Runs SQL through dash and closes.
    pub fn sql(&self, sql: &str) -> String {
        let run = Run(self
            .command(&["shell", "app.db", "--", sql])
            .env("PATH", "")
            .stdin(Stdio::null())
            .output()
            .unwrap());
        run.is(0).out()
    }

    /// How many rows stock SQLite sees.
    pub fn stock_rows(&self) -> i64 {
        let db = Connection::open(self.db()).unwrap();
        db.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap()
    }

    /// Names and contents of everything in the folder.
    pub fn contents(&self) -> BTreeMap<String, Vec<u8>> {
        fs::read_dir(self.path())
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let bytes = fs::read(entry.path()).unwrap_or_default();
                (entry.file_name().to_string_lossy().into_owned(), bytes)
            })
            .collect()
    }

    /// Leaves names as a power loss does that took the last exchange: `app.db` is a whole state,
    /// the shadow the one after it.
    pub fn lose_the_last_exchange(&self) {
        let former = fs::read(self.db()).unwrap();
        self.sql("INSERT INTO t (body) VALUES ('exchange lost')");
        let shadow = fs::OpenOptions::new().write(true).open(self.file("app.db-shadow")).unwrap();
        shadow.write_all_at(&former, 0).unwrap();
        shadow.set_len(former.len() as u64).unwrap();
        fs::rename(self.db(), self.file("aside")).unwrap();
        fs::rename(self.file("app.db-shadow"), self.db()).unwrap();
        fs::rename(self.file("aside"), self.file("app.db-shadow")).unwrap();
    }
}

impl Drop for Home {
    /// A folder that was forbidden can't be removed.
    fn drop(&mut self) {
        let _ = fs::set_permissions(self.path(), fs::Permissions::from_mode(0o755));
    }
}

/// What a run came to.
pub struct Run(pub Output);

impl Run {
    pub fn out(&self) -> String {
        String::from_utf8_lossy(&self.0.stdout).into_owned()
    }

    pub fn errors(&self) -> String {
        String::from_utf8_lossy(&self.0.stderr).into_owned()
    }

    /// Asserts the exit code.
    pub fn is(self, code: i32) -> Self {
        assert_eq!(self.0.status.code(), Some(code), "{}{}", self.out(), self.errors());
        self
    }

    /// Asserts that something is said, on either stream.
    pub fn says(self, words: &str) -> Self {
        let all = format!("{}{}", self.out(), self.errors());
        assert!(all.contains(words), "{words:?} is not in:\n{all}");
        self
    }
}
