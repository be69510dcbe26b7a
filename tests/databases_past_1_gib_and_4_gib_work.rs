//! Databases across 1 GiB, where SQLite leaves out the page with the lock bytes, and across 4 GiB,
//! where an offset no longer fits into 32 bits. The files are sparse at first, all but a few of
//! their pages are free; the shadow may take up its full length. So those past 4 GiB run only when
//! asked for:
//!
//! `cargo test --test databases_past_1_gib_and_4_gib_work -- --include-ignored`, best with
//! `--release`.

mod suite;

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

use suite::sql::{content, run};

const GIB: u64 = 1 << 30;

/// Makes a database of `bytes`, whose pages behind the first few are on SQLite's list of free
/// pages. The next pages to be used are those around the 1 GiB boundary and the last ones. Not
/// `listed`: they are on no list.
fn sparse(path: &Path, page_size: u32, bytes: u64, listed: bool) {
    let stock = suite::stock(path);
    run(
        &stock,
        &format!(
            "PRAGMA page_size = {page_size};
             CREATE TABLE t(id INTEGER PRIMARY KEY, data); INSERT INTO t(data) VALUES ('first')"
        ),
    );
    drop(stock);
    let file = OpenOptions::new().read(true).write(true).open(path).expect("opens");
    let used = u32::try_from(fs::metadata(path).expect("there").len() / u64::from(page_size))
        .expect("small");
    let count = u32::try_from(bytes / u64::from(page_size)).expect("fewer pages than that");
    let lock_page = u32::try_from(GIB / u64::from(page_size)).expect("fits") + 1;
    let around = |page: u32| page.abs_diff(lock_page) < 20;
    // SQLite takes the last leaf of the first trunk, roughly: so the interesting ones come last,
    // reversed.
    let mut free: Vec<u32> =
        (used + 1..=count).filter(|page| *page != lock_page && !around(*page)).collect();
    free.extend((used + 1..=count).filter(|page| *page != lock_page && around(*page)));
    let leaves = page_size as usize / 4 - 8;
    file.set_len(bytes).expect("sparse");
    let mut next = 0;
    let mut total = 0;
    if !listed {
        free.clear();
    }
    // Each chunk is a trunk page (its first) and its leaves; the last chunk is the first of the
    // list.
    for chunk in free.chunks(leaves + 1) {
        let mut trunk = Vec::with_capacity(chunk.len() * 4 + 8);
        trunk.extend(u32::to_be_bytes(next));
        trunk.extend(u32::try_from(chunk.len() - 1).expect("few").to_be_bytes());
        chunk[1..].iter().for_each(|leaf| trunk.extend(leaf.to_be_bytes()));
        file.write_all_at(&trunk, u64::from(chunk[0] - 1) * u64::from(page_size)).expect("writes");
        next = chunk[0];
        total += u32::try_from(chunk.len()).expect("few");
    }
    let mut header = [0; 24];
    file.read_exact_at(&mut header, 24).expect("reads");
    let counter: [u8; 4] = header[..4].try_into().expect("four bytes");
    header[4..8].copy_from_slice(&count.to_be_bytes());
    header[8..12].copy_from_slice(&next.to_be_bytes());
    header[12..16].copy_from_slice(&total.to_be_bytes());
    file.write_all_at(&header, 24).expect("writes");
    file.write_all_at(&counter, 92).expect("writes");
}

/// Commits in every part of the file, is rolled back there, grows, and is read by stock SQLite.
fn works(page_size: u32, bytes: u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("app.db");
    sparse(&path, page_size, bytes, true);
    suite::check(&suite::stock(&path));
    let rows = "SELECT id, data FROM t ORDER BY id";
    let (db, other) = (suite::open(&path), suite::open(&path));
    run(&db, "PRAGMA cache_size = 20");
    let free = suite::one::<i64>(&db, "PRAGMA freelist_count");
    for round in 0..3 {
        // 50 pages: those around the boundary first.
        run(
            &db,
            &format!(
                "INSERT INTO t(data) SELECT randomblob({page_size} * 9) FROM json_each('[1,2,3,4,5,6]')"
            ),
        );
        assert_eq!(content(&other, rows), content(&db, rows), "{round}");
        run(&db, "UPDATE t SET data = data || 'x'; DELETE FROM t WHERE id % 4 = 3");
        let before = content(&db, rows);
        run(&db, &format!("BEGIN; UPDATE t SET data = randomblob({page_size} * 12); ROLLBACK"));
        assert_eq!(content(&db, rows), before);
        assert_eq!(content(&other, rows), before);
    }
    assert!(suite::one::<i64>(&db, "PRAGMA freelist_count") < free);
    suite::check(&other);
    let last = content(&db, rows);
    drop((db, other));
    let stock = suite::stock(&path);
    assert_eq!(content(&stock, rows), last);
    suite::check(&stock);
}

/// Grows across a boundary: the pages behind it are new ones. Those before it are on no list, so
/// the check of the whole database ends with a complaint that they are never used, after the trees
/// were found right.
fn grows_across(page_size: u32, boundary: u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("app.db");
    sparse(&path, page_size, boundary - 8 * u64::from(page_size), false);
    let rows = "SELECT id, data FROM t ORDER BY id";
    let (db, other) = (suite::open(&path), suite::open(&path));
    for _ in 0..6 {
        run(&db, &format!("INSERT INTO t(data) VALUES (randomblob({page_size} * 3))"));
        assert_eq!(content(&other, rows), content(&db, rows));
    }
    let bytes = suite::one::<i64>(&db, "PRAGMA page_count") * i64::from(page_size);
    assert!(u64::try_from(bytes).expect("positive") > boundary, "{bytes}");
    let last = content(&db, rows);
    drop((db, other));
    let stock = suite::stock(&path);
    assert_eq!(content(&stock, rows), last);
    let complaint = suite::one::<String>(&stock, "PRAGMA integrity_check(1)");
    assert!(complaint.contains("never used"), "{complaint}");
}

#[test]
fn across_1_gib() {
    works(65536, GIB + (64 << 20));
}

#[test]
fn growing_across_1_gib() {
    grows_across(4096, GIB);
}

#[test]
#[ignore = "takes a minute in a debug build"]
fn across_1_gib_with_other_pages() {
    works(4096, GIB + (8 << 20));
    grows_across(65536, GIB);
}

#[test]
#[ignore = "takes some minutes in a debug build, and 5 GB of disk"]
fn across_4_gib() {
    works(65536, 4 * GIB + (64 << 20));
    grows_across(65536, 4 * GIB);
}
