//! What connections in mode shadow do at a moment, for `sqlite-dash top`. Since when they do it is
//! not known, nor how many bytes they write.

use std::ops::Range;
use std::path::Path;

use dash_storage::real::Real;

use crate::failure::{Explain, Result};
use crate::holders;
use crate::out::Shown;
use crate::top::moment::{Moment, Party, Reader};

/// The byte of the coordination file that whoever writes has locked.
const WRITER: Range<u64> = 1..2;

/// Looks.
pub fn watch(path: &Path) -> Result<Option<Moment>> {
    let seen = dash_shadow::watch(&Real, path).explain(format!("looking at {}", path.shown()))?;
    let Some(seen) = seen else { return Ok(None) };
    let mut waits: Vec<_> =
        seen.connections.iter().filter_map(|it| Some((it.ticket?, it.process))).collect();
    waits.sort_unstable();
    let reader = |process, kind, commits_behind| Reader {
        process,
        kind,
        age: None,
        kept_bytes: None,
        commits_behind,
    };
    let ours = seen.connections.iter().filter_map(|it| {
        let commits_behind = seen.sequence.saturating_sub(it.reads?);
        Some(reader(Some(it.process), "dash", Some(commits_behind)))
    });
    let stock = seen.stock_readers.iter().map(|process| reader(*process, "stock", None));
    let writer = seen.writing.then(|| {
        let held = holders::of(seen.file);
        let is_writer = |held: &&holders::Held| held.exclusive && held.meets(&WRITER);
        Party { process: held.iter().find(is_writer).map(|held| held.process), age: None }
    });
    Ok(Some(Moment {
        mode: "shadow",
        now: seen.now,
        session: seen.file,
        commits: seen.commits,
        connections: seen.connections.len(),
        stock: None,
        writer,
        checkpoint: None,
        queue: waits
            .into_iter()
            .map(|(_, process)| Party { process: Some(process), age: None })
            .collect(),
        readers: ours.chain(stock).collect(),
        recent: None,
        recent_limit: 0,
    }))
}
