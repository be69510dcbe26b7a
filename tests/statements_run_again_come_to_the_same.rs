//! Random programs, recorded and cut off: what is recovered is what a run without the cut has, and
//! what was recorded comes to the same when it is run again, or there is a reason. What is called
//! provable comes to the same pages, always (`STATEMENT-6`).
//!
//! With `DASH_LONG=1` there are more of them, with `DASH_PROGRAMS` so many. It says how many there
//! were.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

use std::path::Path;

use dash_statement::Unprovable;
use dash_testing::extension;
use rusqlite::Connection;

mod programs;

use programs::{Language, PLAIN, RICH, Random, as_killed, dump, pages, program, programs, run};

fn open(path: &Path, parameters: &str) -> Connection {
    Connection::open(format!("file:{}?vfs=dash&journal_mode=wal{parameters}", path.display()))
        .unwrap()
}

#[derive(Debug, Default)]
struct Told {
    programs: u64,
    run: u64,
    not_run: usize,
    other_pages: u64,
    divergences: usize,
    provable: u64,
    /// Transactions with a statement that changed no row, as those that found the database locked.
    unconfirmed: u64,
}

impl Told {
    fn add(&mut self, report: &dash_replay::Report) {
        self.programs += 1;
        self.run += report.run();
        self.not_run += report.not_run.len();
        self.other_pages += report.same_content;
        self.divergences += report.divergences.len();
        self.provable += report.provable;
        self.unconfirmed += report.unprovable.get(&Unprovable::Unconfirmed).copied().unwrap_or(0);
    }
}

/// One program; what became of it.
fn story(seed: u64, language: &Language, told: &mut Told) {
    let folder = tempfile::tempdir().unwrap();
    let (path, program) = (folder.path().join("app.db"), program(seed, language));
    let text = ["slack", "full"][usize::try_from(seed % 2).unwrap()];
    let db = open(&path, &format!("&dash_statements=on&dash_statement_text={text}"));
    let stock = Connection::open_in_memory().unwrap();
    for db in [&db, &stock] {
        let settings = (language.settings)(seed);
        db.execute_batch(&format!("PRAGMA wal_autocheckpoint=0; {settings}; {}", language.schema))
            .unwrap();
        run(db, &program);
    }
    assert_eq!(dump(&db), dump(&stock), "seed {seed}: dash and stock SQLite");
    let killed = as_killed(folder.path());
    let cut = killed.path().join("app.db");
    let report = dash_replay::replay(&cut, None, false)
        .unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    for it in &report.divergences {
        println!("seed {seed}, frame {}: {}: {}", it.commit.frames.1, it.what, it.reason);
        assert!(!it.reason.starts_with("nothing that is recorded"), "seed {seed}: no reason");
    }
    assert_eq!(report.provable, report.provable_same, "seed {seed}: not provable after all");
    assert!(report.not_run.iter().all(|it| !it.reason.is_empty()), "seed {seed}");
    drop(db);
    drop(open(&cut, ""));
    assert_eq!(dump(&Connection::open(&cut).unwrap()), dump(&stock), "seed {seed}: after the cut");
    assert!(pages(&cut) == pages(&path), "seed {seed}: pages after the cut");
    told.add(&report);
}

/// The same program by two connections, which are in each other's way.
fn story_of_two(seed: u64, told: &mut Told) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let [one, other] = [1, 2].map(|_| open(&path, "&dash_statements=on&dash_statement_text=full"));
    one.execute_batch(PLAIN.schema).unwrap();
    let mut random = Random(seed | 1);
    for db in [&one, &other] {
        db.execute_batch("PRAGMA wal_autocheckpoint=0").unwrap();
        db.busy_timeout(std::time::Duration::ZERO).unwrap();
    }
    for step in program(seed, &PLAIN) {
        run(random.of(&[&one, &other]), &[step]);
    }
    for db in [&one, &other] {
        run(db, &[("COMMIT", Vec::new())]);
    }
    let killed = as_killed(folder.path());
    let cut = killed.path().join("app.db");
    let report = dash_replay::replay(&cut, None, false)
        .unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    assert_eq!(report.provable, report.provable_same, "seed {seed}: not provable after all");
    drop(open(&cut, ""));
    assert_eq!(dump(&Connection::open(&cut).unwrap()), dump(&one), "seed {seed}: after the cut");
    told.add(&report);
}

#[test]
fn random_programs() {
    extension::load();
    let (mut told, programs) = (Told::default(), programs());
    // In 295 a statement is prepared again within a transaction.
    for seed in (1..=programs).chain([295]) {
        story(seed, &RICH, &mut told);
    }
    println!("{told:?}");
    assert!(programs > 25 || told.divergences == 0, "{told:?}: these come to the same");
    assert!(told.run > 4 * told.programs, "{told:?}: hardly any commit was run again");
}

/// `STATEMENT-6`
#[test]
fn random_programs_of_which_most_is_provable() {
    extension::load();
    let (mut told, programs) = (Told::default(), programs());
    (1..=programs).for_each(|seed| story(seed, &PLAIN, &mut told));
    println!("{told:?}");
    assert!(told.divergences == 0, "{told:?}: these come to the same");
    assert!(3 * told.provable > told.run, "{told:?}: hardly any commit was provable");
}

/// `STATEMENT-6`: a statement that found the database locked did nothing, and its transaction may
/// go on.
#[test]
fn random_programs_of_two_connections() {
    extension::load();
    let (mut told, programs) = (Told::default(), programs());
    (1..=programs).for_each(|seed| story_of_two(seed, &mut told));
    println!("{told:?}");
    assert!(told.provable > told.programs && told.unconfirmed > 0, "{told:?}: hardly in the way");
}
