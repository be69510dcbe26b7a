//! Other processes, because the locks of one process don't conflict with each other: stock SQLite
//! (Debian's Python where it is installed, so that it is another build, too) and dash, both driven
//! line by line; and a dash writer that commits until it is killed.
//!
//! A dash process is this test program again, told by an environment variable which part to play.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::sync::{Arc, LazyLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use dash_testing::machine::runs;
use dash_testing::names::beside;
use dash_testing::roles::start;
use dash_testing::{Need, skip};

use super::parts::{MARK, again};
pub use super::parts::{Part, last_error};

/// The Python that Debian brings, with Debian's SQLite.
const PYTHON: &str = "/usr/bin/python3";
/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(60);

const STOCK: &str = "
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None)
print('\\x01ok\\t', flush=True)
for line in sys.stdin:
    try:
        rows = db.execute(line.strip()).fetchall()
        print('\\x01ok\\t' + '|'.join(','.join(str(value) for value in row) for row in rows), flush=True)
    except sqlite3.Error as error:
        print('\\x01no\\t%s' % error, flush=True)
";

/// A process that answers SQL, one statement a line.
pub struct Session {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Session {
    /// Begins a transaction that does not fit into its cache: part of it is in the database, beside
    /// a journal that could undo it. Answers the journal's path.
    pub fn writes_in_part(&mut self, path: &Path) -> PathBuf {
        self.must("PRAGMA cache_size=1");
        self.must("BEGIN IMMEDIATE");
        self.must("UPDATE spread SET n = -1");
        self.must(
            "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 2000) \
             INSERT INTO log SELECT 1000 + i, hex(randomblob(300)) FROM c",
        );
        let journal = beside(path, "-journal");
        assert!(journal.metadata().expect("spilled").len() > 512, "the journal is not written");
        journal
    }

    /// Stock SQLite on `path`; nothing of dash is in that process.
    pub fn stock(path: &Path) -> Self {
        let mut command = Command::new(PYTHON);
        command.args(["-c", STOCK]).arg(path);
        static INSTALLED: LazyLock<bool> =
            LazyLock::new(|| runs(PYTHON, &["-c", "import sqlite3"]));
        if !*INSTALLED {
            skip(Need::Python, "stock SQLite is the build in this program, and no other");
            command = again("stock", path, Part::default());
        }
        Self::begin(command).expect("stock SQLite opens")
    }

    /// A dash connection; the error of opening it, followed by `dash_last_error()`.
    pub fn dash(path: &Path, part: Part<'_>) -> Result<Self, String> {
        Self::begin(again("session", path, part))
    }

    /// One that answers so.
    pub fn begin(mut command: Command) -> Result<Self, String> {
        let mut child = start(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
        let output = BufReader::new(child.stdout.take().expect("piped"));
        let mut session = Self { input: child.stdin.take(), child, output };
        session.answer().map(|_| session)
    }

    fn answer(&mut self) -> Result<String, String> {
        let mut line = String::new();
        loop {
            line.clear();
            let read = self.output.read_line(&mut line).expect("text");
            assert!(read > 0, "the other process ended");
            if let Some((_, ours)) = line.trim_end_matches('\n').split_once(MARK) {
                let (kind, text) = ours.split_once('\t').expect("an answer");
                return if kind == "ok" { Ok(text.to_owned()) } else { Err(text.to_owned()) };
            }
        }
    }

    /// Runs one statement: rows separated by `|`, columns by commas; or SQLite's message.
    pub fn sql(&mut self, sql: &str) -> Result<String, String> {
        let input = self.input.as_mut().expect("open");
        writeln!(input, "{sql}").expect("the other process listens");
        self.answer()
    }

    /// Runs statements that must succeed.
    pub fn must(&mut self, sql: &str) -> String {
        self.sql(sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Closes the connection and ends the process.
    pub fn close(mut self) {
        self.input = None;
        let status = self.child.wait().expect("ends");
        assert!(status.success(), "{status}");
    }

    /// `kill -9`.
    pub fn kill(mut self) {
        self.child.kill().expect("ours");
        self.child.wait().expect("ends");
    }

    /// `kill -STOP`: it does nothing any more, and keeps what it has.
    pub fn stop(&self) {
        stop(&self.child);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// `kill -STOP`, and until it has stopped.
fn stop(child: &Child) {
    let id = nix::unistd::Pid::from_raw(i32::try_from(child.id()).expect("a process id"));
    nix::sys::signal::kill(id, nix::sys::signal::Signal::SIGSTOP).expect("ours");
    let stat = format!("/proc/{id}/stat");
    while !std::fs::read_to_string(&stat).expect("it is there").contains(") T ") {
        std::thread::yield_now();
    }
}

/// A dash process that commits the [`workload`] as fast as it can.
pub struct Writer {
    child: Child,
    acknowledged: Arc<AtomicI64>,
    reader: Option<JoinHandle<()>>,
}

impl Writer {
    /// Starts one on a database that [`workload::make`] made.
    pub fn start(path: &Path, part: Part<'_>) -> Self {
        let mut command = again("writer", path, part);
        let mut child = start(command.stdin(Stdio::null()).stdout(Stdio::piped()));
        let acknowledged = Arc::new(AtomicI64::new(-1));
        let (seen, output) = (acknowledged.clone(), child.stdout.take().expect("piped"));
        let reader = std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let number = line
                    .split_once(MARK)
                    .and_then(|(_, ours)| ours.strip_prefix("ok\t")?.parse().ok());
                if let Some(number) = number {
                    seen.fetch_max(number, SeqCst);
                }
            }
        });
        Self { child, acknowledged, reader: Some(reader) }
    }

    /// The newest commit that was acknowledged; -1: none yet.
    pub fn acknowledged(&self) -> i64 {
        self.acknowledged.load(SeqCst)
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// `kill -STOP`: it keeps what it has.
    pub fn stop(&self) {
        stop(&self.child);
    }

    /// Waits until `n` is acknowledged.
    pub fn reaches(&mut self, n: i64) {
        let begun = Instant::now();
        while self.acknowledged() < n {
            let ended = self.child.try_wait().expect("ours");
            assert!(ended.is_none(), "the writer ended: {ended:?}");
            assert!(begun.elapsed() < PATIENCE, "the writer hangs at {}", self.acknowledged());
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// `kill -9`; the newest commit that was acknowledged.
    pub fn kill(mut self) -> i64 {
        self.end();
        self.acknowledged()
    }

    fn end(&mut self) {
        let ended = self.child.try_wait().expect("ours");
        drop(self.child.kill());
        drop(self.child.wait());
        if let Some(reader) = self.reader.take() {
            drop(reader.join());
        }
        assert!(
            ended.is_none() || std::thread::panicking(),
            "the writer had ended by itself: {ended:?}"
        );
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if self.reader.is_some() {
            self.end();
        }
    }
}

/// What Debian's command-line program answers, run on `path`.
pub fn sqlite3(path: &Path, sql: &str) -> Result<String, String> {
    let output = Command::new("sqlite3")
        .args([OsString::from("-batch"), path.into(), sql.into()])
        .stdin(Stdio::null())
        .output()
        .expect("sqlite3 is installed");
    let error = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if output.status.success() { Ok(text) } else { Err(error) }
}
