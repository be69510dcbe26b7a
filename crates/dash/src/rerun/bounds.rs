//! What statements that are run again may ask SQLite for at most, and how much of it.

use core::cell::Cell;
use core::ffi::CStr;
use std::time::{Duration, Instant};

use dash_ffi::{Asked, Bounds};
use dash_storage::real::processor_time;

/// Actions of `sqlite3_set_authorizer`.
const DELETE: i32 = 9;
const INSERT: i32 = 18;
const READ: i32 = 20;
const TRANSACTION: i32 = 22;
const UPDATE: i32 = 23;
const SAVEPOINT: i32 = 32;

/// Bytes that a value may have beyond those of the database: what a record's frames hold, or a
/// statement binds as zeros. `||` joins up to five such values (`expression.rs` of
/// `dash-statement`).
const BOUND: u64 = 1 << 20;
const JOINED: u64 = 5;

/// Instructions of SQLite's: to begin with, for each page, and for each byte of what commits ran. A
/// statement takes some bytes, and some hundreds of instructions as a rule: many more where a table
/// is wide, or where SQLite looks through all rows, as old statistics make it do.
const INSTRUCTIONS: u64 = 50_000_000;
const OF_PAGE: u64 = 10_000;
const OF_BYTE: u64 = 10_000;
const OF_BYTE_AND_PAGE: u64 = 300;

/// Of a processor, where one is slow: to begin with; to read all pages some times; to prepare what
/// commits ran; and for a row of each statement that is as long as the database. It may be, and all
/// of such a row is copied, though the statement writes one page of it.
const TIME: Duration = Duration::from_secs(10);
const TIME_OF_PAGE: Duration = Duration::from_millis(1);
const TIME_OF_BYTE: Duration = Duration::from_micros(50);
const TIME_OF_BYTE_AND_PAGE: Duration = Duration::from_micros(2);

fn time(pages: u64, bytes: u64) -> Duration {
    let times = |time: Duration, count: u64| {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(nanoseconds.saturating_mul(count))
    };
    TIME.saturating_add(times(TIME_OF_PAGE, pages))
        .saturating_add(times(TIME_OF_BYTE, bytes))
        .saturating_add(times(TIME_OF_BYTE_AND_PAGE, bytes.saturating_mul(pages)))
}

/// What this thread has had of a processor, or had a moment before: asking takes as long as a part
/// of a short statement.
fn had() -> Duration {
    const MOMENT: Duration = Duration::from_millis(1);
    thread_local! {
        static ASKED: Cell<Option<(Instant, Duration)>> = const { Cell::new(None) };
    }
    let now = Instant::now();
    match ASKED.get() {
        Some((asked, had)) if now.duration_since(asked) < MOMENT => had,
        _ => {
            let had = processor_time();
            ASKED.set(Some((now, had)));
            had
        }
    }
}

/// For these commits, on a database of so many bytes and pages.
pub fn of((length, pages): (u64, u64), commits: &[Vec<u8>]) -> Bounds {
    let bytes: u64 = commits.iter().map(|commit| commit.len() as u64).sum();
    let instructions = INSTRUCTIONS
        .saturating_add(pages.saturating_mul(OF_PAGE))
        .saturating_add(bytes.saturating_mul(OF_BYTE))
        .saturating_add(bytes.saturating_mul(pages).saturating_mul(OF_BYTE_AND_PAGE));
    let length = length.saturating_add(BOUND).saturating_mul(JOINED).saturating_add(bytes);
    Bounds { may, length, instructions, time: time(pages, bytes), clock: had }
}

/// Rows of ordinary tables of `main` are read and written, within a savepoint and a transaction.
/// Whatever else there is, and will be, is not on the list: functions, other databases, the schema,
/// PRAGMAs, and what a trigger or a view asks for.
fn may(asked: &Asked<'_>) -> bool {
    let Asked { action, what, schema, inside } = *asked;
    fn text(text: Option<&CStr>) -> &[u8] {
        text.map(CStr::to_bytes).unwrap_or_default()
    }
    let is_one_of = |texts: &[&[u8]]| texts.contains(&text(what));
    match action {
        READ | INSERT | UPDATE | DELETE => {
            let table = text(what).to_ascii_lowercase();
            text(schema) == b"main" && inside.is_none() && !table.starts_with(b"sqlite_")
        }
        SAVEPOINT => text(what) == b"BEGIN",
        TRANSACTION => is_one_of(&[b"BEGIN", b"COMMIT", b"ROLLBACK"]),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row may be as long as the database, and each of many statements of a commit may copy it.
    #[test]
    fn there_is_time_for_long_rows() {
        let pages = 2500_u32;
        let commits = vec![vec![0; 8 * 300]; 20];
        let Bounds { time, .. } = of((u64::from(pages) * 4096, pages.into()), &commits);
        let copied = pages * 300 * 20;
        assert!(time / copied > Duration::from_micros(10), "{time:?}");
    }

    /// SEC S2-1.
    #[test]
    fn what_is_not_on_the_list_is_not_done() {
        let asked = |action, what, schema| Asked { action, what, schema, inside: None };
        let table = |action| asked(action, Some(c"t"), Some(c"main"));
        for action in -1..100 {
            let listed = [DELETE, INSERT, READ, UPDATE].contains(&action);
            assert_eq!(may(&table(action)), listed, "{action}");
            assert!(!may(&Asked { inside: Some(c"trigger"), ..table(action) }));
            assert!(!may(&asked(action, Some(c"t"), Some(c"temp"))));
            assert!(!may(&asked(action, Some(c"SQLite_schema"), Some(c"main"))));
            let begins = [SAVEPOINT, TRANSACTION].contains(&action);
            assert_eq!(may(&asked(action, Some(c"BEGIN"), None)), begins, "{action}");
        }
        assert!(!may(&asked(SAVEPOINT, Some(c"ROLLBACK"), None)));
    }
}
