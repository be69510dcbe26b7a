//! Tables of 100-byte rows, and numbers that repeat in every run.

use rusqlite::Connection;

use crate::failure::{Explain, Result};

/// Bytes that such a row takes in the file, about.
const ROW_ON_DISK: u64 = 115;

/// How many rows make so many bytes, at least a few.
pub fn rows_of(bytes: u64) -> i64 {
    i64::try_from(bytes / ROW_ON_DISK).unwrap_or(i64::MAX).max(10)
}

/// How many bytes so many rows make.
pub fn bytes_of(rows: i64) -> u64 {
    u64::try_from(rows).unwrap_or(0) * ROW_ON_DISK
}

/// A table of rows of 100 bytes, in place of one of this name: a copy of a user's database may have
/// such a one.
pub fn fill(db: &Connection, table: &str, rows: i64) -> Result<()> {
    db.execute_batch(&format!(
        "DROP TABLE IF EXISTS {table};
         CREATE TABLE {table} (id INTEGER PRIMARY KEY, body TEXT NOT NULL)"
    ))
    .explain("making a table")?;
    add(db, table, 1, rows)
}

/// Rows `first` to `last`, those of them that are not there.
pub fn add(db: &Connection, table: &str, first: i64, last: i64) -> Result<()> {
    let sql = format!(
        "INSERT OR IGNORE INTO {table} SELECT value, printf('%0100d', value) FROM
         (WITH RECURSIVE n(value) AS (SELECT ?1 WHERE ?1 <= ?2 UNION ALL SELECT value + 1 FROM n WHERE value < ?2)
          SELECT value FROM n)"
    );
    db.execute(&sql, [first, last]).map(drop).explain("filling a table")
}

/// A hundred bytes that differ with `number`: a write of what is there already would be skipped.
pub fn body(number: u64) -> String {
    format!("{number:0100}")
}

/// Every number from 1 to `rows` once, without locality, then again.
#[derive(Debug, Clone)]
pub struct Permutation {
    rows: u64,
    stride: u64,
    at: u64,
}

impl Permutation {
    /// Starts.
    pub fn new(rows: i64) -> Self {
        let rows = u64::try_from(rows).unwrap_or(1).max(1);
        // Near the golden section of it: neighbours in time are far apart in place.
        let mut stride = (rows * 618 / 1000).max(1);
        while greatest_common_divisor(stride, rows) != 1 {
            stride += 1;
        }
        Self { rows, stride, at: 0 }
    }

    /// The next number.
    pub fn next(&mut self) -> i64 {
        self.at = (self.at + self.stride) % self.rows;
        i64::try_from(self.at + 1).unwrap_or(1)
    }
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permutation_meets_every_number_once() {
        for rows in [1, 2, 10, 1024, 60_000] {
            let mut permutation = Permutation::new(rows);
            let mut seen: Vec<i64> = (0..rows).map(|_| permutation.next()).collect();
            seen.sort_unstable();
            assert!(seen.into_iter().eq(1..=rows), "{rows}");
        }
    }
}
