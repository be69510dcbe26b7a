//! What a session asks of an engine is enough for one that has numbers for commits and an image for
//! each: where the log lies, when it begins, who flushes for whom, and what a failed flush means is
//! nothing that it has to know.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::common::noise;
use dash_engine::error::{Error, Result};
use dash_log::file::LogFile;
use dash_log::record::WINDOW_START;
use dash_log::scan::{Scan, scan};
use dash_log::session::{
    Batch, Counts, Engine, LeaderOf, Means, MemoryOf, Names, Place, Session, Word, Words, commit,
};
use dash_simulated::{Effect, Fault, File, Machine, OperationKind, Simulated};
use dash_storage::{Directory, File as _, LockKind, OpenMode, SharedMemory, Storage};
use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

const PAGE: usize = 512;

/// The last commit that is durable, and the last one that is visible.
const DURABLE: usize = 0;
const VISIBLE: usize = 1;

type Memory = <File as dash_storage::File>::Memory;

struct Toy {
    session: Session<Simulated, ()>,
    file: File,
    memory: Arc<Memory>,
    /// How far it was flushed without the log.
    elsewhere: Vec<u32>,
}

impl Toy {
    /// Another process that has the database open.
    fn open(machine: &Machine) -> Self {
        let storage = machine.process();
        let home = Arc::new(storage.open_directory(Path::new("/")).unwrap());
        let open =
            |name| home.open(OsStr::new(name), OpenMode::Create { permissions: 0o600 }).unwrap();
        let (database, file) = (Arc::new(open("app.db")), open("words"));
        let memory = Arc::new(file.shared_memory(64).unwrap());
        let session = Session {
            path: "/".into(),
            place: Place::beside(&home, Names::of(OsStr::new("app.db")), Some(&database)),
            leading: Arc::default(),
            words: Words::new(Arc::clone(&memory), |word| 8 + word as usize),
            counts: Counts::default(),
            ring: 16 << 10..=32 << 10,
            makes_elsewhere: false,
            otherwise: "commits are elsewhere".to_owned(),
            notice: None,
            unasked: None,
            storage,
        };
        Self { session, file, memory, elsewhere: Vec::new() }
    }

    fn get(&self, word: usize) -> u32 {
        u32::try_from(self.memory.word(word).load(SeqCst)).unwrap()
    }

    /// Makes one more commit visible.
    fn write(&self) -> u32 {
        self.memory.word(VISIBLE).fetch_add(1, SeqCst);
        self.get(VISIBLE)
    }

    fn commit(&mut self) {
        let number = self.write();
        commit(self, number, Means::Flush).unwrap();
        assert!(self.get(DURABLE) >= number);
    }
}

impl Engine for Toy {
    type Storage = Simulated;
    type Kept = ();

    fn session(&mut self) -> &mut Session<Simulated, ()> {
        &mut self.session
    }

    fn lock(&self) -> Result<bool> {
        Ok(self.file.try_lock(0..1, LockKind::Exclusive).unwrap())
    }

    fn unlock(&self) -> Result<()> {
        self.file.unlock(0..1).unwrap();
        Ok(())
    }

    fn check_sound(&self) -> Result<()> {
        Ok(())
    }

    fn end_fence(&mut self) -> Result<()> {
        Ok(())
    }

    fn guard(&mut self) -> Result<()> {
        self.session.flush_home()
    }

    fn check_begun(&self, _: &Error) -> Result<()> {
        Ok(())
    }

    fn lost(&self) -> Error {
        Error::Busy
    }

    fn is_written(&self, upto: u32) -> bool {
        self.get(DURABLE) >= upto
    }

    fn note_written(&self, last: u32) {
        self.memory.word(DURABLE).fetch_max(last.into(), SeqCst);
    }

    fn batch(&mut self, _: u32) -> Result<Batch> {
        let (first, last) = (self.get(DURABLE) + 1, self.get(VISIBLE));
        Ok(Batch { page: u32::try_from(PAGE).unwrap(), first, last })
    }

    fn goes_without_log(&mut self, _: Batch) -> bool {
        self.session.words.is(Word::Without)
    }

    fn build(&mut self, leader: &mut LeaderOf<Self>, batch: Batch) -> Result<Option<u32>> {
        let flags = if self.session.words.is(Word::Window) { 0 } else { WINDOW_START };
        let context = batch.last.to_le_bytes();
        self.session.begin_record(leader, flags, batch.page, 0, &context)?;
        for number in batch.first..=batch.last {
            leader.builder.push(number, &[], None, &noise(number.into(), PAGE))?;
        }
        Ok(Some(batch.last - batch.first + 1))
    }

    fn seal(&mut self) -> Result<()> {
        Ok(())
    }

    fn publish(_: &MemoryOf<Self>, (): &()) {}

    fn note_record(&mut self, _: Batch, _: u32, _: u64) {}

    fn flush_elsewhere(&mut self, _: &mut LeaderOf<Self>, last: u32) -> Result<()> {
        self.elsewhere.push(last);
        self.session.words.set(Word::Window, 0);
        self.note_written(last);
        Ok(())
    }

    fn flush_beside_leader(&mut self) -> Result<()> {
        Ok(())
    }
}

/// What recovery would take.
fn found(machine: &Machine) -> Scan {
    let home = machine.process().open_directory(Path::new("/")).unwrap();
    scan(&LogFile::open(&home, OsStr::new("app.db-dashlog")).unwrap().unwrap()).unwrap()
}

fn commits(found: &Scan) -> Vec<u32> {
    found.records().map(|record| record.unwrap().count).collect()
}

#[test]
fn each_commit_is_a_record_and_a_flush() {
    let machine = Machine::new(1);
    let mut toy = Toy::open(&machine);
    (0..5).for_each(|_| toy.commit());
    assert_eq!(commits(&found(&machine)), [1; 5]);
    let counts = toy.session.counts;
    assert_eq!((counts.records, counts.flushes, toy.elsewhere.len()), (5, 5, 0));
}

#[test]
fn one_flushes_what_others_have_written() {
    let machine = Machine::new(1);
    let (mut toy, mut other) = (Toy::open(&machine), Toy::open(&machine));
    toy.commit();
    let number = toy.write();
    other.commit();
    commit(&mut toy, number, Means::Flush).unwrap();
    assert_eq!(commits(&found(&machine)), [1, 2]);
    assert_eq!((toy.session.counts.records, other.session.counts.records), (1, 1));
}

#[test]
fn a_full_ring_and_a_failed_flush_end_the_window() {
    let machine = Machine::new(1);
    let mut toy = Toy::open(&machine);
    (0..40).for_each(|_| toy.commit());
    assert!(toy.session.counts.wraps > 0 && toy.session.counts.growths > 0);
    machine.fail(Fault::new(Effect::Error(5)).on(OperationKind::Flush));
    let before = toy.elsewhere.len();
    toy.commit();
    assert_eq!(toy.elsewhere[before..], [41]);
    let notice = toy.session.notice.take().unwrap();
    assert!(
        notice.ends_with("; commits are elsewhere, where app.db-dashlog can't be used"),
        "{notice}"
    );
    toy.commit();
    assert_eq!((commits(&found(&machine)), toy.session.notice), (vec![1], None));
}
