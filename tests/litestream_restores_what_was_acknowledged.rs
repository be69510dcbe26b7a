//! Litestream copies a database in mode wal while dash writes it. Writer and Litestream are killed
//! again and again: what is restored is a committed state, and has every commit that was
//! acknowledged before the last `litestream sync -wait`. examples/litestream/README.md says how.

mod suite;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use dash_testing::extension::library;
use dash_testing::machine::runs;
use dash_testing::names::{beside, exists};
use dash_testing::roles::start;
use dash_testing::{Need, skip};
use suite::peers::{Part, Writer};
use suite::{check, one, open, stock, workload};

/// Litestream as it comes, which opens databases with an SQLite of its own.
const STOCK: &str = "litestream";
/// Litestream as `examples/litestream/build.sh` makes it, which opens them through dash.
const THROUGH_DASH: &str = "litestream-dash";
/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often somebody is killed.
const ROUNDS: u64 = 10;

/// What Litestream looks for, as dash has to make it where Litestream can't write.
const TABLES: &str = "CREATE TABLE IF NOT EXISTS _litestream_seq(id INTEGER PRIMARY KEY, seq INTEGER); \
     CREATE TABLE IF NOT EXISTS _litestream_lock(id INTEGER)";

fn is_here(program: &str) -> bool {
    let here = runs(program, &["version"]);
    if !here {
        skip(Need::Litestream, &format!("{program} is not installed"));
    }
    here
}

/// A folder with a database, its copy, and the program that makes it.
struct Place {
    folder: tempfile::TempDir,
    program: &'static str,
}

impl Place {
    fn new(program: &'static str) -> Self {
        let place = Self { folder: tempfile::tempdir().expect("a folder"), program };
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
        let mut command = Command::new(self.program);
        command.args(arguments).env("DASH_LIBRARY", library()).stdin(Stdio::null());
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

/// Empties `-wal`: a Litestream that was away takes a snapshot then.
fn empty_the_wal(path: &Path) {
    let db = open(path);
    wait_for("an empty -wal", || one::<i64>(&db, "PRAGMA wal_checkpoint(TRUNCATE)") == 0);
}

/// Kills the writer, Litestream, or both, and restores.
fn rounds(program: &'static str) {
    let place = Place::new(program);
    let path = place.database();
    let is_stock = program == STOCK;
    let db = open(&path);
    db.execute_batch("PRAGMA journal_mode=wal").expect("a mode");
    workload::make(&db);
    if is_stock {
        db.execute_batch(TABLES).expect("makes tables");
    }
    db.close().expect("closes");
    let part = Part { parameters: "&dash_durability=full", ..Part::default() };

    let mut writer = Some(Writer::start(&path, part));
    let mut litestream = None;
    for round in 0..ROUNDS {
        if litestream.is_none() {
            if is_stock {
                empty_the_wal(&path);
            }
            litestream = Some(place.replicate());
        }
        let writing = writer.get_or_insert_with(|| Writer::start(&path, part));
        let replicating = litestream.as_ref().expect("started");
        writing.reaches(0);
        std::thread::sleep(Duration::from_millis(round * 137 % 400));
        // The durable copy point.
        let copied = writing.acknowledged();
        replicating.sync();
        std::thread::sleep(Duration::from_millis(round * 59 % 200));

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
            "{program}, round {round}: {restored} restored, {copied} copied, {acknowledged} \
             acknowledged"
        );
    }
    drop((writer, litestream));
    let db = open(&path);
    check(&db);
    let sequence = one::<i64>(&db, "SELECT coalesce(max(seq), 0) FROM _litestream_seq");
    // One by which it makes sure of a -wal, and one for each of its checkpoints.
    assert!(is_stock || sequence > 2, "it made no checkpoint ({sequence}): {}", place.said());
}

#[test]
fn with_a_litestream_as_it_comes() {
    if is_here(STOCK) {
        rounds(STOCK);
    }
}

#[test]
fn with_a_litestream_that_opens_databases_through_dash() {
    if is_here(THROUGH_DASH) {
        rounds(THROUGH_DASH);
    }
}

/// While Litestream is away, commits go through a checkpoint, and the next one begins `-wal` anew.
fn while_it_is_away(program: &'static str) {
    let place = Place::new(program);
    let db = open(&place.database());
    db.execute_batch("PRAGMA journal_mode=wal; PRAGMA wal_autocheckpoint=0").expect("a mode");
    workload::make(&db);
    db.execute_batch(TABLES).expect("makes tables");
    db.execute_batch(
        "CREATE TABLE away(id INTEGER PRIMARY KEY, n, pad); \
         WITH RECURSIVE i(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM i WHERE x < 60) \
         INSERT INTO away SELECT x, 0, zeroblob(3000) FROM i",
    )
    .expect("makes a table");
    let litestream = place.replicate();
    litestream.sync();
    drop(litestream);
    db.execute_batch("UPDATE away SET n = 1 WHERE id < 5").expect("commits");
    assert_eq!(one::<i64>(&db, "PRAGMA wal_checkpoint(RESTART)"), 0);
    let mut newest = workload::commit_next(&db).expect("commits");
    if program == STOCK {
        empty_the_wal(&place.database());
        // An empty -wal is one that it wants to write itself.
        newest = workload::commit_next(&db).expect("commits");
    }
    let litestream = place.replicate();
    litestream.sync();
    assert_eq!(place.restored(), newest);
    let restored = stock(&place.at("restored.db"));
    assert_eq!(one::<i64>(&restored, "SELECT sum(n) FROM away"), 4);
}

#[test]
fn commits_made_while_it_was_away_are_copied() {
    for program in [STOCK, THROUGH_DASH] {
        if is_here(program) {
            while_it_is_away(program);
        }
    }
}

#[test]
fn a_litestream_as_it_comes_waits_for_its_tables() {
    if !is_here(STOCK) {
        return;
    }
    let place = Place::new(STOCK);
    let db = open(&place.database());
    db.execute_batch("PRAGMA journal_mode=wal").expect("a mode");
    workload::make(&db);
    let litestream = place.replicate();
    wait_for("a refusal", || place.said().contains("database is locked"));
    assert!(!litestream.sync_once().status.success());
    db.execute_batch(TABLES).expect("makes tables");
    let newest = workload::commit_next(&db).expect("commits");
    litestream.sync();
    assert_eq!(place.restored(), newest);
}
