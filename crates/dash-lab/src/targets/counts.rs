//! Flushes and bytes per commit, exact: on a loop device that nobody else writes to, counted from
//! the first commit measured to the last.

use super::bench::Bench;
use super::data::{Inserter, with_empty_table};
use crate::device::handed_over;
use crate::failure::Result;
use crate::numbers::{count, float, per};
use crate::progress::{Progress, Unit};
use crate::report::{Section, Target};
use crate::row::Row;
use crate::sides::{DELETE, DURABLE, EXCLUSIVE, PAPER, PERSIST, SINGLE, WAL};
use crate::volume::Volume;

const COMMITS: usize = 10_000;
/// Commits before the count begins: what the first ones cost once is not what a commit costs.
const WARM: usize = 100;
const KIB: f64 = 1024.0;

const SIDES: [(&Row, f64); 6] =
    [(SINGLE, 1.0), (EXCLUSIVE, 2.0), (PAPER, 3.0), (WAL, 0.0), (PERSIST, 0.0), (DELETE, 0.0)];

/// Makes the section.
pub fn measure(bench: &Bench) -> Result<Section> {
    let commits = bench.many(COMMITS);
    let what = format!(
        "per commit over {commits} autocommit inserts of 100 bytes, one thread, on L (ext4 with a journal) and N (without)"
    );
    let mut section = Section::new("counts", what, DURABLE);
    let volume = bench.volumes.l()?;
    let mut progress = Progress::new("counts", count(2 * commits * SIDES.len()), Unit::Count);
    for volume in [volume, bench.volumes.n()?] {
        for (engine, flushes) in SIDES {
            count_side(&mut section, volume, engine, flushes, commits, &mut progress)?;
        }
    }
    section.note("fs: written beyond what the program handed to write calls: journal commits, and whole blocks for parts of them");
    Ok(section)
}

fn count_side(
    section: &mut Section,
    volume: &Volume,
    engine: &'static Row,
    wanted: f64,
    commits: usize,
    progress: &mut Progress,
) -> Result<()> {
    let folder = volume.folder(engine.word)?;
    let db = with_empty_table(engine, &folder.path().join("counts.db"))?;
    let mut insert = Inserter::new(&db)?;
    (0..WARM).try_for_each(|_| insert.step())?;
    volume.settle()?;
    let (before, handed) = (volume.counts()?, handed_over());
    for done in 0..commits {
        insert.step()?;
        if done % 100 == 0 {
            progress.step(100)?;
        }
    }
    let (after, handed) = (volume.counts()?, handed_over() - handed);
    volume.settle()?;
    let rest = volume.counts()?.since(after);
    let counted = after.since(before);
    let commits = count(commits);
    let name = format!("{}: {}", volume.label, engine.name);
    let flushes = per(counted.flushes, commits);
    let kib = per(counted.bytes, commits) / KIB;
    if wanted > 0.0 {
        section.target(format!("{name}: flushes"), flushes, "", Target::Within(wanted, 0.01));
    } else {
        section.figure(format!("{name}: flushes"), flushes, "");
    }
    if engine == SINGLE && volume.label == "L" {
        section.target(format!("{name}: written"), kib, "KiB", Target::AtMost(12.5));
    } else {
        section.figure(format!("{name}: written"), kib, "KiB");
    }
    section.note(format!(
        "{name}: {:.2} writes, {:.2} KiB handed to write calls, fs {:+.2} KiB, {:.4} journal commits; left unwritten after the last: {:.1} KiB in all",
        per(counted.writes, commits),
        per(handed, commits) / KIB,
        kib - per(handed, commits) / KIB,
        per(counted.journal_commits, commits),
        float(rest.bytes) / KIB,
    ));
    if engine == SINGLE {
        section.note(format!("{name}, by its own count: {}", own_counts(&db)));
    }
    Ok(())
}

fn own_counts(db: &rusqlite::Connection) -> String {
    let sql = "SELECT group_concat(name || ' ' || value, ', ') FROM dash_stats \
               WHERE typeof(value) = 'integer' AND value > 0";
    db.query_row(sql, [], |row| row.get(0)).unwrap_or_default()
}
