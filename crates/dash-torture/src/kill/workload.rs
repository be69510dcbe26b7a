//! Transactions that leave traces from which one look tells whether a state was ever committed:
//! commit n of a worker counts in its own row and in a row that all share, adds a row n whose bytes
//! are known, and removes the row of [`KEPT`] commits ago.

use rusqlite::{Connection, params};

use crate::random::{Dice, mix};
use crate::sqlite::{self, Wrong};

/// Workers that may write.
pub const SLOTS: usize = 6;
/// Rows of a worker that stay.
const KEPT: u64 = 12;

/// How many commits of each worker a state has.
pub type State = Vec<u64>;

/// The tables, without any commit.
pub fn make(db: &Connection) -> rusqlite::Result<()> {
    db.execute_batch(
        "BEGIN; CREATE TABLE counters(worker INTEGER PRIMARY KEY, n INTEGER, pad);
         CREATE TABLE total(n INTEGER); INSERT INTO total VALUES (0);
         CREATE TABLE entries(worker INTEGER, n INTEGER, body BLOB, sum INTEGER, PRIMARY KEY(worker, n));
         CREATE INDEX sums ON entries(sum)",
    )?;
    for slot in 0..SLOTS {
        // A page for each, so that a commit touches several.
        db.execute("INSERT INTO counters VALUES (?, 0, zeroblob(3000))", [signed(slot as u64)])?;
    }
    db.execute_batch("COMMIT")
}

/// SQLite's integers have a sign; what is kept here never needs it, or needs the bits only.
fn signed(number: u64) -> i64 {
    i64::from_ne_bytes(number.to_ne_bytes())
}

fn body(worker: u64, n: u64, len: usize) -> Vec<u8> {
    let mut state = mix(worker << 32 ^ n);
    let words = std::iter::repeat_with(|| {
        state = mix(state);
        state.to_le_bytes()
    });
    words.flatten().take(len).collect()
}

fn sum(body: &[u8]) -> i64 {
    signed(body.iter().fold(0xcbf2_9ce4_8422_2325, |sum, &byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    }))
}

/// Begins and does the next transaction of a worker, all but the `COMMIT`; its number.
pub fn work(db: &Connection, slot: usize, dice: &mut Dice) -> rusqlite::Result<u64> {
    db.execute_batch(if dice.below(4) == 0 { "BEGIN" } else { "BEGIN IMMEDIATE" })?;
    let worker = slot as u64;
    let n = 1 + newest(db, slot)?;
    if dice.below(10) == 0 {
        // Taken back at once, after it has spilled out of SQLite's cache.
        db.execute_batch(
            "SAVEPOINT s; INSERT INTO entries VALUES (-1, -1, zeroblob(400000), 0);
             UPDATE entries SET sum = -1; ROLLBACK TO s; RELEASE s",
        )?;
    }
    db.execute("UPDATE counters SET n = ? WHERE worker = ?", params![signed(n), signed(worker)])?;
    db.execute_batch("UPDATE total SET n = n + 1")?;
    let len = match dice.below(40) {
        0 => 150_000,
        1..=6 => 9_000,
        _ => 100,
    };
    let body = body(worker, n, len);
    db.execute(
        "INSERT INTO entries VALUES (?, ?, ?, ?)",
        params![signed(worker), signed(n), body, sum(&body)],
    )?;
    db.execute(
        "DELETE FROM entries WHERE worker = ? AND n <= ?",
        params![signed(worker), signed(n.saturating_sub(KEPT))],
    )?;
    Ok(n)
}

/// Writes what must never be seen, and takes it back.
pub fn work_in_vain(db: &Connection, slot: usize, dice: &mut Dice) -> rusqlite::Result<()> {
    work(db, slot, dice)?;
    db.execute_batch(
        "UPDATE counters SET n = -7; UPDATE entries SET sum = 0, body = zeroblob(length(body)); ROLLBACK",
    )
}

/// The number of a worker's newest commit; a negative one was never committed, and becomes a large
/// one.
pub fn newest(db: &Connection, slot: usize) -> rusqlite::Result<u64> {
    let n: i64 =
        db.query_row("SELECT n FROM counters WHERE worker = ?", [signed(slot as u64)], |row| {
            row.get(0)
        })?;
    Ok(u64::try_from(n).unwrap_or(u64::MAX))
}

/// The state that a read transaction sees, or why it is none.
pub fn state(db: &Connection) -> Result<State, Wrong> {
    let mut counters = db.prepare_cached("SELECT n FROM counters ORDER BY worker")?;
    let counted: Vec<i64> =
        counters.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    let state: State = counted.iter().filter_map(|&n| u64::try_from(n).ok()).collect();
    let total: i64 = db.query_row("SELECT n FROM total", [], |row| row.get(0))?;
    if state.len() != SLOTS || counted.iter().sum::<i64>() != total {
        return Err(Wrong::Content(format!("counters {counted:?} beside a total of {total}")));
    }
    let mut expected = (0u64..).zip(&state).flat_map(|(worker, &n)| {
        (n.saturating_sub(KEPT) + 1..=n).map(move |number| (worker, number))
    });
    let mut entries =
        db.prepare_cached("SELECT worker, n, body, sum FROM entries ORDER BY worker, n")?;
    let mut rows = entries.query([])?;
    while let Some(row) = rows.next()? {
        let (worker, n): (i64, i64) = (row.get(0)?, row.get(1)?);
        let (bytes, stated): (Vec<u8>, i64) = (row.get(2)?, row.get(3)?);
        match expected.next() {
            Some((slot, number)) if (signed(slot), signed(number)) == (worker, n) => {
                if sum(&bytes) != stated || bytes != body(slot, number, bytes.len()) {
                    return Err(Wrong::Content(format!(
                        "row {n} of worker {worker} has other bytes"
                    )));
                }
            }
            other => {
                return Err(Wrong::Content(format!(
                    "row {n} of worker {worker} where {other:?} belongs, with counters {counted:?}"
                )));
            }
        }
    }
    match expected.next() {
        None => Ok(state),
        missing => Err(Wrong::Content(format!("row {missing:?} is missing of {counted:?}"))),
    }
}

/// [`state`], and SQLite's own opinion.
pub fn sound_state(db: &Connection) -> Result<State, Wrong> {
    sqlite::sound(db, state)
}
