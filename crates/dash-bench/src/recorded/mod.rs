//! Recorded SQL, from folders in either of two shapes:
//!
//! - `loading.sql`, run once, and `benchset/*.sql`, one connection each, one statement a line;
//! - plain `*.sql`: those with `load` in their name are run once, each other one is a connection.

mod transactions;

use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::failure::{Explain, Failure, Result};
use crate::split;
pub use transactions::Transaction;

/// A folder's SQL.
pub struct Recording {
    /// What is run once.
    loading: Vec<String>,
    /// One connection each.
    pub streams: Vec<Vec<Transaction>>,
    /// Statements left out: PRAGMAs that set what is compared, such as `synchronous`.
    pub left_out: usize,
}

impl Recording {
    /// Reads a folder.
    ///
    /// # Errors
    ///
    /// If a file can't be read, or there is nothing to replay.
    pub fn read(folder: &Path) -> Result<Self> {
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
        let mut loading = Vec::new();
        for file in &loads {
            loading.extend(split::at_semicolons(&text_of(file)?));
        }
        let mut left_out = 0;
        let mut streams = Vec::new();
        for file in &runs {
            let text = text_of(file)?;
            let statements =
                if by_line { split::at_lines(&text) } else { split::at_semicolons(&text) };
            let all = statements.len();
            let kept: Vec<_> = statements
                .into_iter()
                .filter(|statement| !transactions::is_fixed_setting(statement))
                .collect();
            left_out += all - kept.len();
            streams.push(transactions::into_transactions(kept));
        }
        Ok(Self { loading, streams, left_out })
    }

    /// Makes the database that the recording starts from; how many statements of it failed.
    ///
    /// # Errors
    ///
    /// If the database can't be written at all.
    pub fn load(&self, db: &Connection) -> Result<usize> {
        db.execute_batch(
            "PRAGMA journal_mode=DELETE; PRAGMA synchronous=OFF; PRAGMA foreign_keys=OFF; BEGIN",
        )
        .explain("making the database")?;
        let failed =
            self.loading.iter().filter(|statement| db.execute_batch(statement).is_err()).count();
        let commit = if db.is_autocommit() { "" } else { "COMMIT" };
        db.execute_batch(commit).explain("loading")?;
        Ok(failed)
    }

    /// Transactions of all streams.
    pub fn len(&self) -> usize {
        self.streams.iter().map(Vec::len).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
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
