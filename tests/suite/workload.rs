//! Transactions from which one statement tells a committed state from a mix of two: commit n writes
//! n into rows on many pages, and adds the row n to a log.

use rusqlite::Connection;

/// Rows that every commit changes; about a dozen pages.
const ROWS: i64 = 60;

/// One row: the n in all rows (or -1 where they disagree), the length and the end of the log.
pub const STATE: &str = "SELECT (SELECT CASE WHEN count(DISTINCT n) = 1 AND count(*) = 60 THEN max(n) ELSE -1 END FROM spread), \
     (SELECT count(*) FROM log), (SELECT coalesce(max(n), 0) FROM log)";

/// The tables, in state 0.
pub fn make(db: &Connection) {
    db.execute_batch(&format!(
        "BEGIN; CREATE TABLE spread(id INTEGER PRIMARY KEY, n, pad); CREATE TABLE log(n INTEGER PRIMARY KEY, pad); \
         WITH RECURSIVE i(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM i WHERE x < {ROWS}) \
         INSERT INTO spread SELECT x, 0, zeroblob(700) FROM i; COMMIT"
    ))
    .expect("makes the tables");
}

/// The commit after the newest; some grow the file, some are large, some follow a rollback.
pub fn commit_next(db: &Connection) -> rusqlite::Result<i64> {
    db.execute_batch("BEGIN IMMEDIATE")?;
    let n =
        1 + db.query_row("SELECT coalesce(max(n), 0) FROM log", [], |row| row.get::<_, i64>(0))?;
    if n % 5 == 0 {
        db.execute("INSERT INTO log VALUES (?, zeroblob(100000))", [n])?;
        db.execute_batch("UPDATE spread SET n = -2; ROLLBACK; BEGIN IMMEDIATE")?;
    }
    if db.query_row("SELECT coalesce(max(n), 0) FROM log", [], |row| row.get::<_, i64>(0))? != n - 1
    {
        // Another writer was faster.
        db.execute_batch("ROLLBACK")?;
        return commit_next(db);
    }
    db.execute("UPDATE spread SET n = ?", [n])?;
    let size = if n % 7 == 0 { 60_000 } else { 40 };
    db.execute("INSERT INTO log VALUES (?, zeroblob(?))", [n, size])?;
    db.execute_batch("COMMIT")?;
    Ok(n)
}

/// The number of a committed state, from the answer to [`STATE`]; panics at a mix.
pub fn number(answer: &str) -> i64 {
    let numbers: Vec<i64> =
        answer.split([',', '|']).map(|text| text.trim().parse().expect(answer)).collect();
    assert!(
        numbers.len() == 3 && numbers.iter().all(|number| *number == numbers[0]),
        "a mix of states: {answer}"
    );
    numbers[0]
}

/// The number of the state that `db` sees; panics at a mix or at damage.
pub fn state(db: &Connection) -> i64 {
    let row = |row: &rusqlite::Row<'_>| {
        Ok(format!("{},{},{}", row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))
    };
    let answer = db.query_row(STATE, [], row).unwrap_or_else(|error| {
        panic!("reading the state: {error}; {}", super::peers::last_error())
    });
    super::check(db);
    number(&answer)
}
