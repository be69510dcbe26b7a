//! What connections in mode wal do at a moment, for `sqlite-dash top`.

use std::path::Path;

use dash_storage::real::Real;
use dash_wal::{LockEntry, LockName};

use crate::failure::{Explain, Result};
use crate::out::Shown;
use crate::top::moment::{Commit, Moment, Party, Reader};

/// Commits that the engine keeps in its list.
const KEPT: usize = 1000;

/// Looks.
pub fn watch(path: &Path) -> Result<Option<Moment>> {
    let seen = dash_wal::watch(&Real, path).explain(format!("looking at {}", path.shown()))?;
    let Some(seen) = seen else { return Ok(None) };
    let age = |since: u64| seen.now.saturating_sub(since);
    let party = |entry: &LockEntry| Party { process: entry.process, age: entry.since.map(age) };
    let holder = |lock: LockName| {
        seen.locks.iter().find(|entry| entry.lock == lock && entry.place == 0).map(party)
    };
    let waits = seen.locks.iter().filter(|entry| entry.place > 0);
    let readers = seen.readers.iter().map(|reader| Reader {
        process: reader.process,
        kind: if reader.is_ours { "dash" } else { "stock" },
        age: reader.since.map(age),
        kept_bytes: reader.kept_bytes,
        commits_behind: None,
    });
    let recent = seen.recent.iter().map(|commit| Commit {
        at: commit.at,
        wal_bytes: seen.frame_bytes.map(|bytes| bytes * u64::from(commit.frames)),
        record: commit.record.map(|record| (record.bytes, record.commits)),
        flush: commit.flush,
    });
    Ok(Some(Moment {
        mode: "wal",
        now: seen.now,
        session: seen.file,
        commits: seen.commits,
        connections: seen.connections,
        stock: Some(seen.stock.name()),
        writer: holder(LockName::Writer),
        checkpoint: holder(LockName::Checkpoint),
        queue: waits.map(party).collect(),
        readers: readers.collect(),
        recent: Some(recent.collect()),
        recent_limit: KEPT,
    }))
}
