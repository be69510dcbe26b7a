//! The power goes, or the process, at every step of a log in byte-addressable memory. Of the lines
//! that were stored and not fenced every subset is tried, and lines that tear at chance: what is
//! found are the first records, whole, at least those that were flushed; and the head is one that
//! was written, at least the one that was flushed. LOG-13.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking; its numbers are small"
)]

use super::common::{ID, create_mapped, head, noise};
use dash_log::file::LogFile;
use dash_log::head::Head;
use dash_log::images::Images;
use dash_log::record::{Builder, WINDOW_START};
use dash_log::scan::{Condition, scan};
use dash_simulated::{
    Effect, Enumerate, Everything, Fault, File, Machine, Nothing, OperationKind, Question, Random,
    Survivors,
};
use dash_storage::{Directory, Storage};
use std::ffi::OsStr;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Subsets of lines at one step, at most: a head has eight lines.
const SUBSETS: u64 = 1 << 9;
/// Fates at one step in which lines tear.
const TORN: u64 = 24;

fn name() -> &'static OsStr {
    OsStr::new("app.db-dashlog")
}

fn opened(machine: &Machine) -> LogFile<File> {
    let directory = machine.process().open_directory(Path::new("/")).unwrap();
    LogFile::open(&directory, name()).unwrap().unwrap()
}

/// Every subset of lines, each as it was durable or as it was last.
struct WholeLines(Enumerate);

impl Survivors for WholeLines {
    fn begin(&mut self) {
        self.0.begin();
    }

    fn choose(&mut self, question: Question, answers: usize, newest: usize) -> usize {
        let line = matches!(question, Question::Line { .. });
        self.0.choose(question, if line { 2 } else { answers }, newest)
    }
}

/// What a writer did, as it knows it. Both are numbered from 1.
#[derive(Default, Clone)]
struct Known {
    records: u64,
    records_durable: u64,
    heads: u64,
    heads_durable: u64,
}

/// The content of a record: some are one line long, some several.
fn content(sequence: u64) -> Vec<u8> {
    noise(sequence, 1 + sequence as usize * 61 % 190)
}

/// The session of a writer who goes on after `known`, in a log that is there.
struct Writer<'a> {
    log: LogFile<File>,
    known: &'a Mutex<Known>,
    builder: Builder,
    position: u64,
}

impl<'a> Writer<'a> {
    fn new(log: LogFile<File>, known: &'a Mutex<Known>) -> Self {
        let position = scan(&log).unwrap().end_position;
        Self { log, known, builder: Builder::new(), position }
    }

    fn told(&self, tell: impl FnOnce(&mut Known)) {
        tell(&mut self.known.lock().unwrap());
    }

    /// Heads make nothing void here; their owner tells them apart.
    fn head(&self) {
        self.told(|known| known.heads += 1);
        let owner = self.known.lock().unwrap().heads;
        self.log.write_head(&Head { block: 64, owner, ..head(ID, 0) }).unwrap();
    }

    /// A record with all that was stored before it.
    fn record_and_flush(&mut self) {
        let place = self.build();
        let blocks = self.builder.finish(self.log.block()).unwrap();
        self.log.write_and_flush(blocks, place).unwrap();
        self.told(|known| {
            (known.records_durable, known.heads_durable) = (known.records, known.heads);
        });
    }

    fn record(&mut self, durable: bool) {
        let place = self.build();
        let blocks = self.builder.finish(self.log.block()).unwrap();
        if durable {
            self.log.write_durable(blocks, place).unwrap();
            let sequence = self.known.lock().unwrap().records;
            // The ones before it may be missing: it counts only behind them.
            self.told(|known| {
                if known.records_durable + 1 == sequence {
                    known.records_durable = sequence;
                }
            });
        } else {
            self.log.write(blocks, place).unwrap();
        }
    }

    /// Begins the next record; where it goes.
    fn build(&mut self) -> u64 {
        self.told(|known| known.records += 1);
        let sequence = self.known.lock().unwrap().records;
        let flags = if sequence == 1 { WINDOW_START } else { 0 };
        let image = content(sequence);
        self.builder.set_form(self.log.form());
        self.builder.begin(ID, sequence, flags, image.len() as u32, 0, b"").unwrap();
        self.builder.push(1, b"", None, &image).unwrap();
        let blocks = self.builder.finish(self.log.block()).unwrap();
        let ring = self.log.ring().unwrap();
        let place = ring.next(self.position, blocks.len() as u64).unwrap();
        assert!(place >= self.position, "once round is enough here");
        self.position = place + blocks.len() as u64;
        place
    }

    fn flush(&self) {
        self.log.flush().unwrap();
        self.told(|known| {
            (known.records_durable, known.heads_durable) = (known.records, known.heads);
        });
    }
}

/// A writer makes a log, writes records and heads, with flushes and without.
fn first_writer(machine: &Machine, known: &Mutex<Known>) {
    let directory = machine.process().open_directory(Path::new("/")).unwrap();
    let log = create_mapped(&directory, name(), 0o600, 4 << 10).unwrap().unwrap();
    directory.flush().unwrap();
    let mut writer = Writer::new(log, known);
    writer.head();
    writer.flush();
    for durable in [true, false, true, true] {
        writer.record(durable);
    }
    writer.flush();
    writer.head();
    writer.record(false);
    writer.flush();
    // Two heads without a flush: the second one tears no head that may be all there is.
    writer.head();
    writer.head();
    writer.flush();
    writer.log.grow(8 << 10).unwrap();
    writer.record(false);
    writer.record(false);
    writer.flush();
    // With a head before it, which becomes durable, too, and alone.
    writer.head();
    writer.record_and_flush();
    writer.record_and_flush();
    writer.head();
    writer.record(true);
}

/// A writer who takes over from one that was killed: whatever it finds it makes durable first.
fn second_writer(machine: &Machine, known: &Mutex<Known>) {
    let log = opened(machine);
    let mut writer = Writer::new(log, known);
    writer.head();
    // A flush makes durable what its own process stored.
    writer.log.flush().unwrap();
    writer.told(|known| known.heads_durable = known.heads);
    scan(&writer.log).unwrap().rewrite(&writer.log).unwrap();
    writer.flush();
    writer.record(true);
    writer.head();
    writer.flush();
}

/// Compares what is left with what was written.
fn check(left: &Machine, known: &Known, all: bool) -> Result<(), String> {
    let directory = left.process().open_directory(Path::new("/")).unwrap();
    let Some(log) = LogFile::open(&directory, name()).map_err(|error| error.to_string())? else {
        return if known.heads_durable == 0 { Ok(()) } else { Err("no log".to_owned()) };
    };
    let found = scan(&log).map_err(|error| error.to_string())?;
    let head = if found.condition == Condition::Whole { found.head.owner } else { 0 };
    let least = if all { known.heads.saturating_sub(1) } else { known.heads_durable };
    if found.condition == Condition::Damaged || !(least..=known.heads).contains(&head) {
        return Err(format!("head {head}, {:?}, and {least} is durable", found.condition));
    }
    let count = found.chain.len() as u64;
    let least = if all { known.records.saturating_sub(1) } else { known.records_durable };
    if !(least..=known.records).contains(&count) {
        return Err(format!("{count} records, and {least} are durable"));
    }
    for (number, record) in (1..).zip(found.records()) {
        let record = record.map_err(|error| error.to_string())?;
        let entry = record.entries().next().ok_or("no entry")?;
        let mut images = Images::new(record.unit_bytes);
        let image = images.feed(&entry).map_err(|error| error.to_string())?;
        if record.sequence != number || image != content(number) {
            return Err(format!("record {number} is another one"));
        }
    }
    Ok(())
}

/// What was found wrong, and how often it was looked.
#[derive(Default)]
struct Seen {
    looks: u64,
    /// Steps with more subsets than were tried.
    incomplete: u64,
    wrong: Vec<String>,
}

impl Seen {
    fn look(&mut self, left: &Machine, known: &Known, all: bool, what: &str) {
        self.looks += 1;
        if let Err(wrong) = check(left, known, all) {
            self.wrong.push(format!("{what}: {wrong}"));
        }
    }

    /// All fates of one step.
    fn look_at(&mut self, machine: &Machine, known: &Known, what: &str) {
        // A kill: what was stored is there, but for a part of the very last.
        self.look(&machine.killed(), known, true, what);
        self.look(&machine.power_loss(&mut Nothing), known, false, what);
        self.look(&machine.power_loss(&mut Everything), known, false, what);
        let mut lines = WholeLines(Enumerate::new(SUBSETS));
        while lines.0.advance() {
            self.look(&machine.power_loss(&mut lines), known, false, what);
        }
        self.incomplete += u64::from(!lines.0.is_complete());
        for seed in 0..TORN {
            let mut torn = Random::new(machine.steps() << 8 | seed);
            self.look(&machine.power_loss(&mut torn), known, false, what);
        }
    }
}

/// Runs a writer and looks before each of its steps, and at the end.
fn explored(
    machine: &Machine,
    known: &Arc<Mutex<Known>>,
    writer: fn(&Machine, &Mutex<Known>),
) -> Seen {
    let seen = Arc::new(Mutex::new(Seen::default()));
    let (told, looking) = (Arc::clone(known), Arc::clone(&seen));
    machine.watch(move |machine, operation| {
        let changes = matches!(
            operation.kind,
            OperationKind::Store | OperationKind::Fence | OperationKind::Flush
        );
        let known = told.lock().unwrap().clone();
        if changes && known.heads > 0 {
            let what = format!("step {}, before {}", machine.steps(), operation.kind);
            looking.lock().unwrap().look_at(machine, &known, &what);
        }
    });
    writer(machine, known);
    machine.watch(|_, _| {});
    let known = known.lock().unwrap().clone();
    let mut seen = std::mem::take(&mut *seen.lock().unwrap());
    seen.look_at(machine, &known, "at the end");
    seen
}

fn memory(seed: u64) -> Machine {
    let machine = Machine::new(seed);
    machine.set_byte_addressable();
    machine
}

#[test]
fn of_the_records_at_least_those_that_were_flushed() {
    let known = Arc::new(Mutex::new(Known::default()));
    let seen = explored(&memory(1), &known, first_writer);
    assert_eq!((seen.wrong, seen.incomplete), (vec![], 0));
    assert!(seen.looks > 1000, "{}", seen.looks);
    assert_eq!(known.lock().unwrap().records, 10);
}

#[test]
fn after_a_kill_at_any_step() {
    // LOG-2, LOG-11: also where the dead one's head, or its records, are in the caches only.
    let machine = memory(1);
    let known = Arc::new(Mutex::new(Known::default()));
    let (told, looks) = (Arc::clone(&known), Arc::new(Mutex::new(0)));
    let counted = Arc::clone(&looks);
    machine.watch(move |machine, operation| {
        let at_death = told.lock().unwrap().clone();
        if operation.kind != OperationKind::Fence || at_death.records == 0 {
            return;
        }
        let heir = machine.killed();
        let found = scan(&opened(&heir)).unwrap();
        // What is found counts from now on, or it is not there; what was durable still is.
        let left = Known {
            records: found.chain.len() as u64,
            heads: found.head.owner,
            records_durable: at_death.records_durable,
            heads_durable: at_death.heads_durable,
        };
        let seen = explored(&heir, &Arc::new(Mutex::new(left)), second_writer);
        assert_eq!(seen.wrong, [""; 0]);
        *counted.lock().unwrap() += seen.looks;
    });
    first_writer(&machine, &known);
    machine.watch(|_, _| {});
    assert!(*looks.lock().unwrap() > 5_000, "{looks:?}");
}

/// The check sees what it is for.
#[test]
fn a_medium_without_its_fence_or_its_write_back_is_caught() {
    for left_out in [OperationKind::Fence, OperationKind::WriteBack] {
        let machine = memory(1);
        machine.fail(Fault::new(Effect::LeftOut).on(left_out).forever());
        let seen = explored(&machine, &Arc::default(), first_writer);
        let of = |what: &str| seen.wrong.iter().filter(|wrong| wrong.contains(what)).count();
        assert!(of("records, and") > 10 && of("head 0, ") > 10, "{left_out}: {:?}", seen.wrong);
    }
    // Most of them matter each by itself: not those of what was durable before.
    for left_out in [OperationKind::Fence, OperationKind::WriteBack] {
        let machine = memory(1);
        first_writer(&machine, &Mutex::default());
        let entries = machine.journal().entries;
        let count = entries.iter().filter(|entry| entry.operation.kind == left_out).count();
        let is_caught = |nth: &usize| {
            let machine = memory(1);
            machine.fail(Fault::new(Effect::LeftOut).on(left_out).after(*nth as u64));
            !explored(&machine, &Arc::default(), first_writer).wrong.is_empty()
        };
        let caught = (0..count).filter(is_caught).count();
        assert!(count > 12 && caught * 2 > count, "{left_out}: {caught} of {count}");
    }
}
