//! Flushes and bytes per commit, exact: on a loop device that nobody else writes to, counted from
//! the first commit measured to the last.

use super::Bench;
use super::data::{Inserter, with_empty_table};
use crate::device::handed_over;
use crate::engine::{DURABLE, Engine};
use crate::failure::Result;
use crate::numbers::{count, float, per};
use crate::place::Place;
use crate::progress::{Progress, Unit};
use crate::report::{Row, Target};

const COMMITS: usize = 10_000;
/// Commits before the count begins: what the first ones cost once is not what a commit costs.
const WARM: usize = 100;
const KIB: f64 = 1024.0;

const SIDES: [(Engine, f64); 6] = [
    (Engine::Single, 1.0),
    (Engine::Exclusive, 2.0),
    (Engine::Paper, 3.0),
    (Engine::Wal, 0.0),
    (Engine::Persist, 0.0),
    (Engine::Delete, 0.0),
];

/// Makes the row.
pub fn measure(bench: &Bench) -> Result<Row> {
    let commits = bench.many(COMMITS);
    let what = format!(
        "per commit over {commits} autocommit inserts of 100 bytes, one thread, on L (ext4 with a journal) and N (without)"
    );
    let mut row = Row::new("counts", what, DURABLE);
    let place = bench.places.l()?;
    let mut progress = Progress::new("counts", count(2 * commits * SIDES.len()), Unit::Count);
    for place in [place, bench.places.n()?] {
        for (engine, flushes) in SIDES {
            side(&mut row, place, engine, flushes, commits, &mut progress)?;
        }
    }
    row.note("fs: written beyond what the program handed to write calls: journal commits, and whole blocks for parts of them");
    Ok(row)
}

fn side(
    row: &mut Row,
    place: &Place,
    engine: Engine,
    wanted: f64,
    commits: usize,
    progress: &mut Progress,
) -> Result<()> {
    let folder = place.folder(&engine.word())?;
    let db = with_empty_table(engine, &folder.path().join("counts.db"))?;
    let mut insert = Inserter::new(&db)?;
    (0..WARM).try_for_each(|_| insert.step())?;
    place.settle()?;
    let (before, handed) = (place.counts()?, handed_over());
    for done in 0..commits {
        insert.step()?;
        if done % 100 == 0 {
            progress.step(100)?;
        }
    }
    let (after, handed) = (place.counts()?, handed_over() - handed);
    place.settle()?;
    let rest = place.counts()?.since(after);
    let counted = after.since(before);
    let commits = count(commits);
    let name = format!("{}: {}", place.label, engine.name());
    let flushes = per(counted.flushes, commits);
    let kib = per(counted.bytes, commits) / KIB;
    if engine.is_dash() {
        row.target(format!("{name}: flushes"), flushes, "", Target::Within(wanted, 0.01));
    } else {
        row.figure(format!("{name}: flushes"), flushes, "");
    }
    if engine == Engine::Single && place.label == "L" {
        row.target(format!("{name}: written"), kib, "KiB", Target::AtMost(12.5));
    } else {
        row.figure(format!("{name}: written"), kib, "KiB");
    }
    row.note(format!(
        "{name}: {:.2} writes, {:.2} KiB handed to write calls, fs {:+.2} KiB, {:.4} journal commits; left unwritten after the last: {:.1} KiB in all",
        per(counted.writes, commits),
        per(handed, commits) / KIB,
        kib - per(handed, commits) / KIB,
        per(counted.journal_commits, commits),
        float(rest.bytes) / KIB,
    ));
    if engine == Engine::Single {
        row.note(format!("{name}, by its own count: {}", own_counts(&db)));
    }
    Ok(())
}

fn own_counts(db: &rusqlite::Connection) -> String {
    let sql = "SELECT group_concat(name || ' ' || value, ', ') FROM dash_stats WHERE value > 0";
    db.query_row(sql, [], |row| row.get(0)).unwrap_or_default()
}
