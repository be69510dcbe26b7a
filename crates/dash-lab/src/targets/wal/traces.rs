//! Recorded applications: bytes of a commit, beside stock WAL's. Exact; the close after the last is
//! counted, too, with all that is left unwritten then.

use std::path::Path;

use rusqlite::Connection;

use super::super::bench::Bench;
use crate::failure::{Explain, Result};
use crate::numbers::{count, float, per};
use crate::report::{Section, Target};
use crate::row::Row;
use crate::sides::{DASH_WAL, DURABLE, FLOOR, WAL};
use crate::volume::Volume;
use dash_bench::recorded::{Recording, Transaction};

const APPLICATIONS: [&str; 2] = ["facebook", "twitter"];
/// dash's bytes as a share of stock's.
const SHARE: f64 = 0.4;

/// Makes the section.
pub fn measure(bench: &Bench) -> Result<Section> {
    let what = "recordings replayed in one thread, their connections in turns, checkpoints among the commits, on B (blocks of 4 KiB) and L (of 512 bytes)";
    let mut section = Section::new("wal-traces", what, DURABLE);
    let Some(traces) = &bench.traces else {
        section
            .fail("not measured: --traces names the folder that has facebook and twitter".into());
        return Ok(section);
    };
    for name in APPLICATIONS {
        let folder = traces.join(name);
        if !folder.is_dir() {
            section.fail(format!("not measured: there is no {}", folder.display()));
            continue;
        }
        let recording = Recording::read(&folder)?;
        for volume in [bench.volumes.b()?, bench.volumes.l()?] {
            let label = format!("{}: {name}", volume.label);
            let mut kib = Vec::new();
            for side in [DASH_WAL, WAL] {
                kib.push(replay(volume, side, &recording, &label, &mut section)?);
            }
            if let [dash, stock] = kib[..] {
                let title = format!("{label}: bytes, dash / stock WAL");
                section.target(title, dash / stock, "x", Target::AtMost(SHARE));
            }
        }
    }
    Ok(section)
}

/// KiB of a transaction that writes.
fn replay(
    volume: &Volume,
    side: &'static Row,
    recording: &Recording,
    label: &str,
    section: &mut Section,
) -> Result<f64> {
    let folder = volume.folder("wal-traces")?;
    let path = folder.path().join("app.db");
    make(recording, side, &path)?;
    let connections =
        recording.streams.iter().map(|_| side.open(&path)).collect::<Result<Vec<_>>>()?;
    let longest = recording.streams.iter().map(Vec::len).max().unwrap_or(0);
    volume.settle()?;
    let before = volume.counts()?;
    let (mut wrote, mut failed) = (0, 0);
    for at in 0..longest {
        for (db, stream) in connections.iter().zip(&recording.streams) {
            let Some(transaction) = stream.get(at) else { continue };
            let changes = db.total_changes();
            failed += run(db, transaction);
            wrote += u64::from(db.total_changes() != changes);
        }
    }
    let after = volume.counts()?;
    for db in connections {
        db.close().map_err(|(_, error)| error).explain("closing")?;
    }
    volume.settle()?;
    let rest = volume.counts()?.since(after);
    let counted = after.since(before);
    let kib = per(counted.bytes + rest.bytes, wrote) / 1024.0;
    section.figure(format!("{label}: {}", side.name), kib, "KiB");
    section.note(format!(
        "{label}: {}: {wrote} transactions that wrote, {failed} statements that failed; {:.3} flushes, {:.2} KiB while it ran, {:.0} KiB in all for the close and afterwards",
        side.name,
        per(counted.flushes, wrote),
        per(counted.bytes, wrote) / 1024.0,
        float(rest.bytes) / 1024.0
    ));
    Ok(kib)
}

/// The database that a recording starts from, closed.
fn make(recording: &Recording, side: &'static Row, path: &Path) -> Result<()> {
    let db = FLOOR.open(path)?;
    recording.load(&db)?;
    let plain = db.pragma_update_and_check(None, "journal_mode", "DELETE", |_| Ok(()));
    plain.explain("closing the base")?;
    db.close().map_err(|(_, error)| error).explain("closing the base")?;
    side.open(path)?.close().map_err(|(_, error)| error).explain("closing")
}

/// How many of its statements failed: its author's application lived with it.
fn run(db: &Connection, transaction: &Transaction) -> u64 {
    let failed = transaction.iter().filter(|sql| {
        let done = db.prepare(sql).and_then(|mut prepared| {
            let mut rows = prepared.query([])?;
            while rows.next()?.is_some() {}
            Ok(())
        });
        done.is_err()
    });
    count(failed.count())
}
