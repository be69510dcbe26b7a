//! Disk full at every step: with ever more free space, opening, taking over a stock database, small
//! and large commits, cache spills, recovery and closing either succeed or answer SQLITE_FULL; what
//! was committed stays, and when there is space again the same connection goes on.

mod suite;

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dash_testing::machine::kernel_is_at_least;
use dash_testing::mounts::{Kind, Mount};
use dash_testing::names::{beside, exists, wait_for_rest};
use dash_testing::{Need, skip};
use rusqlite::{Connection, ErrorCode};
use suite::peers::{Part, Session, Writer, last_error};
use suite::{uri, workload};

const BLOCK: u64 = 4096;
/// Free blocks that are tried: each of the first, where every step fails, then fewer.
const FREE: [u64; 26] =
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 18, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 128];

/// Leaves so many blocks free, until it is dropped.
struct Filler(PathBuf);

impl Filler {
    fn new(folder: &Path, free: u64) -> Self {
        let path = folder.join("filler");
        let mut file = File::create(&path).expect("an inode is free");
        for size in [1 << 20, 1 << 16, 4096, 512] {
            while file.write_all(&vec![0xA5; size]).is_ok() {}
        }
        file.sync_all().ok();
        let len = file.metadata().expect("ours").len();
        file.set_len(len.saturating_sub(free * BLOCK)).expect("becomes shorter");
        file.sync_all().ok();
        Self(path)
    }
}

impl Drop for Filler {
    fn drop(&mut self) {
        let len = self.0.metadata().map_or(0, |found| found.len());
        drop(fs::remove_file(&self.0));
        let free = || {
            let found = nix::sys::statvfs::statvfs(self.0.parent().expect("a folder"))
                .expect("a file system");
            found.blocks_free() * found.fragment_size()
        };
        // A child that another test starts has all files open until it runs its program.
        for _ in 0..5000 {
            if free() >= len / 2 {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// An error must be SQLITE_FULL. Whether it went well.
fn full_or_done<T>(result: rusqlite::Result<T>, what: &str) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(rusqlite::Error::SqliteFailure(error, _)) if error.code == ErrorCode::DiskFull => None,
        Err(error) => panic!("{what}: {error:?}: {}", last_error()),
    }
}

fn rolled_back(db: &Connection) {
    if !db.is_autocommit() {
        db.execute_batch("ROLLBACK").expect("needs no space");
    }
}

/// A commit that needs much space: larger than SQLite's cache, so that it spills.
fn large(db: &Connection, n: i64) -> rusqlite::Result<()> {
    db.execute_batch("PRAGMA cache_size=10; BEGIN IMMEDIATE")?;
    db.execute("INSERT INTO log VALUES (?, zeroblob(150000))", [n])?;
    db.execute("UPDATE spread SET n = ?, pad = zeroblob(800)", [n])?;
    db.execute_batch("COMMIT")
}

/// A small or a large commit, which succeeds or finds no space; then the database has it, or not.
fn one_more(db: &Connection, step: i32, state: &mut i64, what: &str) {
    let committed =
        if step % 3 == 2 { large(db, *state + 1) } else { workload::commit_next(db).map(drop) };
    let committed = full_or_done(committed, what);
    rolled_back(db);
    *state += i64::from(committed.is_some());
    assert_eq!(workload::state(db), *state, "{what}, {committed:?}");
}

/// The database in `folder`, made afresh with space, then used with `free` blocks.
fn at(folder: &Path, free: u64, prepare: &dyn Fn(&Path)) {
    let path = folder.join(format!("app-{free}.db"));
    let what = format!("{free} blocks free");
    suite::load();
    prepare(&path);
    let mut state = workload::state(&suite::open(&path));
    let filler = Filler::new(folder, free);
    let db = Connection::open(uri(&path, ""))
        .unwrap_or_else(|error| panic!("{what}: {error:?}: {}", last_error()));
    for step in 0..6 {
        assert_eq!(workload::state(&db), state, "{what}, before step {step}");
        one_more(&db, step, &mut state, &format!("{what}, step {step}"));
    }
    drop(filler);
    // The same connection goes on.
    for _ in 0..3 {
        state += 1;
        let committed = workload::commit_next(&db)
            .unwrap_or_else(|error| panic!("{what}, with space: {error:?}: {}", last_error()));
        assert_eq!(committed, state, "{what}");
    }
    assert_eq!(workload::state(&db), state, "{what}");
    // Closing may meet the full disk, too.
    let filler = Filler::new(folder, 0);
    full_or_done(db.close().map_err(|(_, error)| error), &what);
    drop(filler);
    let db = Connection::open(uri(&path, ""))
        .unwrap_or_else(|error| panic!("{what}, opened again: {error}: {}", last_error()));
    assert_eq!(workload::state(&db), state, "{what}, opened again");
    db.close().expect("closes");
    let mut stock = Session::stock(&path);
    assert_eq!(workload::number(&stock.must(workload::STATE)), state, "{what}");
    assert_eq!(stock.must("PRAGMA integrity_check"), "ok");
    drop(stock);
    for suffix in ["", "-shadow"] {
        drop(fs::remove_file(beside(&path, suffix)));
    }
}

fn closed(path: &Path) {
    let db = suite::open(path);
    workload::make(&db);
    workload::commit_next(&db).expect("space");
    workload::commit_next(&db).expect("space");
    db.close().expect("closes");
}

#[test]
fn a_database_that_was_closed_cleanly() {
    let Some(mount) = Mount::tmpfs("3m") else { return };
    for free in FREE {
        at(mount.path(), free, &closed);
    }
}

#[test]
fn a_stock_database_that_is_taken_over() {
    let Some(mount) = Mount::tmpfs("3m") else { return };
    for free in FREE {
        at(mount.path(), free, &|path| {
            workload::make(&suite::stock(path));
        });
    }
}

#[test]
fn a_database_whose_writer_was_killed() {
    let Some(mount) = Mount::tmpfs("6m") else { return };
    for free in FREE.into_iter().step_by(2) {
        at(mount.path(), free, &|path| {
            closed(path);
            let mut writer = Writer::start(path, Part::default());
            writer.reaches(4);
            writer.kill();
        });
    }
}

#[test]
fn recovery_itself() {
    let Some(mount) = Mount::tmpfs("6m") else { return };
    for free in [0, 1, 2, 8] {
        let path = mount.path().join(format!("{free}.db"));
        closed(&path);
        let mut writer = Writer::start(&path, Part::default());
        writer.reaches(5);
        let acknowledged = writer.kill();
        let filler = Filler::new(mount.path(), free);
        let db = Connection::open(uri(&path, "")).expect("opens");
        assert!(workload::state(&db) >= acknowledged);
        drop(db);
        drop(filler);
        assert!(workload::state(&suite::open(&path)) >= acknowledged);
    }
}

#[test]
fn on_a_journaled_file_system_on_a_device() {
    let Some(mount) = Mount::image(Kind::Ext4, 16, &["-q"]) else { return };
    for free in FREE.into_iter().step_by(3) {
        at(mount.path(), free, &closed);
    }
}

/// Btrfs writes nothing in place. Storing into memory that processes share through one of its files
/// takes space whenever the page has been written back meanwhile, and without space the process
/// ended by SIGBUS.
#[test]
fn on_a_file_system_that_copies_on_write() {
    if !kernel_is_at_least(6, 16) {
        skip(Need::Linux616, "Linux copies what is mapped whatever the file asks for");
        return;
    }
    let Some(mount) = Mount::image(Kind::Btrfs, 128, &["-q"]) else { return };
    let path = mount.path().join("app.db");
    suite::load();
    closed(&path);
    let db = suite::open(&path);
    let mut state = workload::commit_next(&db).expect("space");
    let filler = Filler::new(mount.path(), 0);
    for step in 0..8 {
        let file = File::open(mount.path()).expect("a folder");
        nix::unistd::syncfs(&file).ok(); // now what is mapped is clean
        one_more(&db, step, &mut state, &format!("step {step}"));
    }
    drop(filler);
    assert_eq!(workload::commit_next(&db).expect("space"), state + 1);
}

#[test]
fn a_new_database_where_there_is_no_space_at_all() {
    let Some(mount) = Mount::tmpfs("2m") else { return };
    suite::load();
    for free in 0..12 {
        let path = mount.path().join("new.db");
        let filler = Filler::new(mount.path(), free);
        let made = full_or_done(
            Connection::open(uri(&path, ""))
                .and_then(|db| db.execute_batch("CREATE TABLE t(a); INSERT INTO t VALUES (1)")),
            "a new one",
        );
        drop(filler);
        let db = suite::open(&path);
        if made.is_some() {
            assert_eq!(suite::one::<i64>(&db, "SELECT count(*) FROM t"), 1);
        }
        db.execute_batch("CREATE TABLE IF NOT EXISTS t(a); INSERT INTO t VALUES (2)").unwrap();
        suite::check(&db);
        db.close().unwrap();
        for suffix in ["", "-shadow"] {
            drop(fs::remove_file(beside(&path, suffix)));
        }
    }
}

/// What is refused to a writer, in one attempt.
fn refused(db: &Connection) -> Option<ErrorCode> {
    let refused =
        workload::commit_next(db).expect_err("nothing can be written").sqlite_error_code();
    rolled_back(db);
    refused
}

/// At rest it can be read by whoever opens it, also mapped, and what could not be opened for
/// writing leaves nothing behind that keeps others out.
#[test]
fn reading_takes_no_space() {
    let Some(mount) = Mount::tmpfs("4m") else { return };
    let path = mount.path().join("app.db");
    closed(&path);
    let filler = Filler::new(mount.path(), 0);
    suite::load();
    let db = Connection::open(uri(&path, "")).expect("opens");
    db.execute_batch("PRAGMA mmap_size=1000000").expect("sets");
    for _ in 0..3 {
        assert_eq!(workload::state(&db), 2);
        assert_eq!(refused(&db), Some(ErrorCode::DiskFull), "{}", last_error());
        assert!(last_error().contains("app.db-dash: "), "{}", last_error());
        assert!(!exists(&beside(&path, "-dash")));
    }
    let reading = Connection::open(uri(&path, "&mode=ro")).expect("opens");
    assert_eq!(workload::state(&reading), 2);
    reading.close().expect("closes");
    // Others write meanwhile, and change the schema.
    let stock = suite::stock(&path);
    stock.execute_batch("PRAGMA journal_mode=MEMORY; PRAGMA synchronous=OFF").expect("sets");
    workload::commit_next(&stock).expect("no space is needed");
    assert_eq!(workload::state(&db), 3);
    stock.execute_batch("ALTER TABLE log RENAME TO other").expect("no space is needed");
    let found = db.query_row("SELECT count(*) FROM other", [], |row| row.get::<_, i64>(0));
    found.expect("the schema is read anew");
    stock.execute_batch("ALTER TABLE other RENAME TO log").expect("no space is needed");
    stock.close().expect("closes");
    drop(filler);
    assert_eq!(workload::commit_next(&db).expect("there is space"), 4);
    assert_eq!(workload::state(&db), 4);
}

/// Machines die of a full disk: what a kill has left is recovered and read there all the same.
#[test]
fn what_was_killed_is_recovered_without_space() {
    for parameters in ["", "&journal_mode=wal", "&journal_mode=statement"] {
        let Some(mount) = Mount::tmpfs("4m") else { return };
        let path = mount.path().join("app.db");
        let part = Part { parameters, ..Part::default() };
        let mut killed = Session::dash(&path, part).expect("opens");
        killed.must("CREATE TABLE t(v)");
        (0..3).for_each(|_| drop(killed.must("INSERT INTO t VALUES (1)")));
        killed.kill();
        let filler = Filler::new(mount.path(), 0);
        let found =
            Session::dash(&path, part).unwrap_or_else(|error| panic!("{parameters}: {error}"));
        assert_eq!({ found }.must("SELECT count(*) FROM t"), "3", "{parameters}");
        drop(filler);
    }
}

/// A connection that was open when the database came to rest.
#[test]
fn a_database_that_came_to_rest_is_read_without_space() {
    for kind in [Kind::Ext4, Kind::Btrfs] {
        let megabytes = if matches!(kind, Kind::Ext4) { 16 } else { 128 };
        let Some(mount) = Mount::image(kind, megabytes, &["-q"]) else { return };
        let path = mount.path().join("app.db");
        closed(&path);
        let db = Connection::open(uri(&path, "&dash_rest=10")).expect("opens");
        let mut state = 2;
        for _ in 0..3 {
            state += 1;
            assert_eq!(workload::commit_next(&db).expect("there is space"), state);
            wait_for_rest(&path);
            let filler = Filler::new(mount.path(), 0);
            for _ in 0..5 {
                assert_eq!(workload::state(&db), state);
                let committed = full_or_done(workload::commit_next(&db), "full");
                rolled_back(&db);
                state += i64::from(committed.is_some());
                std::thread::sleep(Duration::from_millis(15));
            }
            assert_eq!(workload::state(&db), state);
            drop(filler);
        }
    }
}

#[test]
fn a_database_that_came_to_rest_is_read_where_nothing_may_be_written() {
    let Some(mount) = Mount::image(Kind::Ext4, 16, &["-q"]) else { return };
    let path = mount.path().join("app.db");
    closed(&path);
    let db = Connection::open(uri(&path, "&dash_rest=10")).expect("opens");
    workload::commit_next(&db).expect("commits");
    wait_for_rest(&path);
    mount.remount("ro");
    for _ in 0..2 {
        assert_eq!(workload::state(&db), 3);
        assert_eq!(refused(&db), Some(ErrorCode::ReadOnly), "{}", last_error());
    }
    mount.remount("rw");
    assert_eq!(workload::commit_next(&db).expect("it may be written again"), 4);
}

/// On blocks below 4 KiB stock SQLite leaves holes in `-shm`, which nobody may touch without space.
/// It is to be made anew, of frames that somebody has left in `-wal`.
#[test]
fn beside_a_wal_index_that_stock_sqlite_has_made() {
    let Some(mount) = Mount::image(Kind::Ext4, 16, &["-q", "-b", "1024"]) else { return };
    let (path, twin) = (mount.path().join("app.db"), mount.path().join("twin.db"));
    suite::load();
    let db = Connection::open(&path).expect("opens");
    db.execute_batch("PRAGMA journal_mode=WAL; CREATE TABLE t(n)").expect("there is space");
    db.close().expect("closes");
    fs::copy(&path, &twin).expect("there is space");
    let other = Connection::open(&twin).expect("opens");
    other.execute_batch("INSERT INTO t VALUES(1)").expect("there is space");
    let stock = Connection::open(&path).expect("opens");
    let count = |db: &Connection| db.query_row("SELECT count(*) FROM t", [], |row| row.get(0));
    assert_eq!(count(&stock), Ok(0_i64));
    fs::copy(beside(&twin, "-wal"), beside(&path, "-wal")).expect("there is space");
    let shm = File::options().write(true).open(beside(&path, "-shm")).expect("is there");
    for free in 0..40 {
        shm.write_all_at(&[0; 96], 0).expect("has blocks");
        let filler = Filler::new(mount.path(), free);
        let found = Connection::open(uri(&path, "")).and_then(|db| count(&db));
        let found = full_or_done(found, &format!("{free} blocks free"));
        assert!(found.is_none_or(|found| found == 1), "{free} blocks free: {found:?}");
        drop(filler);
    }
    assert_eq!(count(&suite::open(&path)), Ok(1));
}
