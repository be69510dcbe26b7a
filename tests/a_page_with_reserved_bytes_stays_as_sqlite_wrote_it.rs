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

/// The checksum that `cksumvfs` keeps in the reserved bytes.
fn sum(page: &mut [u8]) {
    let (mut a, mut b) = (0_u32, 0_u32);
    for pair in page[..PAGE - 8].chunks(8) {
        let word = |at: usize| u32::from_le_bytes(pair[at..at + 4].try_into().expect("four"));
        a = a.wrapping_add(word(0)).wrapping_add(b);
        b = b.wrapping_add(word(4)).wrapping_add(a);
    }
    page[PAGE - 8..PAGE - 4].copy_from_slice(&a.to_le_bytes());
    page[PAGE - 4..].copy_from_slice(&b.to_le_bytes());
}

/// Stock SQLite would be asked to change page 1 past the extension.
#[test]
fn a_checksum_of_page_1_is_not_made_wrong() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("app.db");
    reserved(&path);
    let mut summed = first_page(&path);
    sum(&mut summed);
    fs::write(&path, &summed).expect("writes");
    let db = open(&path);
    for mode in ["wal", "statement"] {
        let asked = db.query_row(&format!("PRAGMA journal_mode={mode}"), [], |row| row.get(0));
        let asked: rusqlite::Result<String> = asked;
        assert!(asked.is_err_and(|error| error.to_string().contains("cksumvfs")), "{mode}");
    }
    let copy = folder.path().join("copy.db").display().to_string();
    let copied = db.query_row("SELECT dash_backup(?)", [copy], |row| row.get::<_, i64>(0));
    let error = copied.expect_err("a copy that nobody can read").to_string();
    assert!(error.contains("cksumvfs"), "{error}");
    db.close().expect("closes");
    assert!(first_page(&path) == summed);
}
