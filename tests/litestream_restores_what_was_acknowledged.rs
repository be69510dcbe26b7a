//! Litestream copies a database in mode wal while dash writes it. Writer and Litestream are killed
//! again and again: what is restored is a committed state, and has every commit that was
//! acknowledged before the last `litestream sync -wait`. examples/litestream/README.md says how.

mod suite;

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use dash_testing::machine::runs;
use dash_testing::names::{beside, exists};
use dash_testing::roles::start;
use dash_testing::{Need, skip};
use suite::peers::{Part, Writer};
use suite::{check, one, open_dash, stock, workload};

/// Litestream as it comes, which opens databases with an SQLite of its own.
const LITESTREAM: &str = "litestream";
/// What lets it write and checkpoint.
const PARAMETERS: &str = "&journal_mode=wal&dash_stock=checkpoint";
/// Bytes that `-wal` may have.
const WAL_MAX: u64 = 64 << 20;
/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often somebody is killed.
const ROUNDS: u64 = 10;

fn is_here() -> bool {
    let here = runs(LITESTREAM, &["version"]);
    if !here {
        skip(Need::Litestream, "litestream is not installed");
    }
    here
}

/// A folder with a database, and its copy.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Self { folder: tempfile::tempdir().expect("a folder") };
        // It checkpoints early, so that a test sees it.
        let settings = format!(
            "socket: {{enabled: true, path: {}}}\n\
             dbs:\n\
             - path: {}\n\
             \x20 monitor-interval: 50ms\n\
             \x20 min-checkpoint-page-count: 200\n\
             \x20 replica: {{path: {}, sync-interval: 50ms}}\n",
            place.at("socket").display(),
            place.database().display(),
            place.at("copy").display(),
        );
        std::fs::write(place.at("settings.yml"), settings).expect("room");
        place
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn database(&self) -> PathBuf {
        self.at("app.db")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(LITESTREAM);
        command.args(arguments).stdin(Stdio::null());
        command
    }

    /// Begins to replicate.
    fn replicate(&self) -> Replicating<'_> {
        drop(std::fs::remove_file(self.at("socket")));
        let said = File::options().append(true).create(true).open(self.at("said"));
        let said = said.expect("a file");
        let mut command = self.command(&["replicate", "-config"]);
        command.arg(self.at("settings.yml"));
        command.stdout(said.try_clone().expect("a file")).stderr(said);
        let replicating = Replicating { place: self, child: start(&mut command) };
        wait_for("its socket", || exists(&self.at("socket")));
        replicating
    }

    /// Has a Litestream that was away take a snapshot: it does not always notice what it missed.
    fn empty_the_wal(&self) {
        let db = stock(&self.database());
        wait_for("an empty -wal", || {
            db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0)) == Ok(0)
        });
    }

    /// What it has said so far.
    fn said(&self) -> String {
        std::fs::read_to_string(self.at("said")).unwrap_or_default()
    }

    /// The number of the state that a restore gives.
    fn restored(&self) -> i64 {
        let path = self.at("restored.db");
        for ending in ["", "-wal", "-shm"] {
            drop(std::fs::remove_file(beside(&path, ending)));
        }
        let copy = format!("file://{}", self.at("copy").display());
        let mut command = self.command(&["restore", "-o"]);
        let output = command.arg(&path).arg(copy).output().expect("it runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let db = stock(&path);
        check(&db);
        workload::state(&db)
    }
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

struct Replicating<'a> {
    place: &'a Place,
    child: Child,
}

impl Replicating<'_> {
    fn sync_once(&self) -> Output {
        let mut command = self.place.command(&["sync", "-wait", "-socket"]);
        command.arg(self.place.at("socket")).arg(self.place.database()).output().expect("it runs")
    }

    /// Returns when what is committed now is in the copy.
    fn sync(&self) {
        let mut last = String::new();
        let begun = Instant::now();
        loop {
            let output = self.sync_once();
            if output.status.success() {
                return;
            }
            // It has just been started, or the writer was faster.
            last.clear();
            last += &String::from_utf8_lossy(&output.stderr);
            assert!(begun.elapsed() < PATIENCE, "{last}\n{}", self.place.said());
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Replicating<'_> {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The writer, Litestream, or both are killed, and restored. Nothing is prepared but what each
/// start of Litestream needs beside any SQLite.
#[test]
fn with_a_litestream_as_it_comes() {
    if !is_here() {
        return;
    }
    let place = Place::new();
    let path = place.database();
    let db = open_dash(path.as_os_str(), PARAMETERS).expect("opens");
    workload::make(&db);
    db.close().expect("closes");
    let parameters = format!("{PARAMETERS}&dash_durability=full");
    let part = Part { parameters: &parameters, ..Part::default() };

    let mut writer = Some(Writer::start(&path, part));
    let mut litestream = None;
    for round in 0..ROUNDS {
        let writing = writer.get_or_insert_with(|| Writer::start(&path, part));
        writing.reaches(0);
        let replicating = litestream.get_or_insert_with(|| {
            place.empty_the_wal();
            place.replicate()
        });
        std::thread::sleep(Duration::from_millis(round * 137 % 400));
        // The durable copy point.
        let copied = writing.acknowledged();
        replicating.sync();
        std::thread::sleep(Duration::from_millis(round * 59 % 200));
        let len = std::fs::metadata(beside(&path, "-wal")).map_or(0, |wal| wal.len());
        assert!(len <= WAL_MAX, "round {round}: -wal has {len} bytes");

        let kills_litestream = round % 3 != 0;
        let kills_writer = round % 3 != 1;
        if kills_litestream {
            litestream = None;
        }
        // A writer that lives is ahead of every restore.
        let acknowledged = match kills_writer {
            true => writer.take().expect("started").kill(),
            false => i64::MAX - 1,
        };
        let restored = place.restored();
        assert!(
            (copied..=acknowledged + 1).contains(&restored),
            "round {round}: {restored} restored, {copied} copied, {acknowledged} acknowledged: {}",
            place.said()
        );
    }
    drop((writer, litestream));
    let db = open_dash(path.as_os_str(), PARAMETERS).expect("opens");
    check(&db);
    let sequence = one::<i64>(&db, "SELECT coalesce(max(seq), 0) FROM _litestream_seq");
    // One by which it makes sure of a -wal, and one for each of its checkpoints.
    assert!(sequence > 2, "it made no checkpoint ({sequence}): {}", place.said());
}
