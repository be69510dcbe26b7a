//! Whoever may make files beside a database gives a file of somebody else a second name there, that
//! dash uses: a hard link. `app.db-shm` was emptied, written and given to the database's owner.
//! Whatever has another name is refused now, with the reason, or left as it is. SEC S2-9.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

mod suite;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use dash_testing::machine::is_root;
use dash_testing::names::beside;
use suite::parts::Part;
use suite::peers::Session;
use suite::sql::run;

/// All names that dash gives to files, and those of stock SQLite's that it uses.
const NAMES: [&str; 11] = [
    "-wal",
    "-shm",
    "-dash",
    "-dashlog",
    "-journal",
    "-shadow",
    "-shadow-tmp",
    "-dash-sign",
    "-dash-fence",
    "-dash-new",
    ".dash-backup-unfinished",
];

/// A database in this mode of SQLite's, of another user's where that can be, and a file of this
/// one's.
fn made(mode: &str, content: &[u8]) -> (tempfile::TempDir, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let (path, precious) = (folder.path().join("app.db"), folder.path().join("precious"));
    run(&suite::stock(&path), "CREATE TABLE t(v)");
    run(&suite::stock(&path), &format!("PRAGMA journal_mode={mode}"));
    if is_root() {
        chown(&path, Some(4001), Some(5001)).unwrap();
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o660)).unwrap();
    fs::write(&precious, content).unwrap();
    fs::set_permissions(&precious, fs::Permissions::from_mode(0o600)).unwrap();
    (folder, path, precious)
}

/// What a file is, and when that changed last.
fn seen(path: &Path) -> (Vec<u8>, [u64; 4], [i64; 2]) {
    let found = fs::metadata(path).unwrap();
    let is = [found.ino(), found.mode().into(), found.uid().into(), found.gid().into()];
    (fs::read(path).unwrap(), is, [found.ctime(), found.ctime_nsec()])
}

fn session(path: &Path, parameters: &str) -> Result<(), String> {
    let mut session = Session::dash(path, Part { parameters, ..Part::default() })?;
    let done = (0..12).try_for_each(|_| session.sql("INSERT INTO t VALUES (1)").map(drop));
    let said = session.sql("SELECT ifnull(dash_last_error(), '')").unwrap_or_default();
    let copied = session.sql(&format!("SELECT dash_backup('{}')", beside(path, "").display()));
    session.close();
    drop(copied);
    done.map_err(|error| format!("{error}; {said}"))
}

#[test]
fn whatever_the_mode() {
    let modes = [
        ("wal", ""),
        ("wal", "&journal_mode=statement&dash_commit=paper"),
        ("wal", "&dash_wal=memory"),
        ("wal", "&journal_mode=delete"),
        ("wal", "&journal_mode=shadow"),
        ("wal", "&mode=ro"),
        ("delete", "&journal_mode=delete"),
        ("delete", "&journal_mode=wal"),
        ("delete", "&journal_mode=shadow"),
    ];
    for content in [&b"precious"[..], &[0; 8192]] {
        for (mode, parameters) in modes {
            for name in NAMES {
                let (_folder, path, precious) = made(mode, content);
                fs::hard_link(&precious, beside(&path, name)).unwrap();
                let before = seen(&precious);
                let done = session(&path, parameters);
                let what = format!("app.db{name} in {mode} with {parameters:?}: {done:?}");
                let (bytes, is, _) = seen(&precious);
                assert!(bytes == before.0, "{what}: it has {} bytes", bytes.len());
                assert_eq!(is, before.1, "{what}");
                let refused = done.err().filter(|why| !why.contains("readonly database"));
                if let Some(why) = refused {
                    // What lies under a name between two renames gets its own name first.
                    let name = name.strip_suffix("-tmp").unwrap_or(name);
                    // And the name fence is a folder.
                    let why = why.contains(&format!("app.db{name} is another file, too"))
                        || why.contains("app.db-dash-fence: Not a directory")
                        // Nor can this connection be asked for the reason.
                        || why.ends_with("database file; ");
                    assert!(why, "{what}");
                }
            }
        }
    }
}

/// At `app.db-shm` SQLite's own code would have done so, too.
#[test]
fn nor_is_the_wal_index() {
    for parameters in ["", "&journal_mode=statement", "&dash_wal=memory"] {
        let (_folder, path, precious) = made("wal", b"precious");
        fs::hard_link(&precious, beside(&path, "-shm")).unwrap();
        let before = seen(&precious);
        let why = session(&path, parameters).unwrap_err();
        assert!(why.contains("app.db-shm is another file, too (2 hard links)"), "{why}");
        assert!(seen(&precious) == before, "{parameters}");
    }
}

/// A link that is put there while the database is open is not written at the close either: `-wal`
/// was cut to nothing by its name.
#[test]
fn nor_one_that_comes_meanwhile() {
    let modes = [
        "&journal_mode=wal",
        "&journal_mode=statement&dash_commit=paper",
        "&dash_wal=memory",
        "&journal_mode=shadow",
    ];
    for parameters in modes {
        for name in ["-wal", "-shm", "-dash", "-dashlog", "-shadow", "-shadow-tmp"] {
            for later in ["PRAGMA wal_checkpoint(TRUNCATE)", "INSERT INTO t VALUES (2)"] {
                let (_folder, path, precious) = made("wal", b"precious");
                let part = Part { parameters, ..Part::default() };
                let mut session = Session::dash(&path, part).unwrap();
                (0..12).for_each(|_| drop(session.must("INSERT INTO t VALUES (1)")));
                drop(fs::rename(beside(&path, name), beside(&path, "-aside")));
                fs::hard_link(&precious, beside(&path, name)).unwrap();
                let before = seen(&precious);
                drop(session.sql(later));
                session.close();
                let after = seen(&precious);
                let what = format!("app.db{name} in {parameters} and {later}");
                assert!(after.0 == before.0, "{what}: it has {} bytes", after.0.len());
                assert_eq!(after.1, before.1, "{what}");
            }
        }
    }
}
