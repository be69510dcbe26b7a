//! Single bits that changed in the blocks of either file or anywhere in the shadow, blocks of a
//! later format, and headers that aren't SQLite's: the newest state or a refusal with the remedy.

mod suite;

use std::fs;
use std::path::{Path, PathBuf};

use dash_shadow::inspect;
use dash_shadow::inspect::{Action, Opening};
use dash_storage::real::Real;
use suite::casualty::{Left, Original, mended_or_refused};
use suite::damage::{
    FIRST_PAGE, blocks, commit_block, flip, intent_block, len, put, reseal, resize, shadow, zero,
};
use suite::peers::{Part, Session};

/// Flips bits at `places` of a file, each in a fresh copy.
fn flips(left: Left, of: fn(&Path) -> PathBuf, places: &dyn Fn(&Path) -> Vec<u64>) {
    let original = Original::new(left, 2);
    let (_folder, path) = original.copy();
    let mut mended = 0;
    let places = places(&of(&path));
    for (i, place) in (0u8..).zip(&places) {
        let (_folder, path) = original.copy();
        flip(&of(&path), *place, i % 8);
        mended += usize::from(mended_or_refused(
            &path,
            &original,
            &format!("{left:?}: bit {} of byte {place} of {}", i % 8, of(&path).display()),
        ));
    }
    println!("{left:?}: {mended} of {} mended", places.len());
    assert!(!places.is_empty());
}

/// All of the head of the blocks, then a sample.
fn in_the_blocks(file: &Path) -> Vec<u64> {
    let heads = [commit_block(file), intent_block(file)]
        .into_iter()
        .flat_map(|block| (block..block + 128).step_by(3));
    let first = (FIRST_PAGE.start - 96..FIRST_PAGE.end).step_by(3);
    heads.chain(first).chain((intent_block(file)..len(file)).step_by(311)).collect()
}

#[test]
fn in_the_blocks_of_a_resting_database() {
    flips(Left::Closed, shadow, &in_the_blocks);
    flips(Left::Closed, Path::to_owned, &in_the_blocks);
}

#[test]
fn in_the_blocks_after_a_kill() {
    flips(Left::Killed, shadow, &in_the_blocks);
    flips(Left::Killed, Path::to_owned, &in_the_blocks);
}

#[test]
fn in_the_pages_of_the_shadow() {
    for left in [Left::Closed, Left::Killed] {
        flips(left, shadow, &|file| {
            (0..100).step_by(5).chain((100..intent_block(file)).step_by(4099)).collect()
        });
    }
}

/// Whether the database was killed after a commit's flush and before its files had exchanged their
/// names: whatever becomes of `app.db` then, the shadow has the newest state.
fn has_a_newer_shadow(original: &Original) -> bool {
    let (_folder, path) = original.copy();
    let looked = inspect(&Real, &path).expect("can be looked at").opening;
    matches!(looked, Opening::Row(Action::UseShadow, _))
}

#[test]
fn a_header_that_is_not_sqlites_is_refused_and_nothing_is_touched() {
    let text = b"#!/bin/sh\nThis is a script, and not a database at all.\n".repeat(100);
    for (what, bytes) in [
        ("text", &text[..]),
        ("a few bytes", &b"x"[..]),
        ("half a header", &b"SQLite format 3\0\x10\0"[..]),
        ("noise", &[0xA5; 9000][..]),
    ] {
        for left in [Left::Closed, Left::Killed] {
            let original = Original::new(left, 2);
            let (folder, path) = original.copy();
            resize(&path, 0);
            put(&path, 0, bytes);
            // Or the last commit was not acknowledged yet, and the shadow has all that was.
            let newer = has_a_newer_shadow(&original) || original.newest > original.acknowledged;
            assert!(!newer || left == Left::Killed);
            let opened = mended_or_refused(&path, &original, what);
            assert!(!opened || newer, "{what}, {left:?}: opened with its former state");
            // And alone, without a shadow.
            let alone = folder.path().join("alone.db");
            fs::write(&alone, bytes).unwrap();
            // SQLite takes one byte for an empty database; what is longer it refuses when it reads.
            let refused = match Session::dash(&alone, Part::default()) {
                Err(message) => message,
                Ok(_) if bytes.len() == 1 => panic!("{what} was opened"),
                Ok(mut session) => session.sql("SELECT * FROM sqlite_master").expect_err(what),
            };
            assert!(refused.starts_with("file is not a database"), "{what}: {refused}");
            assert_eq!(fs::read(&alone).unwrap(), bytes, "{what}");
        }
    }
}

#[test]
fn an_app_db_that_was_emptied_is_refused_with_what_to_do() {
    for left in [Left::Closed, Left::Killed] {
        for commits in 1..=4 {
            let original = Original::new(left, commits);
            let (_folder, path) = original.copy();
            resize(&path, 0);
            assert!(!mended_or_refused(&path, &original, "emptied"), "{left:?}: a fresh start");
        }
    }
}

#[test]
fn an_app_db_that_lost_its_first_page_or_its_end_is_no_fresh_start() {
    for left in [Left::Closed, Left::Killed] {
        let original = Original::new(left, 3);
        let (_folder, path) = original.copy();
        zero(&path, 0..4096);
        let opened = mended_or_refused(&path, &original, "page 1 zeroed");
        assert!(!opened || has_a_newer_shadow(&original), "page 1 zeroed, {left:?}: opened");
    }
}

/// Gives blocks another format version, with checksums that are right: the intent, or whatever
/// commit blocks there are.
fn from_the_future(file: &Path, intent: bool) {
    for (block, start) in blocks(file) {
        let at = block.start;
        let magic = usize::try_from(at).expect("small") + start;
        let there = fs::read(file).expect("reads")[magic..].starts_with(b"\xff\xff\xff\xffDSH");
        if there && intent == (at == intent_block(file)) {
            let version = 3u32.to_le_bytes();
            reseal(file, block, start, &|block| block[8..12].copy_from_slice(&version));
        }
    }
}

#[test]
fn a_format_from_the_future_is_refused_by_name() {
    for left in [Left::Closed, Left::Killed] {
        for (of_shadow, intent) in [(false, false), (false, true), (true, false), (true, true)] {
            let original = Original::new(left, 3);
            let (_folder, path) = original.copy();
            let file = if of_shadow { shadow(&path) } else { path.clone() };
            from_the_future(&file, intent);
            let what = format!("{left:?}, of the shadow: {of_shadow}, intent: {intent}");
            assert!(!mended_or_refused(&path, &original, &what), "{what}: opened");
            match Session::dash(&path, Part::default()) {
                Err(message) => assert!(message.contains("format 3"), "{what}: {message}"),
                Ok(_) => panic!("{what}: opened"),
            }
            // Also for reading, which would not harm, but might be wrong.
            if let Ok(mut reader) =
                Session::dash(&path, Part { parameters: "&mode=ro", ..Part::default() })
            {
                match reader.sql(suite::workload::STATE) {
                    Err(message) => {
                        assert!(message.contains("not a database"), "{what}: {message}")
                    }
                    // At rest it is a plain file, and this is what it holds.
                    Ok(answer) => {
                        let state = suite::workload::number(&answer);
                        assert_eq!((left, state), (Left::Closed, original.newest), "{what}");
                    }
                }
            }
        }
    }
}
