//! Other processes, because the locks of one process don't conflict with each other: stock SQLite
//! (Debian's Python where it is installed, so that it is another build, too) and dash, both driven
//! line by line; and a dash writer that commits until it is killed.
//!
//! A dash process is this test program again, told by an environment variable which part to play.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::{names, sandbox, workload};

/// Before every line of ours: the test harness prints lines of its own.
const MARK: char = '\u{1}';
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

/// What a dash process does besides.
#[derive(Debug, Clone, Copy, Default)]
pub struct Part<'a> {
    /// URI parameters, such as `&dash_commit=paper`.
    pub parameters: &'a str,
    /// Becomes this user.
    pub user: Option<u32>,
    /// Runs where the kernel can't exchange two names.
    pub no_exchange: bool,
    /// Relative to this folder are paths.
    pub folder: Option<&'a Path>,
}

/// This program again, in a part.
fn again(role: &str, path: &Path, part: Part<'_>) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("a test has a path"));
    command.args(["--exact", "suite::peers::another_process_plays_its_part", "--nocapture"]);
    command
        .env("DASH_SUITE_ROLE", role)
        .env("DASH_SUITE_FILE", path)
        .env("DASH_SUITE_PARAMETERS", part.parameters);
    if let Some(user) = part.user {
        command.env("DASH_SUITE_USER", user.to_string());
    }
    if part.no_exchange {
        command.env("DASH_SUITE_NO_EXCHANGE", "1");
    }
    if let Some(folder) = part.folder {
        command.current_dir(folder);
    }
    command
}

#[test]
fn another_process_plays_its_part() {
    let Some(role) = std::env::var_os("DASH_SUITE_ROLE") else {
        return;
    };
    let file = std::env::var_os("DASH_SUITE_FILE").expect("a path");
    if role != "stock" {
        super::load();
    }
    if std::env::var_os("DASH_SUITE_NO_EXCHANGE").is_some() {
        sandbox::forbid_exchange();
    }
    if let Ok(user) = std::env::var("DASH_SUITE_USER") {
        sandbox::become_user(user.parse().expect("a number"));
    }
    let opened = match role.to_str() {
        Some("stock") => Connection::open(Path::new(&file)),
        _ => names::open_dash(&file, &std::env::var("DASH_SUITE_PARAMETERS").unwrap_or_default()),
    };
    match (role.to_str(), opened) {
        (Some("writer"), Ok(db)) => write_for_ever(&db),
        (Some("writer"), Err(error)) => panic!("the writer opens: {error}; {}", last_error()),
        (_, Ok(db)) => {
            answer(Ok(String::new()));
            answer_lines(&db);
        }
        (_, Err(error)) => answer(Err(format!("{error}; {}", last_error()))),
    }
}

/// What dash said last in this process.
pub fn last_error() -> String {
    super::load();
    let db = Connection::open_in_memory().expect("memory");
    db.query_row("SELECT dash_last_error()", [], |row| row.get::<_, Option<String>>(0))
        .ok()
        .flatten()
        .unwrap_or_default()
}

fn answer(answer: Result<String, String>) {
    let (kind, text) = match answer {
        Ok(text) => ("ok", text),
        Err(text) => ("no", text.replace('\n', " ")),
    };
    println!("{MARK}{kind}\t{text}");
}

fn answer_lines(db: &Connection) {
    for line in std::io::stdin().lines() {
        let line = line.expect("text");
        answer(run(db, &line).map_err(|error| error.to_string()));
    }
}

fn run(db: &Connection, sql: &str) -> rusqlite::Result<String> {
    let mut statement = db.prepare(sql)?;
    let columns = statement.column_count();
    let mut rows = statement.query([])?;
    let mut lines = Vec::new();
    while let Some(row) = rows.next()? {
        let values = (0..columns).map(|column| {
            Ok(match row.get::<_, rusqlite::types::Value>(column)? {
                rusqlite::types::Value::Text(text) => text,
                rusqlite::types::Value::Integer(number) => number.to_string(),
                other => format!("{other:?}"),
            })
        });
        lines.push(values.collect::<rusqlite::Result<Vec<_>>>()?.join(","));
    }
    Ok(lines.join("|"))
}

fn write_for_ever(db: &Connection) {
    db.busy_timeout(Duration::from_secs(20)).expect("sets");
    loop {
        let n = workload::commit_next(db)
            .unwrap_or_else(|error| panic!("commits: {error:?}; {}", last_error()));
        println!("{MARK}ok\t{n}");
    }
}

/// A process that answers SQL, one statement a line.
pub struct Session {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Session {
    /// Stock SQLite on `path`; nothing of dash is in that process.
    pub fn stock(path: &Path) -> Self {
        let mut command = Command::new(PYTHON);
        command.args(["-c", STOCK]).arg(path);
        let probe = Command::new(PYTHON).args(["-c", "import sqlite3"]).output();
        if !probe.is_ok_and(|probe| probe.status.success()) {
            command = again("stock", path, Part::default());
        }
        Self::begin(command).expect("stock SQLite opens")
    }

    /// A dash connection; the error of opening it, followed by `dash_last_error()`.
    pub fn dash(path: &Path, part: Part<'_>) -> Result<Self, String> {
        Self::begin(again("session", path, part))
    }

    fn begin(mut command: Command) -> Result<Self, String> {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("starts");
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
}

impl Drop for Session {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
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
        let mut child = again("writer", path, part)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("starts");
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

/// The arguments of Debian's command-line program, run on `path`; `None` if it is not installed.
pub fn sqlite3(path: &Path, sql: &str) -> Option<Result<String, String>> {
    let output = Command::new("sqlite3")
        .args([OsString::from("-batch"), path.into(), sql.into()])
        .stdin(Stdio::null())
        .output();
    let output = output.ok()?;
    let error = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    Some(if output.status.success() { Ok(text) } else { Err(error) })
}
