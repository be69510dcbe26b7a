//! The table at the end of a demo.

use super::crash::Cut;
use super::measure::{Own, Tally};
use crate::device::{Counts, Device};
use crate::numbers::float;
use crate::out::say;

/// Widths of the columns.
const LABEL: usize = 34;
const COLUMN: usize = 16;

/// Prints everything.
pub fn print(tallies: &[Tally], cuts: &[Cut], device: Option<&Device>) {
    row("", tallies.iter().map(|tally| tally.side.name().to_owned()));
    row("durable transactions", tallies.iter().map(|tally| tally.latency.len().to_string()));
    if tallies.iter().any(|tally| tally.reads > 0) {
        row("transactions that only read", tallies.iter().map(|tally| tally.reads.to_string()));
    }
    row("durable transactions/s", tallies.iter().map(|tally| format!("{:.0}", per_second(tally))));
    for (label, quantile) in [("latency p50", 0.5), ("latency p99", 0.99), ("latency p99.9", 0.999)]
    {
        row(label, tallies.iter().map(|tally| micros(tally.latency.value_at_quantile(quantile))));
    }
    let counted = |figure: fn(&Counts) -> f64| {
        tallies.iter().map(move |tally| {
            tally
                .device
                .as_ref()
                .map_or("n/a".to_owned(), |counts| per_transaction(tally, figure(counts)))
        })
    };
    // One denominator for both counts, the one that is known of stock SQLite too.
    say!("per durable transaction:");
    row("  flushes, at the device", counted(|counts| float(counts.flushes)));
    row("  flushes, by dash's own count", own(tallies, |own| float(own.flushes)));
    row("  KiB, at the device", counted(|counts| float(counts.bytes) / 1024.0));
    row("  KiB, by dash's own count", own(tallies, |own| float(own.bytes) / 1024.0));
    if tallies.iter().any(|tally| tally.failures > 0) {
        row("statements that failed", tallies.iter().map(|tally| tally.failures.to_string()));
    }
    row("writers killed (kill -9)", cuts.iter().map(|cut| cut.kills.to_string()));
    row("  commits acknowledged", cuts.iter().map(|cut| cut.acknowledged.to_string()));
    row("  of those found", cuts.iter().map(|cut| cut.found.to_string()));
    row(
        "  integrity_check",
        cuts.iter().map(|cut| if cut.damage.is_none() { "ok" } else { "DAMAGED" }.to_owned()),
    );
    say!("");
    for tally in tallies {
        for message in &tally.messages {
            say!("{}: failed: {message}", tally.side.name());
        }
    }
    for cut in cuts.iter().filter(|cut| !cut.is_clean()) {
        let damage = cut.damage.as_deref().unwrap_or("commits are missing");
        say!("{}: LOST OR DAMAGED after kill -9: {damage}", cut.side.name());
    }
    match device {
        Some(device) => say!(
            "{} counts for all programs: what others wrote meanwhile is in its figures",
            device.name
        ),
        None => say!(
            "n/a: this folder's disk can't be told or does not count; dash's own counts are of what it asked for"
        ),
    }
}

fn row(label: &str, cells: impl Iterator<Item = String>) {
    let cells: String = cells.map(|cell| format!("{cell:>COLUMN$}")).collect();
    say!("{label:<LABEL$}{cells}");
}

fn own(tallies: &[Tally], figure: fn(&Own) -> f64) -> impl Iterator<Item = String> {
    tallies.iter().map(move |tally| {
        tally.own.as_ref().map_or("-".to_owned(), |own| per_transaction(tally, figure(own)))
    })
}

fn per_transaction(tally: &Tally, figure: f64) -> String {
    match tally.latency.len() {
        0 => "-".to_owned(),
        count => format!("{:.2}", figure / float(count)),
    }
}

fn per_second(tally: &Tally) -> f64 {
    let seconds = tally.elapsed.as_secs_f64();
    if seconds > 0.0 { float(tally.latency.len()) / seconds } else { 0.0 }
}

fn micros(nanos: u64) -> String {
    format!("{:.0} µs", float(nanos) / 1000.0)
}
