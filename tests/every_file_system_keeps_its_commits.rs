//! The same on each file system: transactions of all kinds, writers killed, opened again, read by
//! stock SQLite in between. An overlay has the database baked into its lower layer, whose files get
//! other inodes when they are first written. What is missing is skipped.

mod suite;

use std::fs;
use std::path::Path;
use std::time::Duration;

use dash_testing::mounts::{Kind, Mount};
use dash_testing::names::{beside, exists, names};
use suite::peers::{Part, Session, Writer};
use suite::workload::{self, STATE};
use suite::{check, one, open};

fn stock_agrees(path: &Path, state: i64) {
    let mut stock = Session::stock(path);
    assert_eq!(workload::number(&stock.must(STATE)), state);
    assert_eq!(stock.must("PRAGMA integrity_check"), "ok");
}

/// Everything on a database that is there already, in `state`.
fn goes_on(path: &Path, mut state: i64, part: Part<'_>) {
    for round in 0..5u64 {
        let mut early = Session::stock(path);
        early.must("PRAGMA busy_timeout=5000");
        assert_eq!(workload::number(&early.must(STATE)), state);
        let mut writer = Writer::start(path, part);
        writer.reaches(state + 2);
        // Beside it: a stock reader, from before and fresh.
        for stock in [&mut early, &mut Session::stock(path)] {
            stock.must("PRAGMA busy_timeout=5000");
            assert!(workload::number(&stock.must(STATE)) >= state);
        }
        std::thread::sleep(Duration::from_micros(round * 1700));
        let acknowledged = writer.kill();
        if let Ok(answer) = Session::stock(path).sql(STATE) {
            assert!((acknowledged..=acknowledged + 1).contains(&workload::number(&answer)));
        }
        drop(early);
        let db = open(path);
        state = workload::state(&db);
        assert!((acknowledged..=acknowledged + 1).contains(&state), "{state} of {acknowledged}");
        assert_eq!(workload::commit_next(&db).expect("commits"), state + 1);
        state += 1;
        if round == 1 {
            db.execute_batch("PRAGMA page_size=1024; VACUUM").expect("vacuums");
            assert_eq!(one::<i64>(&db, "PRAGMA page_size"), 1024);
        }
        check(&db);
        db.close().expect("closes");
        assert!(!exists(&beside(path, "-journal")), "the fence stands");
        stock_agrees(path, state);
    }
}

fn keeps_its_commits(folder: &Path, part: Part<'_>) {
    let path = folder.join("app.db");
    let db = open(&path);
    workload::make(&db);
    assert_eq!(one::<String>(&db, "SELECT dash_engine()"), "shadow");
    db.close().expect("closes");
    goes_on(&path, 0, part);
    let left: Vec<_> =
        names(folder).into_iter().filter(|name| name.starts_with("app.db")).collect();
    assert_eq!(left, ["app.db", "app.db-shadow"]);
}

#[test]
fn ext4() {
    if let Some(mount) = Mount::image(Kind::Ext4, 64, &["-q"]) {
        keeps_its_commits(mount.path(), Part::default());
    }
}

#[test]
fn ext4_without_a_journal() {
    if let Some(mount) = Mount::image(Kind::Ext4, 64, &["-q", "-O", "^has_journal"]) {
        keeps_its_commits(mount.path(), Part::default());
    }
}

#[test]
fn xfs() {
    if let Some(mount) = Mount::image(Kind::Xfs, 512, &["-q"]) {
        keeps_its_commits(mount.path(), Part::default());
    }
}

#[test]
fn btrfs() {
    if let Some(mount) = Mount::image(Kind::Btrfs, 256, &["-q"]) {
        keeps_its_commits(mount.path(), Part::default());
    }
}

#[test]
fn tmpfs() {
    if let Some(mount) = Mount::tmpfs("32m") {
        keeps_its_commits(mount.path(), Part::default());
    }
}

#[test]
fn any_that_cannot_exchange_names() {
    let folder = tempfile::tempdir().unwrap();
    keeps_its_commits(folder.path(), Part { no_exchange: true, ..Part::default() });
}

#[test]
fn an_overlay_with_the_database_in_its_lower_layer() {
    for how in ["by dash", "by stock SQLite", "by dash, killed"] {
        let lower = tempfile::tempdir().unwrap();
        let baked = lower.path().join("app.db");
        let mut state = 0;
        if how == "by stock SQLite" {
            workload::make(&suite::stock(&baked));
        } else {
            let db = open(&baked);
            workload::make(&db);
            for _ in 0..3 {
                state = workload::commit_next(&db).unwrap();
            }
            db.close().unwrap();
        }
        if how == "by dash, killed" {
            let mut writer = Writer::start(&baked, Part::default());
            writer.reaches(6);
            state = writer.kill();
        }
        let before = fs::read(&baked).unwrap();
        let Some(mount) = Mount::overlay(lower.path()) else { return };
        let path = mount.path().join("app.db");
        // Reading only leaves it in the lower layer.
        let mut reader =
            Session::dash(&path, Part { parameters: "&mode=ro", ..Part::default() }).unwrap();
        let read = workload::number(&reader.must(STATE));
        assert!((state..=state + 1).contains(&read), "{how}: {read} of {state}");
        reader.close();
        let db = open(&path);
        state = workload::state(&db);
        assert_eq!(state, read, "{how}");
        workload::commit_next(&db)
            .unwrap_or_else(|error| panic!("{how}: {error}: {}", suite::peers::last_error()));
        assert_eq!(workload::state(&db), state + 1, "{how}");
        db.close().unwrap();
        goes_on(&path, state + 1, Part::default());
        assert!(fs::read(&baked).unwrap() == before, "the lower layer was written");
    }
}

#[test]
fn an_overlay_that_is_new() {
    let lower = tempfile::tempdir().unwrap();
    if let Some(mount) = Mount::overlay(lower.path()) {
        keeps_its_commits(mount.path(), Part::default());
    }
}
