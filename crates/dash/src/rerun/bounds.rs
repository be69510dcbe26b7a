//! What statements that are run again may ask SQLite for at most, and how much of it.

use core::ffi::CStr;
use std::time::Duration;

use dash_ffi::{Asked, Bounds};
use dash_storage::real::processor_time;

/// Actions of `sqlite3_set_authorizer`.
const DELETE: i32 = 9;
const INSERT: i32 = 18;
const READ: i32 = 20;
const TRANSACTION: i32 = 22;
const UPDATE: i32 = 23;
const SAVEPOINT: i32 = 32;

/// Bytes that a value may have beyond those of the database: what a statement binds.
const BOUND: u64 = 2 << 20;

/// Instructions of SQLite's: to begin with, and for each page and each commit. What provably
/// replays looks for one row by its key, and takes some hundreds as a rule; these would do to look
/// through all rows now and then.
const INSTRUCTIONS: u64 = 50_000_000;
const OF_PAGE: u64 = 10_000;
const OF_COMMIT: u64 = 20_000;

/// Of a processor, where one is slow: to begin with; to read all pages some times; to prepare what
/// a commit ran; and for some rows of each commit that are as long as the database. They may be,
/// and all of such a row is copied, though a statement writes one page of it.
const TIME: Duration = Duration::from_secs(10);
const TIME_OF_PAGE: Duration = Duration::from_millis(1);
const TIME_OF_BYTE: Duration = Duration::from_micros(50);
const TIME_OF_COMMIT_AND_PAGE: Duration = Duration::from_micros(50);

fn time(pages: u64, commits: u64, bytes: u64) -> Duration {
    let times = |time: Duration, count: u64| {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(nanoseconds.saturating_mul(count))
    };
    TIME.saturating_add(times(TIME_OF_PAGE, pages))
        .saturating_add(times(TIME_OF_BYTE, bytes))
        .saturating_add(times(TIME_OF_COMMIT_AND_PAGE, commits.saturating_mul(pages)))
}

/// For these commits, on a database of so many bytes and pages.
pub fn of((length, pages): (u64, u64), commits: &[Vec<u8>]) -> Bounds {
    let bytes: u64 = commits.iter().map(|commit| commit.len() as u64).sum();
    let count = commits.len() as u64;
    let instructions = INSTRUCTIONS
        .saturating_add(pages.saturating_mul(OF_PAGE))
        .saturating_add(count.saturating_mul(OF_COMMIT));
    let length = length.saturating_add(BOUND).saturating_add(bytes);
    let time = time(pages, count, bytes);
    Bounds { may, length, instructions, time, clock: processor_time }
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
