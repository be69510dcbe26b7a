//! Stock descriptors of either copy, opened long ago, are refused or see a committed state wherever
//! a writer is killed: between two calls, and within a write, as Linux looks for a deadly signal
//! between two pages of its cache (SHADOW-5).

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking; its numbers are small"
)]

use super::common::sim::{start, tiny};
use super::common::{Content, PAGE, changes, commit, value_of, write};
use dash_shadow::{Connection, Error, OpenOptions};
use dash_simulated::{Machine, OperationKind, Simulated, StockDescriptor};

/// Bytes of a page of the system's cache.
const CACHE_PAGE: u64 = 4096;

/// What stock SQLite sees of a file: `None` if it refuses it.
fn as_stock(bytes: &[u8]) -> Option<Content> {
    if bytes[19] > 2 {
        return None;
    }
    let pages = u32::from_be_bytes(bytes[28..32].try_into().unwrap()) as usize;
    let page = |number: usize| &bytes[(number - 1) * PAGE..number * PAGE];
    let value = |number| value_of(number, page(number), false);
    Some((1..=pages).map(|number| value(number).expect("a torn page")).collect())
}

/// Where a process is killed: at which of its calls that change something, and after how much of
/// it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Moment {
    call: usize,
    cut: u64,
}

/// Kills `process` then. Returns whether it came to that, and how many cuts that call has.
fn kill_at(
    machine: &Machine,
    process: &Simulated,
    moment: Moment,
    act: impl FnOnce(),
) -> Option<u64> {
    let (victim, met) = (process.clone(), std::sync::Arc::new(std::sync::Mutex::new(None)));
    let (mut calls, put) = (0, met.clone());
    machine.watch(move |machine, operation| {
        if !changes(operation.kind) {
            return;
        }
        if calls == moment.call {
            let pages = match (&operation.kind, &operation.range) {
                (OperationKind::Write, Some(range)) => {
                    range.end.div_ceil(CACHE_PAGE) - range.start / CACHE_PAGE
                }
                _ => 1,
            };
            *put.lock().unwrap() = Some(pages);
            match (moment.cut, &operation.range) {
                (0, _) => machine.kill(&victim),
                (cut, Some(range)) => {
                    let first = range.start - range.start % CACHE_PAGE;
                    machine.kill_within(&victim, (first + cut * CACHE_PAGE - range.start) as usize);
                }
                (_, None) => unreachable!("only writes have more than one page"),
            }
        }
        calls += 1;
    });
    act();
    machine.watch(|_, _| {});
    let met = met.lock().unwrap();
    *met
}

/// Every moment of `act`, which may leave the content as it was, or as `new`.
fn every_moment(options: &OpenOptions, act: fn(&mut Connection<Simulated>) -> Result<(), Error>) {
    let old: [Content; 2] = [(0..12).collect(), (0..12).map(|i| 50 + i / 4).collect()];
    let mut moment = Moment { call: 0, cut: 0 };
    let mut refused = 0;
    loop {
        let machine = Machine::new(1);
        let (_p, mut other) = start(&machine, options);
        old.iter().for_each(|content| commit(&mut other, content).unwrap());
        let stock: [StockDescriptor; 2] =
            ["/app.db", "/app.db-shadow"].map(|name| machine.open_stock(name).unwrap());
        let (process, mut victim) = start(&machine, options);
        let pages = kill_at(&machine, &process, moment, || drop(act(&mut victim)));
        for descriptor in stock {
            let seen = as_stock(&descriptor.read_all());
            refused += usize::from(seen.is_none());
            if let Some(seen) = seen {
                assert!(old.contains(&seen) || seen == new(), "{moment:?}: {seen:?}");
            }
        }
        moment = match pages {
            None => break,
            Some(pages) if moment.cut + 1 < pages => Moment { cut: moment.cut + 1, ..moment },
            Some(_) => Moment { call: moment.call + 1, cut: 0 },
        };
    }
    assert!(moment.call > 3 && refused > 3, "{moment:?}, {refused} refused");
}

/// All pages but one differ from those before.
fn new() -> Content {
    (0..12).map(|i| if i == 6 { 51 } else { 100 + i }).collect()
}

#[test]
fn committing() {
    every_moment(&OpenOptions::default(), |victim| commit(victim, &new()));
}

#[test]
fn committing_with_little_memory() {
    every_moment(&tiny(), |victim| commit(victim, &new()));
}

#[test]
fn rolling_back_what_was_prepared() {
    every_moment(&OpenOptions::default(), |victim| {
        write(victim, &new())?;
        victim.prepare(None)?;
        victim.unlock(dash_shadow::LockLevel::None)
    });
}

#[test]
fn settling() {
    every_moment(&OpenOptions::default(), |victim| victim.settle(1).map(drop));
}
