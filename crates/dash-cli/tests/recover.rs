//! `sqlite-dash recover`: says first what it does, asks before it gives anything up, and loses
//! nothing that it was given.
#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};

use super::common::killed::run_and_kill;
use super::common::{Home, Run};
use dash_testing::machine::root_for;
use dash_testing::mounts::Mount;

/// Everything that was there before is there after, under some name.
pub(super) fn keeps_every_input(home: &Home, arguments: &[&str]) {
    let before = home.contents();
    home.dash(arguments).is(0);
    let after = home.contents();
    for (name, bytes) in before.iter().filter(|(name, _)| !name.ends_with("-journal")) {
        // Beyond the marks in SQLite's header that opening takes off again.
        let same =
            |other: &Vec<u8>| other.len() == bytes.len() && other.get(100..) == bytes.get(100..);
        let kept = after.values().any(same) || name == "app.db-dash";
        assert!(kept, "{name} is gone; there are {:?}", after.keys());
    }
}

fn nothing_happens_unasked(home: &Home) {
    let before = home.contents();
    home.dash(&["recover", "app.db"]).is(2).says("add --yes");
    assert_eq!(before, home.contents());
}

#[test]
fn a_closed_database_needs_none() {
    let home = Home::new();
    home.shadowed();
    home.dash(&["recover", "app.db"]).is(0).says("needs no recovery").says("integrity_check");
    let before = home.contents();
    home.dash(&["recover", "app.db", "--yes", "--keep", "shadow"]).is(1).says("nothing was done");
    home.dash(&["recover", "app.db", "--yes", "--keep", "database"]).is(1).says("nothing was done");
    assert_eq!(before, home.contents());
}

/// A unit whose ExecStartPre= this is never started on a new machine.
#[test]
fn nor_does_one_that_is_yet_to_be_made() {
    let home = Home::new();
    home.dash(&["recover", "app.db"]).is(0).says("nothing to recover");
    home.dash(&["recover", "missing/app.db"]).is(2).says("missing");
    for beside in ["app.db-wal", "app.db-dash-fence", "app.db-dashlog"] {
        fs::write(home.file(beside), "").unwrap();
        let run = home.dash(&["recover", "app.db"]);
        assert!(!run.out().contains("nothing to recover"), "{beside}");
        fs::remove_file(home.file(beside)).unwrap();
    }
    fs::create_dir(home.file("app.db-journal")).unwrap();
    assert_ne!(home.dash(&["recover", "app.db"]).0.status.code(), Some(0));
    assert!(!home.db().exists());
}

#[test]
fn a_database_that_was_cut_without_a_shadow_is_bad_news() {
    let home = Home::new();
    home.shadowed();
    fs::remove_file(home.file("app.db-shadow")).unwrap();
    let cut = fs::OpenOptions::new().write(true).open(home.db()).unwrap();
    cut.set_len(4096).unwrap();
    let before = home.contents();
    home.dash(&["recover", "app.db"]).is(1).says("restore a backup");
    assert_eq!(before, home.contents());
}

#[test]
fn one_that_stock_sqlite_is_writing_was_left_in_nothing() {
    let home = Home::new();
    home.shadowed();
    let stock = rusqlite::Connection::open(home.db()).unwrap();
    stock.execute_batch("BEGIN IMMEDIATE; UPDATE t SET body = 'x'").unwrap();
    home.dash(&["recover", "app.db"]).is(2).says("is in use by another program, or was left");
}

#[test]
fn what_can_not_be_kept_is_named_beside_what_can() {
    let home = Home::new();
    home.shadowed();
    for arguments in [&["app.db", "--keep", "datbase"][..], &["--keep", "datbase", "app.db"]] {
        home.dash(&[&["recover", "--yes"], arguments].concat())
            .is(2)
            .says("--keep can't be datbase")
            .says("database, log, shadow");
    }
    home.dash(&["recover", "--keep", "log"]).is(2).says("which FILE");
    home.dash(&["recover"]).is(2).says("<FILE>");
}

#[test]
fn a_lost_exchange_is_completed() {
    let home = Home::new();
    home.shadowed();
    home.lose_the_last_exchange();
    // Any opening does that, so nobody is asked: a service's ExecStartPre has no terminal.
    home.dash(&["recover", "app.db"]).is(0).says("completes the newest commit");
    assert_eq!(home.stock_rows(), 204);
    home.dash(&["recover", "app.db"]).is(0).says("needs no recovery");
}

#[test]
fn a_removed_database_comes_back_from_its_shadow() {
    let home = Home::new();
    home.shadowed();
    fs::remove_file(home.db()).unwrap();
    nothing_happens_unasked(&home);
    home.dash(&["recover", "app.db", "--yes"]).is(0).says("state before the last commit");
    assert_eq!(home.stock_rows(), 202);
}

/// Also where the shadow was copied, so that its block was written into another file.
#[test]
fn what_a_lone_shadow_lacks_is_said_by_its_number() {
    let home = Home::new();
    home.shadowed();
    let report = home.dash(&["inspect", "app.db", "--json"]).out();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let missing = format!(
        "the last commit, number {}: that commit was made in the file that is gone and is missing",
        report["database"]["commit"]["sequence"]
    );
    fs::copy(home.file("app.db-shadow"), home.file("copy.db-shadow")).unwrap();
    fs::remove_file(home.db()).unwrap();
    home.dash(&["recover", "app.db"]).is(2).says(&missing);
    home.dash(&["inspect", "copy.db"]).is(1).says("copy.db-shadow: a copy made from elsewhere");
    home.dash(&["recover", "copy.db", "--yes"]).is(0).says(&missing).says("was copied here");
}

#[test]
fn an_emptied_database_comes_back_and_the_empty_file_is_kept() {
    let home = Home::new();
    home.shadowed();
    fs::write(home.db(), "").unwrap();
    nothing_happens_unasked(&home);
    keeps_every_input(&home, &["recover", "app.db", "--yes"]);
    assert!(home.file("app.db.before-recover-1").exists());
    assert_eq!(home.stock_rows(), 202);
}

#[test]
fn a_file_that_is_no_database_is_replaced_only_if_told() {
    let home = Home::new();
    home.shadowed();
    fs::write(home.db(), "no database".repeat(1000)).unwrap();
    home.dash(&["recover", "app.db", "--yes"]).is(1).says("--keep shadow");
    keeps_every_input(&home, &["recover", "app.db", "--yes", "--keep", "shadow"]);
    assert_eq!(home.stock_rows(), 202);
}

fn diverged() -> Home {
    let home = Home::new();
    home.shadowed();
    home.lose_the_last_exchange();
    let db = rusqlite::Connection::open(home.db()).unwrap();
    db.execute_batch("INSERT INTO t (body) VALUES ('by stock 1'), ('by stock 2')").unwrap();
    home
}

#[test]
fn of_two_histories_a_person_chooses_one_and_both_are_kept() {
    for (keep, rows) in [("database", 205), ("shadow", 204)] {
        let home = diverged();
        home.dash(&["inspect", "app.db"]).is(1).says("--keep database");
        let before = home.contents();
        home.dash(&["recover", "app.db", "--yes"]).is(1).says("--keep database");
        assert_eq!(before, home.contents());
        keeps_every_input(&home, &["recover", "app.db", "--yes", "--keep", keep]);
        assert_eq!(home.stock_rows(), rows, "{keep}");
    }
}

/// A stock connection was reading since before dash's last commit, and then wrote without a journal
/// file.
#[test]
fn so_of_what_a_stock_reader_wrote_into_the_former_copy() {
    for (keep, rows) in [("database", 203), ("shadow", 205)] {
        for page_size in [512, 4096] {
            let home = Home::new();
            let stock = home.plain();
            stock.execute_batch(&format!("PRAGMA page_size = {page_size}; VACUUM")).unwrap();
            home.dash(&["convert", "app.db", "--to", "shadow"]).is(0);
            home.sql("INSERT INTO t (body) VALUES ('by dash 1'), ('by dash 2')");
            stock.execute_batch("PRAGMA journal_mode = MEMORY; BEGIN").unwrap();
            assert_eq!(home.stock_rows(), 202);
            let count = |db: &rusqlite::Connection| {
                db.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0)).unwrap()
            };
            assert_eq!(count(&stock), 202);
            home.sql("INSERT INTO t (body) VALUES ('by dash 3')");
            let insert = "INSERT INTO t (body) VALUES ('by stock')";
            stock.execute_batch(&format!("{insert}; COMMIT; {insert}; {insert}")).unwrap();
            drop(stock);
            home.dash(&["inspect", "app.db"]).is(1).says("--keep database");
            home.dash(&["recover", "app.db", "--yes"]).is(1).says("--keep database");
            keeps_every_input(&home, &["recover", "app.db", "--yes", "--keep", keep]);
            assert_eq!(home.stock_rows(), rows, "{keep} {page_size}");
            home.dash(&["recover", "app.db"]).is(0).says("needs no recovery");
        }
    }
}

fn both_torn() -> Home {
    let home = Home::new();
    home.shadowed();
    fs::create_dir(home.file("app.db-journal")).unwrap();
    let report = home.dash(&["inspect", "app.db", "--json"]).out();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["kinds"]["database"], "whole");
    // The newest row's text lies in a page that the last commit lists.
    let bytes = fs::read(home.db()).unwrap();
    let at = bytes.windows(9).position(|found| found == b"by dash 2").unwrap();
    let file = fs::OpenOptions::new().write(true).open(home.db()).unwrap();
    file.write_all_at(b"by nobody", at as u64).unwrap();
    home
}

#[test]
fn two_torn_files_are_copied_aside_and_left_alone() {
    let home = both_torn();
    let before = home.contents();
    home.dash(&["recover", "app.db", "--yes"]).is(1).says("Neither");
    let after = home.contents();
    for (name, bytes) in &before {
        assert_eq!(after.get(name), Some(bytes), "{name}");
    }
    assert_eq!(after.get("app.db.before-recover-1"), before.get("app.db"));
    assert_eq!(after.get("app.db-shadow.before-recover-1"), before.get("app.db-shadow"));
}

#[test]
fn of_two_torn_files_a_person_may_go_on_with_one() {
    for (keep, rows) in [("database", 203), ("shadow", 202)] {
        let home = both_torn();
        keeps_every_input(&home, &["recover", "app.db", "--yes", "--keep", keep]);
        assert_eq!(home.stock_rows(), rows, "{keep}");
        home.dash(&["recover", "app.db"]).is(0).says("needs no recovery");
    }
}

/// A database that was written anew was open to all, whatever the old one was. SEC S2-5.
#[test]
fn a_database_that_is_written_anew_is_no_more_open_than_the_old_one() {
    for bits in [0o600, 0o640] {
        let home = both_torn();
        for name in ["app.db", "app.db-shadow"] {
            fs::set_permissions(home.file(name), fs::Permissions::from_mode(bits)).unwrap();
        }
        home.dash(&["recover", "app.db", "--yes", "--keep", "database"]).is(0);
        for name in home.contents().keys().filter(|name| name.starts_with("app.db")) {
            let found = fs::symlink_metadata(home.file(name)).unwrap();
            let is_open = found.is_file() && found.mode() & 0o777 & !bits != 0;
            assert!(!is_open, "{name} has {:o}, the database {bits:o}", found.mode());
        }
        assert_eq!(fs::metadata(home.db()).unwrap().mode() & 0o777, bits);
    }
}

/// A user who may rename files there put one of his, open to all, under the database's name.
#[test]
fn nor_as_open_as_what_has_the_name_meanwhile() {
    // On a busy machine it comes too late now and then.
    assert!((0..50).any(|_| his_file_is_put_there_in_time()), "it came too late each time");
}

fn his_file_is_put_there_in_time() -> bool {
    let home = both_torn();
    fs::write(home.file("his"), "").unwrap();
    for (name, bits) in [("", 0o777), ("app.db", 0o600), ("app.db-shadow", 0o600), ("his", 0o666)] {
        fs::set_permissions(home.file(name), fs::Permissions::from_mode(bits)).unwrap();
    }
    let ends = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ends.load(std::sync::atomic::Ordering::SeqCst)
                && (!home.file("app.db.recovering").exists()
                    || fs::rename(home.file("his"), home.db()).is_err())
            {
                std::hint::spin_loop();
            }
        });
        home.dash(&["recover", "app.db", "--yes", "--keep", "database"]);
        ends.store(true, std::sync::atomic::Ordering::SeqCst);
    });
    let is_put_there = !home.file("his").exists();
    assert!(!is_put_there || fs::metadata(home.db()).unwrap().mode() & 0o777 == 0o600);
    is_put_there
}

/// Whoever may make files beside a database had root write one elsewhere, through a link.
#[test]
fn it_writes_through_no_link() {
    let home = both_torn();
    let elsewhere = tempfile::tempdir().unwrap();
    let target = elsewhere.path().join("made");
    std::os::unix::fs::symlink(&target, home.file("app.db.recovering")).unwrap();
    home.dash(&["recover", "app.db", "--yes", "--keep", "database"])
        .says("is there from an earlier");
    assert!(!target.exists());
}

#[test]
fn who_may_not_read_it_is_told_whose_it_is() {
    if !root_for("a database of somebody else") {
        return;
    }
    for mode in ["shadow", "wal"] {
        let home = Home::new();
        drop(home.plain());
        home.dash(&["convert", "app.db", "--to", mode]).is(0);
        fs::set_permissions(home.db(), fs::Permissions::from_mode(0o600)).unwrap();
        for command in ["recover", "inspect"] {
            let Some(mut other) = home.forbidden(&[command, "app.db"]) else { return };
            Run(other.output().unwrap()).is(2).says("user nobody may not read ").says("0600 root");
        }
    }
}

/// It opened the database for reading, which mends nothing, and said that it was done.
#[test]
fn who_may_not_write_is_told_that_nothing_was_mended() {
    for mode in ["shadow", "wal"] {
        let home = Home::new();
        drop(home.plain());
        home.dash(&["convert", "app.db", "--to", mode]).is(0);
        let add = "INSERT INTO t (body) VALUES ('by dash');".to_owned();
        run_and_kill(&home, &vec![add; 12]);
        let before = home.contents();
        let Some(mut other) = home.forbidden(&["recover", "app.db"]) else { return };
        Run(other.output().unwrap())
            .is(2)
            .says("not mended: user")
            .says("may not write")
            .says("root");
        if let Some(mount) = Mount::read_only(home.path()) {
            let path = mount.path().join("app.db").display().to_string();
            home.dash(&["recover", &path]).is(2).says("not mended").says("mounted read-only");
        }
        assert_eq!(before, home.contents());
        let run = home.dash(&["recover", "app.db"]).is(0).says("integrity_check: ok");
        assert_eq!(run.out().matches("through dash").count(), 1, "{}", run.out());
        assert_eq!(home.stock_rows(), 212);
    }
}

/// What was to be removed for a backup left the folder, and so a database that was refused.
#[test]
fn what_to_remove_for_a_backup_is_all_there_is() {
    let home = Home::new();
    drop(home.plain());
    fs::copy(home.db(), home.file("backup")).unwrap();
    home.dash(&["convert", "app.db", "--to", "wal"]).is(0);
    run_and_kill(&home, &vec!["INSERT INTO t (body) VALUES ('by dash');".to_owned(); 12]);
    fs::remove_file(home.db()).unwrap();
    home.dash(&["recover", "app.db"])
        .is(1)
        .says("remove all that is named app.db-..., and the folder app.db-journal");
    for name in home.contents().keys().filter(|name| name.starts_with("app.db-")) {
        let path = home.file(name);
        if path.is_dir() {
            fs::remove_dir_all(path).unwrap()
        } else {
            fs::remove_file(path).unwrap()
        }
    }
    fs::copy(home.file("backup"), home.db()).unwrap();
    home.dash(&["recover", "app.db"]).is(0).says("needs no recovery");
    home.sql("INSERT INTO t (body) VALUES ('goes on')");
    assert_eq!(home.stock_rows(), 201);
}

/// A user who may rename files there put one of his, which he had open, in the place of the new
/// one.
#[test]
fn nor_into_a_file_that_is_put_in_its_place() {
    let home = both_torn();
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let (his, new) = (home.file("his"), home.file("app.db.recovering"));
    fs::write(&his, "").unwrap();
    let kept = fs::File::open(&his).unwrap();
    let ends = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ends.load(std::sync::atomic::Ordering::SeqCst)
                && (!new.exists() || fs::rename(&his, &new).is_err())
            {
                std::hint::spin_loop();
            }
        });
        home.dash(&["recover", "app.db", "--yes", "--keep", "database"]);
        ends.store(true, std::sync::atomic::Ordering::SeqCst);
    });
    assert_eq!(kept.metadata().unwrap().len(), 0, "the content is in it");
}
