//! Recorded SQL as a workload of the demo.

use std::path::Path;

use dash_bench::recorded::Recording;
use rusqlite::Connection;

use super::workload::{Statement, Workload};
use crate::failure::{Explain, Result};

/// Reads a folder and makes the database that its recording starts from.
pub fn read(folder: &Path, base: &Path) -> Result<Workload> {
    let recording = Recording::read(folder)?;
    let db = Connection::open(base).explain("making the database")?;
    let failed = recording.load(&db)?;
    db.close().map_err(|(_, error)| error).explain("making the database")?;
    let mut title = format!(
        "the SQL recorded in {}: {} transactions on {} connection{}",
        folder.display(),
        recording.len(),
        recording.streams.len(),
        if recording.streams.len() == 1 { "" } else { "s at the same time" },
    );
    if failed > 0 {
        title.push_str(&format!("\n{failed} statements of the loading files failed"));
    }
    if recording.left_out > 0 {
        title.push_str(&format!("\n{} statements were left out: PRAGMAs that set what is compared here, such as synchronous", recording.left_out));
    }
    let plain = |sql| Statement { sql, values: Vec::new() };
    let streams = recording
        .streams
        .into_iter()
        .map(|stream| {
            stream.into_iter().map(|group| group.into_iter().map(plain).collect()).collect()
        })
        .collect();
    Ok(Workload { title, base: base.to_owned(), streams })
}
