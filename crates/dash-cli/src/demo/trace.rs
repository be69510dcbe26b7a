//! Recorded SQL, from folders in either of two shapes:
//!
//! - `loading.sql`, run once, and `benchset/*.sql`, one connection each, one statement a line;
//! - plain `*.sql`: those with `load` in their name are run once, each other one is a connection.

use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::transactions;
use super::workload::Workload;
use crate::failure::{Explain, Failure, Result};
use crate::split;

/// Reads a folder and makes the database that its recording starts from.
pub fn read(folder: &Path, base: &Path) -> Result<Workload> {
    let benchset = folder.join("benchset");
    let by_line = benchset.is_dir();
    let plain = files(folder)?;
    let (loads, rest): (Vec<_>, Vec<_>) = plain.into_iter().partition(|file| {
        file.file_name().is_some_and(|name| name.to_string_lossy().contains("load"))
    });
    let runs = if by_line { files(&benchset)? } else { rest };
    if runs.is_empty() {
        return Err(Failure::new(format!(
            "{} has nothing to replay: neither benchset/*.sql nor *.sql beside the loading one",
            folder.display()
        )));
    }
    let failed = load(&loads, base)?;
    let mut left_out = 0;
    let mut streams = Vec::new();
    for file in &runs {
        let text = text_of(file)?;
        let statements = if by_line { split::at_lines(&text) } else { split::at_semicolons(&text) };
        let all = statements.len();
        let kept: Vec<_> = statements
            .into_iter()
            .filter(|statement| !transactions::is_fixed_setting(statement))
            .collect();
        left_out += all - kept.len();
        streams.push(transactions::into_transactions(kept));
    }
    let mut title = format!(
        "the SQL recorded in {}: {} transactions on {} connection{}",
        folder.display(),
        streams.iter().map(Vec::len).sum::<usize>(),
        streams.len(),
        if streams.len() == 1 { "" } else { "s at the same time" },
    );
    if failed > 0 {
        title.push_str(&format!("\n{failed} statements of the loading files failed"));
    }
    if left_out > 0 {
        title.push_str(&format!("\n{left_out} statements were left out: PRAGMAs that set what is compared here, such as synchronous"));
    }
    Ok(Workload { title, base: base.to_owned(), streams })
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).explain(format!("reading {}", folder.display()))?;
    let mut files: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.is_file() && path.extension().is_some_and(|extension| extension == "sql")
        })
        .collect();
    files.sort();
    Ok(files)
}

fn text_of(file: &Path) -> Result<String> {
    let bytes = std::fs::read(file).explain(format!("reading {}", file.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Runs the loading files; returns how many statements failed.
fn load(files: &[PathBuf], base: &Path) -> Result<usize> {
    let db = Connection::open(base).explain("making the database")?;
    db.execute_batch(
        "PRAGMA journal_mode=DELETE; PRAGMA synchronous=OFF; PRAGMA foreign_keys=OFF; BEGIN",
    )
    .explain("making the database")?;
    let mut failed = 0;
    for file in files {
        for statement in split::at_semicolons(&text_of(file)?) {
            failed += usize::from(db.execute_batch(&statement).is_err());
        }
    }
    let commit = if db.is_autocommit() { "" } else { "COMMIT" };
    db.execute_batch(commit).explain("loading")?;
    Ok(failed)
}
