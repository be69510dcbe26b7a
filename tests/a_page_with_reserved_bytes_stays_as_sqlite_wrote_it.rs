//! Bytes reserved at the end of each page are an extension's, such as SQLite's own `cksumvfs`,
//! which keeps a checksum of the page there. Mode shadow changes nothing in such a page, or nobody
//! could read it any more.

mod suite;

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use suite::{check, one, open, stock};

const PAGE: usize = 4096;

/// An empty database of one page, at the end of which 8 bytes are reserved: its b-tree begins to
/// fill before these.
fn reserved(path: &Path) {
    stock(path).execute_batch("PRAGMA user_version=1").expect("commits");
    let mut page = first_page(path);
    page[20] = 8;
    page[105..107].copy_from_slice(&(4096_u16 - 8).to_be_bytes());
    fs::write(path, page).expect("writes");
}

fn first_page(path: &Path) -> Vec<u8> {
    fs::read(path).expect("reads")[..PAGE].to_vec()
}

/// Both in the same sessions, in mode shadow and by stock SQLite: page 1 is the same at rest.
#[test]
fn in_every_session_and_whatever_is_committed() {
    let folder = tempfile::tempdir().expect("a folder");
    let paths = ["app.db", "stock.db"].map(|name| folder.path().join(name));
    let insert = "INSERT INTO t SELECT randomblob(0), zeroblob(900)";
    let sessions: &[&[&str]] = &[
        &["VACUUM", "CREATE TABLE t(a, b)", insert, insert],
        &[insert],
        &[insert, "BEGIN", insert, "ROLLBACK", insert, "UPDATE t SET b = zeroblob(9000)"],
        &["PRAGMA locking_mode=EXCLUSIVE", insert, insert, insert],
        &["PRAGMA cache_size=2", "UPDATE t SET b = zeroblob(8000)", "DELETE FROM t", "VACUUM"],
        &[insert],
    ];
    for (number, statements) in sessions.iter().enumerate() {
        for (path, open) in paths.iter().zip([open as fn(&Path) -> Connection, stock]) {
            if number == 0 {
                reserved(path);
            }
            let db = open(path);
            for statement in *statements {
                db.execute_batch(statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
            }
            db.close().expect("closes");
        }
        let [ours, theirs] = paths.each_ref().map(|path| first_page(path));
        assert_eq!(ours[20], 8);
        assert_eq!(ours[24..28], theirs[24..28], "session {number}: the change counter");
        assert!(ours == theirs, "session {number}: page 1 is another one");
    }
    let db = stock(&paths[0]);
    check(&db);
    assert_eq!(one::<i64>(&db, "SELECT count(*) FROM t"), 1);
}
