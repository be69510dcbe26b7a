//! SQLite finds a rollback journal by its name. A connection in one of SQLite's own modes that is
//! idle since before the names were exchanged has the other copy open: the journal of somebody who
//! is writing `app.db` is not its own, and was rolled back into its copy and removed. The writer
//! was killed then, and nothing was left to roll back its half-written transaction.

mod suite;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use suite::peers::{Part, Session};
use suite::workload::{self, STATE};
use suite::{one, open};

fn plain() -> Part<'static> {
    Part { parameters: "&journal_mode=delete", ..Part::default() }
}

/// Where nobody can tell who has a file open, stock SQLite may write it: without leases, on files
/// of somebody else.
fn unprotect(path: &Path) {
    let file = File::options().read(true).write(true).open(path).expect("ours");
    let mut header = [0; 100];
    file.read_exact_at(&mut header, 0).expect("reads");
    assert_eq!(header[18], 4, "not protected");
    header[18] = 1;
    header[24] ^= 0x80;
    header[92] ^= 0x80;
    file.write_all_at(&header, 0).expect("writes");
}

#[test]
fn by_a_plain_connection_that_was_idle_meanwhile() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("app.db");
    let db = open(&path);
    workload::make(&db);
    workload::commit_next(&db).expect("commits");
    db.close().expect("closes");

    let mut idle = Session::dash(&path, plain()).expect("opens");
    idle.must(STATE);
    let db = open(&path);
    let known = workload::commit_next(&db).expect("commits");
    // Who opens the other file keeps the name from going back to the first one.
    let mut late = Session::stock(&path);
    late.must(STATE);
    db.close().expect("closes");
    late.close();
    let mut writer = Session::dash(&path, plain()).expect("opens");
    let error = writer.sql("UPDATE log SET n = n").expect_err("another program has the other file");
    assert!(error.contains("readonly"), "{error}");
    writer.close();
    unprotect(&path);
    let mut writer = Session::dash(&path, plain()).expect("opens");
    let journal = writer.writes_in_part(&path);

    let error = idle.sql(STATE).expect_err("another file has the name");
    assert!(error.contains("readonly"), "{error}");
    assert!(journal.exists(), "the journal of a writer was removed");
    writer.kill();
    let db = open(&path);
    assert_eq!(workload::state(&db), known);
    assert_eq!(one::<String>(&db, "PRAGMA integrity_check"), "ok");
    // Opened again, it goes on.
    db.close().expect("closes");
    drop(idle);
    let mut again = Session::dash(&path, plain()).expect("opens");
    again.must(STATE);
}
