//! Found under stock SQLite with locking_mode=EXCLUSIVE: the session holds SQLite's SHARED range of
//! both copies between its commits, took that for "nobody reads", and overwrote the copy that a
//! dash reader had pinned (T5).

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking; its numbers are small"
)]

use super::common;
use super::common::{PAGE, open, page, read_locked};
use dash_shadow::{Connection, Error, LockLevel};
use dash_storage::real::Real;

/// A commit without a lock call before or after it.
fn commit_in_session(
    connection: &mut Connection<Real>,
    value: u8,
    counter: u32,
) -> Result<(), Error> {
    connection.write(&page(1, value, 2, counter), 0)?;
    connection.write(&page(2, value, 2, counter), PAGE as u64)?;
    connection.prepare(None)?;
    connection.flush()?;
    connection.publish()
}

#[test]
fn a_snapshot_stays_what_it_is() {
    let (_folder, path) = common::real();
    let path = path.to_str().unwrap();
    let mut writer = open(&Real, path).unwrap();
    let mut reader = open(&Real, path).unwrap();
    writer.lock(LockLevel::Exclusive).unwrap();
    commit_in_session(&mut writer, 1, 1).unwrap();
    reader.lock(LockLevel::Shared).unwrap();
    assert_eq!(read_locked(&mut reader).unwrap(), [1, 1]);
    commit_in_session(&mut writer, 2, 2).unwrap();
    commit_in_session(&mut writer, 3, 3).unwrap();
    assert_eq!(read_locked(&mut reader).unwrap(), [1, 1]);
    reader.unlock(LockLevel::None).unwrap();
    writer.unlock(LockLevel::None).unwrap();
    reader.lock(LockLevel::Shared).unwrap();
    assert_eq!(read_locked(&mut reader).unwrap(), [3, 3]);
}
