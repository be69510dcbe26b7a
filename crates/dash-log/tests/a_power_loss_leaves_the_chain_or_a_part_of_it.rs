//! The power goes, or the process, at every step of a log that goes round its ring, begins windows
//! and grows. What was flushed is found, always; what is found was written, as it was written.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking; its numbers are small"
)]

use super::common;
use super::common::{ID, UNIT, create_mapped, head, noise};
use dash_log::file::LogFile;
use dash_log::format::Form;
use dash_log::images::Images;
use dash_log::record::{Builder, WINDOW_START};
use dash_log::scan::{Scan, scan};
use dash_simulated::{Effect, Everything, Fault, Machine, Nothing, OperationKind, Random};
use dash_storage::{Blocks, Directory, Storage};
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::{Arc, Mutex};

const UNITS: u32 = 5;

/// What a writer did, as it knows it.
#[derive(Default, Clone)]
struct Known {
    /// Records of the window as written: sequence, images of its entries.
    window: VecDeque<(u64, Vec<Vec<u8>>)>,
    /// Those of the window before, as long as the new one's beginning is not durable.
    before: VecDeque<(u64, Vec<Vec<u8>>)>,
    /// Greatest sequence that a flush is known to have made durable.
    durable: u64,
}

fn name() -> &'static OsStr {
    OsStr::new("app.db-dashlog")
}

fn opened(machine: &Machine) -> LogFile<dash_simulated::File> {
    let directory = machine.process().open_directory(Path::new("/")).unwrap();
    LogFile::open(&directory, name()).unwrap().unwrap()
}

/// Writes some sixty records into a ring that holds about twelve, and grows it once.
fn run(machine: &Machine, seed: u64, known: &Mutex<Known>) {
    let directory = machine.process().open_directory(Path::new("/")).unwrap();
    // In memory, if the machine has some.
    let log = match create_mapped(&directory, name(), 0o600, 12 << 10).unwrap() {
        Some(log) => log,
        None => LogFile::create(&directory, name(), 0o600, 12 << 10, Form::Sectors).unwrap(),
    };
    log.write_head(&head(ID, 0)).unwrap();
    log.flush().unwrap();
    directory.flush().unwrap();
    let mut places: VecDeque<(u64, u64)> = VecDeque::new();
    let (mut images, mut builder) = (Images::new(UNIT as u32), Builder::new());
    let mut position = 0;
    for sequence in 1..60 {
        let drawn = noise(seed ^ sequence << 8, 8);
        let start_anew = sequence == 1 || drawn[0] < 40;
        let mut flags = if start_anew { WINDOW_START } else { 0 };
        if start_anew {
            images.clear();
        }
        let mut made = record(&mut builder, sequence, flags, &mut images, &drawn);
        if sequence == 40 {
            log.grow(16 << 10).unwrap();
        }
        let ring = log.ring().unwrap();
        let mut len = builder.finish(log.block()).unwrap().len() as u64;
        let oldest = places.front().map(|place| place.0);
        if !start_anew && !ring.free(oldest, position, len) {
            images.clear();
            flags = WINDOW_START;
            made = record(&mut builder, sequence, flags, &mut images, &drawn);
            len = builder.finish(log.block()).unwrap().len() as u64;
        }
        if flags != 0 {
            // The old window stays until the new one's beginning is durable. An engine makes it
            // durable elsewhere first: here it is forgotten instead, where there is no room.
            let mut known = known.lock().unwrap();
            known.before = std::mem::take(&mut known.window);
            if !ring.free(oldest, position, len) {
                known.before.clear();
            }
            places.clear();
        }
        let place = ring.next(position, len).unwrap();
        known.lock().unwrap().window.push_back((sequence, made));
        let blocks = builder.finish(log.block()).unwrap();
        if drawn[1] < 60 {
            log.write_durable(blocks, place).unwrap();
        } else {
            log.write(blocks, place).unwrap();
            log.flush().unwrap();
        }
        position = place + len;
        places.push_back((place, len));
        let mut known = known.lock().unwrap();
        known.durable = sequence;
        known.before.clear();
    }
}

/// Fills the builder with a record of a few changed images; returns these.
fn record(
    builder: &mut Builder,
    sequence: u64,
    flags: u16,
    images: &mut Images,
    drawn: &[u8],
) -> Vec<Vec<u8>> {
    builder.begin(ID, sequence, flags, UNIT as u32, 8, &sequence.to_le_bytes()).unwrap();
    let mut made = Vec::new();
    for step in 0..u32::from(drawn[2] % 4) {
        let unit = u32::from(drawn[3]).wrapping_mul(step + 7) % UNITS;
        let old = images.image_of(unit).unwrap().map(<[u8]>::to_vec);
        let mut new = old.clone().unwrap_or_else(|| vec![0; UNIT]);
        let at = usize::from(drawn[4]).wrapping_mul(step as usize + 1) % 200;
        let len = 30 + usize::from(drawn[5]);
        new[at..at + len].copy_from_slice(&noise(sequence << 3 | u64::from(step), len));
        builder.push(unit, &sequence.to_be_bytes(), old.as_deref(), &new).unwrap();
        images.set(unit, &new).unwrap();
        made.push(new);
    }
    made
}

/// Compares what is found with what was written. LOG-1, LOG-2, LOG-4, LOG-10.
fn check(found: &Scan, known: &Known, durable: bool) {
    let chain: Vec<_> = found.chain.iter().map(|place| place.sequence).collect();
    if durable {
        assert!(found.greatest >= known.durable, "{} of {}", found.greatest, known.durable);
    }
    let window = [&known.window, &known.before]
        .into_iter()
        .find(|window| window.front().map(|first| first.0) == chain.first().copied());
    let Some(window) = window else {
        // The window that began is not there, and what was before it is gone.
        assert!(known.window.front().is_none_or(|first| first.0 > known.durable), "{chain:?}");
        return;
    };
    if known.window.front().is_some_and(|first| first.0 <= known.durable) && durable {
        assert_eq!(window.front().unwrap().0, known.window.front().unwrap().0);
    }
    let mut images = Images::new(UNIT as u32);
    for (record, written) in found.records().map(Result::unwrap).zip(window) {
        assert_eq!((record.sequence, record.context), (written.0, &written.0.to_le_bytes()[..]));
        assert_eq!(record.count as usize, written.1.len());
        for (entry, image) in record.entries().zip(&written.1) {
            assert_eq!(images.feed(&entry).unwrap(), image);
        }
    }
    assert!(chain.len() <= window.len());
    let of_it = window.iter().filter(|record| record.0 <= known.durable).count();
    assert!(!durable || chain.len() >= of_it, "{chain:?} of {of_it}");
}

fn survives(seed: u64, machine: &Machine) -> u64 {
    let known = Arc::new(Mutex::new(Known::default()));
    let (told, mut random) = (Arc::clone(&known), Random::new(seed));
    let looks = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&looks);
    machine.watch(move |machine, operation| {
        let known = told.lock().unwrap().clone();
        if known.window.is_empty() || matches!(operation.kind, OperationKind::Metadata) {
            return;
        }
        // A kill: all that was written is in the cache.
        check(&scan(&opened(machine)).unwrap(), &known, true);
        for _ in 0..4 {
            check(&scan(&opened(&machine.power_loss(&mut random))).unwrap(), &known, true);
        }
        check(&scan(&opened(&machine.power_loss(&mut Nothing))).unwrap(), &known, true);
        check(&scan(&opened(&machine.power_loss(&mut Everything))).unwrap(), &known, true);
        *counted.lock().unwrap() += 1;
    });
    run(machine, seed, &known);
    machine.watch(|_, _| {});
    let known = known.lock().unwrap().clone();
    let last = scan(&opened(&machine.power_loss(&mut Nothing))).unwrap();
    assert_eq!(last.chain.len(), known.window.len());
    *looks.lock().unwrap()
}

#[test]
fn at_every_step() {
    let mut looks = 0;
    for seed in 0..24 {
        for (direct, tearing) in [(Some(512), 512), (Some(4096), 512), (None, 4096)] {
            let machine = Machine::new(seed);
            machine.set_direct(direct);
            machine.set_tearing_unit(tearing);
            looks += survives(seed, &machine);
        }
    }
    assert!(looks > 3000, "{looks}");
}

#[test]
fn at_every_step_in_memory() {
    let mut looks = 0;
    for seed in 0..12 {
        let machine = Machine::new(seed);
        machine.set_byte_addressable();
        looks += survives(seed, &machine);
    }
    assert!(looks > 1000, "{looks}");
}

#[test]
fn what_was_not_flushed_may_be_lost_although_it_was_found() {
    // LOG-2: a scan of the cache vouches for nothing, and nothing does after a flush that failed.
    for fails in [false, true] {
        let machine = Machine::new(3);
        let directory = machine.process().open_directory(Path::new("/")).unwrap();
        let log = LogFile::create(&directory, name(), 0o600, 12 << 10, Form::Sectors).unwrap();
        log.write_head(&head(ID, 0)).unwrap();
        log.flush().unwrap();
        directory.flush().unwrap();
        // From memory that is never aligned: an allocation may be, by chance.
        let record = common::record(ID, 1, WINDOW_START, 40);
        let mut memory = Blocks::try_new(record.len() + 1).unwrap();
        memory[1..].copy_from_slice(&record);
        log.write(&memory[1..], 0).unwrap_err();
        let mut builder = Builder::new();
        builder.begin(ID, 1, WINDOW_START, 512, 0, &[]).unwrap();
        log.write(builder.finish(log.block()).unwrap(), 0).unwrap();
        assert_eq!(scan(&log).unwrap().chain.len(), 1);
        if fails {
            machine.fail(Fault::new(Effect::LostFlush(5)).on(OperationKind::Flush));
            assert!(log.flush().is_err());
            machine.stop_failing();
            assert!(log.flush().is_ok());
            assert_eq!(scan(&log).unwrap().chain.len(), 1);
        }
        assert_eq!(scan(&opened(&machine.power_loss(&mut Nothing))).unwrap().chain.len(), 0);
    }
}

#[test]
fn while_it_is_made_there_is_nothing_in_it() {
    for seed in 0..40 {
        let machine = Machine::new(seed);
        let mut random = Random::new(seed);
        machine.watch(move |machine, _| {
            let after = machine.power_loss(&mut random);
            let directory = after.process().open_directory(Path::new("/")).unwrap();
            if let Some(log) = LogFile::open(&directory, name()).unwrap() {
                let found = scan(&log).unwrap();
                assert_eq!((found.chain.len(), found.greatest), (0, 0));
            }
        });
        let directory = machine.process().open_directory(Path::new("/")).unwrap();
        LogFile::create(&directory, name(), 0o600, 12 << 10, Form::Sectors).unwrap();
        directory.flush().unwrap();
        machine.watch(|_, _| {});
    }
}

#[test]
fn what_is_written_again_can_be_flushed() {
    // LOG-2: also where the flush of a dead writer was lost, and in larger blocks than its own.
    for block in [Some(512), Some(4096), None] {
        let machine = Machine::new(5);
        let directory = machine.process().open_directory(Path::new("/")).unwrap();
        let log = LogFile::create(&directory, name(), 0o600, 12 << 10, Form::Sectors).unwrap();
        log.write_head(&head(ID, 0)).unwrap();
        log.flush().unwrap();
        directory.flush().unwrap();
        let mut builder = Builder::new();
        let mut position = 512;
        for sequence in 1..6 {
            let flags = if sequence == 1 { WINDOW_START } else { 0 };
            builder.begin(ID, sequence, flags, 700, 0, &[]).unwrap();
            builder.push(7, &[], None, &noise(sequence, 700)).unwrap();
            let blocks = builder.finish(512).unwrap();
            log.write(blocks, position).unwrap();
            position += blocks.len() as u64;
        }
        machine.fail(Fault::new(Effect::LostFlush(5)).on(OperationKind::Flush));
        assert!(log.flush().is_err());
        machine.stop_failing();
        let before = log.read_all().unwrap();
        machine.set_direct(block);
        let log = opened(&machine);
        let found = scan(&log).unwrap();
        assert_eq!(found.chain.len(), 5);
        found.rewrite(&log).unwrap();
        log.flush().unwrap();
        let after = opened(&machine.power_loss(&mut Nothing));
        assert_eq!(scan(&after).unwrap().chain, found.chain, "{block:?}");
        assert!(after.read_all().unwrap() == before);
    }
}
