//! WAL-25, WAL-26, WAL-27: a log that lies elsewhere is found by everybody, is made before its sign
//! says so, and is never begun empty where it is lost, another one's or cut.

use dash_simulated::{Effect, Everything, Fault, Machine, OperationKind};
use dash_storage::{Directory, File, OpenMode, Storage};
use dash_wal::{Choice, Connection, OpenOptions, Process, Tuning, recover};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::common::{DB, Fate, LOG, Tale, is_fenced, overwrite};

/// A session in memory, cut off by a power loss that takes all of `-wal` that it can.
fn cut_off() -> Tale {
    let (tale, db) = Tale::begun_in_memory();
    for _ in 0..3 {
        db.put();
    }
    db.kill();
    tale.after(tale.machine.power_loss(&mut Fate::nothing()))
}

/// A session in memory, closed.
fn closed() -> Tale {
    let (tale, db) = Tale::begun_in_memory();
    db.put();
    db.close();
    tale.machine.write_back();
    tale
}

fn folder(machine: &Machine, path: &str) -> <dash_simulated::Simulated as Storage>::Directory {
    machine.process().open_directory(Path::new(path)).unwrap()
}

fn remove_log(machine: &Machine) {
    folder(machine, "/pmem").unlink(OsStr::new("app.db-dashlog")).unwrap();
}

fn refused(tale: &Tale, what: &str) {
    let before = tale.machine.file_view("/app.db-wal");
    for ending in [DB, "--discard"] {
        let refused = tale.try_open().err().unwrap();
        assert!(refused.contains(what), "{refused}");
        assert!(refused.contains(ending.trim_start_matches('/')), "{refused}");
    }
    assert_eq!(tale.machine.file_view("/app.db-wal"), before, "nothing was touched");
}

/// Opens the engine alone.
pub(crate) fn open(
    machine: &Machine,
    log: Option<&str>,
) -> dash_wal::Result<Connection<dash_simulated::Simulated>> {
    let log = log.map(PathBuf::from);
    let options = OpenOptions { log, tuning: Tuning::tiny(), ..OpenOptions::default() };
    Connection::open(&machine.process(), Path::new(DB), &options, &Arc::<Process<_>>::default())
}

/// Nobody need say where it is.
#[test]
pub(crate) fn by_whoever_comes_without_being_told() {
    let tale = cut_off();
    open(&tale.machine, None).unwrap().close().unwrap();
    assert_eq!(tale.open().content(), tale.acknowledged());
    tale.survives_all();
}

#[test]
pub(crate) fn not_where_it_is_lost() {
    for tale in [cut_off(), closed()] {
        remove_log(&tale.machine);
        refused(&tale, "/pmem/app.db-dashlog is missing");
        assert!(recover(&tale.machine.process(), Path::new(DB), Choice::Keep).is_err());
        recover(&tale.machine.process(), Path::new(DB), Choice::Discard).unwrap();
        let found = tale.open().content();
        let tale = tale.with(found);
        tale.all_counts();
        tale.open().put();
        tale.survives_all();
    }
}

/// As a tmpfs leaves it after a reboot.
#[test]
pub(crate) fn not_where_its_folder_is_gone() {
    let tale = cut_off();
    remove_log(&tale.machine);
    folder(&tale.machine, "/").remove_directory(OsStr::new("pmem")).unwrap();
    refused(&tale, "/pmem/app.db-dashlog is missing");
}

/// A log that is whole, and of another database.
#[test]
pub(crate) fn not_where_another_one_lies() {
    let other = closed();
    let others = other.machine.file_view(LOG).unwrap();
    for tale in [cut_off(), closed()] {
        let mut others = others.clone();
        // Machines draw the same numbers: of each head the id, and its checksum.
        for head in [0, 512] {
            if others[head..head + 8].iter().any(|&byte| byte != 0) {
                others[head + 16] ^= 1;
                let mut sum = crc32fast::Hasher::new();
                sum.update(&others[head..head + 12]);
                sum.update(&[0; 4]);
                sum.update(&others[head + 16..head + 512]);
                let sum = sum.finalize().to_le_bytes();
                others[head + 12..head + 16].copy_from_slice(&sum);
            }
        }
        put(&tale.machine, &others);
        refused(&tale, "is not the log of app.db");
    }
}

fn put(machine: &Machine, bytes: &[u8]) {
    remove_log(machine);
    let mode = OpenMode::CreateNew { permissions: 0o644 };
    let log = folder(machine, "/pmem").open(OsStr::new("app.db-dashlog"), mode).unwrap();
    log.write_at(bytes, 0).unwrap();
}

#[test]
pub(crate) fn nor_where_it_was_cut_or_wiped() {
    for tale in [cut_off(), closed()] {
        let whole = tale.machine.file_view(LOG).unwrap();
        put(&tale.machine, &whole[..whole.len() - 4096]);
        refused(&tale, "is shorter than it was");
        put(&tale.machine, &vec![0; whole.len()]);
        refused(&tale, "is not the log of app.db");
    }
}

/// Nor where the sign was emptied or written over after a power loss. At rest that says nothing.
#[test]
pub(crate) fn nor_where_its_sign_was_wiped() {
    for bytes in [vec![], vec![0; 100], b"no sign".to_vec()] {
        let tale = cut_off();
        let sign = tale.machine.file_view("/app.db-dashlog").unwrap();
        overwrite(&tale.machine, "app.db-dashlog", &bytes);
        for told in [tale.clone(), tale.untold()] {
            let refused = told.try_open().err().unwrap();
            assert!(refused.contains("app.db-dashlog is neither a log nor"), "{refused}");
        }
        overwrite(&tale.machine, "app.db-dashlog", &sign);
        assert_eq!(tale.open().content(), tale.acknowledged());
        let tale = closed();
        overwrite(&tale.machine, "app.db-dashlog", &bytes);
        assert_eq!(tale.untold().open().content(), tale.acknowledged());
    }
}

/// Whoever comes while others use it, and does not find it, is not let in. WAL-29.
#[test]
pub(crate) fn not_where_only_others_find_it() {
    for more in [0, 2] {
        let (tale, db) = Tale::begun_in_memory();
        (0..more).for_each(|_| db.put());
        remove_log(&tale.machine);
        let refused = open(&tale.machine, None).err().unwrap().to_string();
        assert!(refused.contains("/pmem/app.db-dashlog is missing here"), "{refused}");
        db.put();
    }
    // A log that was made, in no session yet.
    let tale = closed();
    let _first = open(&tale.machine, None).unwrap();
    remove_log(&tale.machine);
    let refused = open(&tale.machine, None).err().unwrap().to_string();
    assert!(refused.contains("is missing here"), "{refused}");
}

/// A copy of the database and its sign: the log is the original's.
#[test]
pub(crate) fn not_by_a_copy() {
    let tale = closed();
    let copy = |from: &str, to: &str| {
        let mode = OpenMode::Create { permissions: 0o644 };
        let file = folder(&tale.machine, "/").open(OsStr::new(to), mode).unwrap();
        file.write_at(&tale.machine.file_view(from).unwrap(), 0).unwrap();
    };
    copy("/app.db", "copy.db");
    copy("/app.db-dashlog", "copy.db-dashlog");
    let (path, home) = (Path::new("/copy.db"), tale.machine.process());
    let open = || {
        let options = OpenOptions { tuning: Tuning::tiny(), ..OpenOptions::default() };
        Connection::open(&home, path, &options, &Arc::<Process<_>>::default())
    };
    let refused = open().err().unwrap().to_string();
    assert!(refused.contains("copy.db is a copy"), "{refused}");
    recover(&home, path, Choice::Discard).unwrap();
    open().unwrap().close().unwrap();
    // The original has its log.
    assert_eq!(tale.open().content(), tale.acknowledged());
    tale.survives_all();
}

/// As long as no log was made the sign says nothing to a copy, nor to a database that is made anew
/// where a power loss took the first one.
#[test]
pub(crate) fn nor_by_what_was_another_database() {
    for (log, is_signed) in [(None, false), (Some(LOG), true)] {
        let machine = Machine::new(1);
        machine.set_byte_addressable_folder("pmem");
        open(&machine, Some(LOG)).unwrap().close().unwrap();
        assert!(machine.exists("/app.db-dashlog") && !machine.exists(LOG));
        folder(&machine, "/").unlink(OsStr::new("app.db")).unwrap();
        open(&machine, log).unwrap().close().unwrap();
        assert_eq!(machine.exists("/app.db-dashlog"), is_signed);
    }
}

/// A person says that all of it was moved.
#[test]
pub(crate) fn but_by_a_database_that_moved_with_it() {
    let tale = cut_off();
    // As if its inode number were another one.
    let bytes = tale.machine.file_view(DB).unwrap();
    let root = folder(&tale.machine, "/");
    root.unlink(OsStr::new("app.db")).unwrap();
    let mode = OpenMode::CreateNew { permissions: 0o644 };
    root.open(OsStr::new("app.db"), mode).unwrap().write_at(&bytes, 0).unwrap();
    refused(&tale, "app.db is a copy");
    recover(&tale.machine.process(), Path::new(DB), Choice::Keep).unwrap();
    assert_eq!(tale.open().content(), tale.acknowledged());
    tale.survives_all();
}

/// Its sign says that it is there before the first record, and only once that is so.
#[test]
pub(crate) fn as_its_sign_says_before_the_first_record() {
    let tale = Tale::in_memory();
    let db = tale.open();
    db.put();
    tale.machine.watch(|machine, operation| {
        let ring = operation.range.as_ref().is_some_and(|range| range.start >= 4096);
        if operation.kind == OperationKind::Store && ring {
            let after = machine.power_loss(&mut Fate::nothing());
            let lost = after.killed();
            if lost.exists(LOG) {
                remove_log(&lost);
            }
            assert!(open(&lost, None).is_err(), "the log may hold a commit");
            // As a copy that leaves folders out, and with them the name fence.
            if is_fenced(&lost) {
                let note = OsStr::new("open-this-database-through-dash-first.txt");
                folder(&lost, "/app.db-journal").unlink(note).unwrap();
                folder(&lost, "/").remove_directory(OsStr::new("app.db-journal")).unwrap();
            }
            assert!(open(&lost, None).is_err(), "the log may hold a commit, by its sign");
        }
    });
    db.put();
    tale.machine.watch(|_, _| {});
    assert!(tale.flushes("-dashlog") > 0);
}

/// What fails there is said by its path.
#[test]
pub(crate) fn and_is_called_by_its_path() {
    let tale = closed();
    let fault = Fault::new(Effect::Error(libc::EIO)).on(OperationKind::Read);
    tale.machine.fail(fault.of_inode(tale.inode("-dashlog")).forever());
    let failed = open(&tale.machine, None).err().unwrap().to_string();
    assert!(failed.contains(&format!(" {LOG}: ")), "{failed}");
}

/// At rest it moves to where somebody names, and back; whatever is lost meanwhile.
#[test]
pub(crate) fn and_moves_at_rest() {
    let (tale, db) = Tale::begun_in_memory();
    db.put();
    db.close();
    tale.watch();
    open(&tale.machine, Some("/pmem/second")).unwrap().close().unwrap();
    open(&tale.machine, Some("/")).unwrap().close().unwrap();
    tale.done();
    assert!(!tale.machine.exists(LOG) && !tale.machine.exists("/app.db-dashlog"));
    tale.survives_all();
}

/// Also after a crash, when a name fence stands.
#[test]
pub(crate) fn also_once_it_was_recovered() {
    let tale = cut_off();
    assert!(is_fenced(&tale.machine));
    tale.watch();
    open(&tale.machine, Some("/pmem/second")).unwrap().close().unwrap();
    tale.done();
    let tale = tale.after(tale.machine.power_loss(&mut Everything));
    assert!(!tale.machine.exists(LOG));
    tale.survives_all();
}

/// From beside the database.
#[test]
pub(crate) fn and_away_from_the_database() {
    let tale = Tale::in_memory();
    open(&tale.machine, Some("/")).unwrap().close().unwrap();
    tale.watch();
    let db = tale.open();
    db.put();
    db.put();
    db.put();
    tale.done();
    assert!(tale.machine.exists(LOG));
    tale.survives_all();
}

/// While it is in use it stays where it is.
#[test]
pub(crate) fn but_not_while_it_is_open() {
    let (tale, db) = Tale::begun_in_memory();
    let refused = open(&tale.machine, Some("/pmem/second")).err().unwrap().to_string();
    assert!(refused.contains("is open with its log at /pmem/app.db-dashlog"), "{refused}");
    open(&tale.machine, Some("/pmem")).unwrap().close().unwrap();
    open(&tale.machine, None).unwrap().close().unwrap();
    db.put();
    tale.survives_all();
}

/// What is no log of anybody's is not taken for one.
#[test]
pub(crate) fn nor_over_a_file_that_is_there() {
    let tale = Tale::in_memory();
    let mode = OpenMode::CreateNew { permissions: 0o644 };
    let file = folder(&tale.machine, "/pmem").open(OsStr::new("notes"), mode).unwrap();
    file.write_at(b"not a log", 0).unwrap();
    let refused = open(&tale.machine, Some("/pmem/notes")).err().unwrap().to_string();
    assert!(refused.contains("a file is there"), "{refused}");
    let missing = open(&tale.machine, Some("/nowhere/log")).err().unwrap().to_string();
    assert!(missing.contains("/nowhere/log"), "{missing}");
    let relative = open(&tale.machine, Some("log")).err().unwrap().to_string();
    assert!(relative.contains("absolute"), "{relative}");
    assert_eq!(tale.open().content(), 0);
}

/// In a folder it has a name of its own, by the database's.
#[test]
pub(crate) fn under_a_name_of_its_own_in_a_folder() {
    let tale = Tale::in_memory();
    open(&tale.machine, Some("/")).unwrap().close().unwrap();
    open(&tale.machine, Some("/pmem")).unwrap().close().unwrap();
    let sign = tale.machine.file_view("/app.db-dashlog").unwrap();
    let path = String::from_utf8(sign[38..].to_vec()).unwrap();
    let (start, end) = ("/pmem/app.db-", "-dashlog");
    assert!(path.starts_with(start) && path.ends_with(end), "{path}");
    assert_eq!(path.len(), start.len() + 16 + end.len());
    open(&tale.machine, Some("/pmem/")).unwrap().close().unwrap();
    assert_eq!(tale.machine.file_view("/app.db-dashlog").unwrap(), sign, "it is the same");
}

/// Once nothing may stay of what was deleted, the log goes and its place is kept.
#[test]
pub(crate) fn and_goes_where_nothing_is_to_stay() {
    let (tale, db) = Tale::begun_in_memory();
    db.put();
    db.close();
    tale.watch();
    let connection = open(&tale.machine, None).unwrap();
    connection.keep_no_log();
    connection.close().unwrap();
    tale.done();
    assert!(!tale.machine.exists(LOG) && tale.machine.exists("/app.db-dashlog"));
    let db = tale.open();
    db.put();
    db.put();
    db.put();
    assert!(tale.machine.exists(LOG));
    tale.survives_all();
}

/// A file with two names may be another one's.
#[test]
pub(crate) fn not_by_a_sign_with_another_name() {
    let tale = closed();
    let folder = folder(&tale.machine, "/");
    folder.link(OsStr::new("app.db-dashlog"), OsStr::new("other")).unwrap();
    refused(&tale, "is not followed");
    folder.unlink(OsStr::new("other")).unwrap();
    folder.flush().unwrap();
    tale.survives_all();
}

#[test]
pub(crate) fn not_where_another_name_leads_to_it() {
    for tale in [cut_off(), closed()] {
        let before = tale.machine.file_view(LOG).unwrap();
        let folder = folder(&tale.machine, "/pmem");
        folder.link(OsStr::new("app.db-dashlog"), OsStr::new("other")).unwrap();
        refused(&tale, "is left alone");
        assert_eq!(tale.machine.file_view(LOG).unwrap(), before);
        folder.unlink(OsStr::new("other")).unwrap();
        folder.flush().unwrap();
        tale.survives_all();
    }
}
