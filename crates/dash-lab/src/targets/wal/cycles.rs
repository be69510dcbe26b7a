//! Open, update one row, close: flushes and bytes, exact, beside stock WAL's.

use super::super::bench::Bench;
use super::super::data::with_rows;
use crate::failure::{Explain, Result};
use crate::numbers::{count, per};
use crate::report::{Section, Target};
use crate::row::Row;
use crate::sides::{DASH_WAL, DURABLE, WAL};

const CYCLES: usize = 200;
const ROWS: i64 = 1000;

/// Makes the section.
pub fn measure(bench: &Bench) -> Result<Section> {
    let cycles = count(bench.many(CYCLES));
    let what = format!(
        "open, one autocommit update, close, {cycles} times, alone, on L; a table of {ROWS} rows"
    );
    let mut section = Section::new("wal-cycles", what, DURABLE);
    let volume = bench.volumes.l()?;
    let folder = volume.folder("wal-cycles")?;
    let mut figures = Vec::new();
    for side in [DASH_WAL, WAL] {
        let path = folder.path().join(side.word);
        let db = with_rows(side, &path, ROWS)?;
        db.close().map_err(|(_, error)| error).explain("closing")?;
        let cycle = |turn: u64| -> Result<()> {
            let db = side.start(&path)?;
            let row = i64::try_from(turn).unwrap_or(0) % ROWS + 1;
            db.execute("UPDATE t SET body = ?1 WHERE id = ?2", (format!("{turn:0100}"), row))
                .explain("updating")?;
            db.close().map_err(|(_, error)| error).explain("closing")
        };
        (0..5).try_for_each(cycle)?;
        volume.settle()?;
        let before = volume.counts()?;
        (5..5 + cycles).try_for_each(cycle)?;
        let counted = volume.counts()?.since(before);
        let name = |row: &Row, what: &str| format!("{}: {what} of a cycle", row.name);
        let (flushes, kib) = (per(counted.flushes, cycles), per(counted.bytes, cycles) / 1024.0);
        section.figure(name(side, "flushes"), flushes, "");
        section.figure(name(side, "bytes"), kib, "KiB");
        figures.push((flushes, kib));
    }
    if let [dash, stock] = figures[..] {
        section.target("flushes, dash / stock WAL", dash.0 / stock.0, "x", Target::AtMost(1.0));
        section.target("bytes, dash / stock WAL", dash.1 / stock.1, "x", Target::AtMost(1.0));
    }
    Ok(section)
}
