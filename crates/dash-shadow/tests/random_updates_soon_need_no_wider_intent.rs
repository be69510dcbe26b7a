//! Each region that a copy's intent does not name yet costs a flush of its own (SHADOW-6). Random
//! updates of a database of gigabytes met a new region with nearly every commit: two flushes a
//! commit for thousands of commits. Who keeps meeting new regions has more of them marked at once.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking; its numbers are small"
)]

use super::common;
use super::common::sim::tiny;
use super::common::{commit, read};
use dash_shadow::Connection;
use dash_storage::real::Real;

#[test]
fn random_updates_meet_new_regions_less_and_less_often() {
    const PAGES: usize = 1200;
    const COMMITS: usize = 400;
    let (_folder, path) = common::real();
    let mut connection = Connection::open(&Real, &path, &tiny()).unwrap();
    let mut content = vec![1; PAGES];
    commit(&mut connection, &content).unwrap();
    // The first one settled nothing: every page of it is carried once.
    content[0] = 2;
    commit(&mut connection, &content).unwrap();
    connection.close().unwrap();
    let mut connection = Connection::open(&Real, &path, &tiny()).unwrap();
    for i in 0..COMMITS {
        content[(1 + i * 7919) % PAGES] = i as u8;
        commit(&mut connection, &content).unwrap();
    }
    assert_eq!(read(&mut connection).unwrap(), content);
    let widenings = connection.statistics().intent_widenings;
    // 300 regions a copy; one by one they took 320.
    assert!((20..150).contains(&widenings), "{widenings} widenings in {COMMITS} commits");
    connection.close().unwrap();
}
