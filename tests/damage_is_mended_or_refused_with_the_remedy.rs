//! Damaged input: torn and zeroed blocks, cut tails, a shadow that is something else. Where nothing
//! can be lost the shadow is made anew; otherwise opening is refused with a message that names the
//! remedy. Never a panic, never a silent fresh start, never wrong content.

mod suite;

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use suite::casualty::{Left, Original, after};
use suite::damage::{BLOCK, FIRST_PAGE, commit_block, first_page_block, len, resize, shadow, zero};
use suite::peers::last_error;
use suite::{uri, workload};

#[test]
fn an_undamaged_copy_opens() {
    assert_eq!(after("nothing", &|_| {}), (4, 0));
}

#[test]
fn blocks_of_the_shadow() {
    for (what, at, length) in [
        ("commit block zeroed", 0, BLOCK),
        ("commit block torn", 512, 512),
        ("commit block without its beginning", 0, 512),
        ("intent block zeroed", BLOCK, BLOCK),
        ("intent block torn", BLOCK + 1024, 512),
        ("both blocks zeroed", BLOCK, 2 * BLOCK),
    ] {
        let (mended, _) = after(what, &|path| {
            let shadow = shadow(path);
            let start = commit_block(&shadow) - at;
            zero(&shadow, start..start + length);
        });
        // After a clean close the shadow is expendable.
        assert!(mended >= 2, "{what}");
    }
}

#[test]
fn blocks_of_app_db() {
    for (what, at, length) in [
        ("commit block zeroed", 0, BLOCK),
        ("commit block torn", 512, 512),
        ("commit block's list torn", 0, 512),
        ("intent block zeroed", BLOCK, BLOCK),
        ("both blocks zeroed", BLOCK, 2 * BLOCK),
    ] {
        after(what, &|path| {
            let start = commit_block(path) - at;
            zero(path, start..start + length);
        });
    }
}

#[test]
fn blocks_in_page_1() {
    for of_shadow in [true, false] {
        for torn in [0, 40] {
            let file = |path: &Path| if of_shadow { shadow(path) } else { path.to_owned() };
            let what = format!("block in page 1 zeroed from {torn} on, of the shadow: {of_shadow}");
            after(&what, &|path| {
                assert!(first_page_block(&file(path)).is_some(), "no block in page 1");
                zero(&file(path), FIRST_PAGE.start + torn..FIRST_PAGE.end);
            });
        }
    }
}

#[test]
fn tails_that_are_cut_off_or_moved() {
    for bytes in [1, 4096, 12_288] {
        for of_shadow in [true, false] {
            let file = |path: &Path| if of_shadow { shadow(path) } else { path.to_owned() };
            let what = format!("{bytes} bytes cut off, of the shadow: {of_shadow}");
            after(&what, &|path| resize(&file(path), len(&file(path)) - bytes));
            let what = format!("{bytes} zeros appended, to the shadow: {of_shadow}");
            after(&what, &|path| resize(&file(path), len(&file(path)) + bytes));
        }
    }
}

#[test]
fn a_shadow_that_is_something_else() {
    let missing = after("shadow missing", &|path| fs::remove_file(shadow(path)).expect("there"));
    assert!(missing.0 >= 2);
    let empty = after("shadow of no bytes", &|path| resize(&shadow(path), 0));
    assert!(empty.0 >= 2);
    after("half a shadow", &|path| resize(&shadow(path), len(&shadow(path)) / 2));
    after("a shadow of text", &|path| {
        fs::write(shadow(path), "not a database, but somebody's notes").expect("writes")
    });
    after("a shadow of zeros", &|path| zero(&shadow(path), 0..len(&shadow(path))));
    let other = Original::new(Left::Closed, 5);
    after("the shadow of another database", &|path| {
        fs::remove_file(shadow(path)).expect("there");
        fs::copy(other.copy().1.with_file_name("app.db-shadow"), shadow(path)).expect("copies");
    });
    after("the shadow's first page zeroed", &|path| zero(&shadow(path), 0..4096));
}

#[test]
fn a_shadow_that_is_no_file_is_refused_or_replaced_but_never_waited_for() {
    for kind in ["directory", "fifo", "symlink to nothing", "symlink to itself"] {
        for left in [Left::Closed, Left::Killed] {
            let original = Original::new(left, 2);
            let (folder, path) = original.copy();
            // What may be lost with the shadow of a killed writer is not the subject here.
            suite::open(&path).close().unwrap();
            fs::remove_file(shadow(&path)).unwrap();
            match kind {
                "directory" => fs::create_dir(shadow(&path)).unwrap(),
                "fifo" => {
                    let mode = nix::sys::stat::Mode::from_bits_truncate(0o600);
                    nix::unistd::mkfifo(&shadow(&path), mode).unwrap();
                }
                "symlink to nothing" => {
                    std::os::unix::fs::symlink("nowhere", shadow(&path)).unwrap()
                }
                _ => std::os::unix::fs::symlink(shadow(&path), shadow(&path)).unwrap(),
            }
            let what = format!("{kind}, {left:?}");
            suite::load();
            let opened = Connection::open(uri(&path, ""))
                .and_then(|db| workload::commit_next(&db).map(|_| db));
            match opened {
                Ok(db) => assert_eq!(workload::state(&db), original.newest + 1, "{what}"),
                Err(error) => {
                    let message = last_error();
                    assert!(message.contains("-shadow"), "{what}: {error}: {message}");
                    println!("{what}: {message}");
                }
            }
            if shadow(&path).is_dir() {
                fs::remove_dir(shadow(&path)).unwrap();
            } else {
                fs::remove_file(shadow(&path)).unwrap();
            }
            let db = suite::open(&path);
            let state = workload::state(&db);
            assert!((original.newest..=original.newest + 1).contains(&state), "{what}");
            drop(folder);
        }
    }
}
