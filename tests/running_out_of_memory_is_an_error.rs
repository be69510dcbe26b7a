//! Where the host's memory runs out, statements fail with `SQLITE_NOMEM` as they do with stock
//! SQLite, and the host goes on (SEC8): a process with a limited address space writes, fails, gets
//! its memory back, and finds a sound database in which it can commit.

#![expect(unsafe_code, reason = "SQLite is called from where nothing else allocates")]

mod suite;

use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr::{null, null_mut};

use dash_testing::roles::{again, role};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use rusqlite::ffi;

/// Bytes that a process may still take, from the moment the database is open or before.
const HEADROOMS: [u64; 12] = [
    0,
    64 << 10,
    128 << 10,
    200 << 10,
    400 << 10,
    800 << 10,
    1500 << 10,
    2 << 20,
    4 << 20,
    6 << 20,
    8 << 20,
    12 << 20,
];

/// Small, large and very large transactions: in memory, written before their end, undone.
const STATEMENTS: [&CStr; 8] = [
    c"CREATE TABLE IF NOT EXISTS t(a)",
    c"INSERT INTO t WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 2000) \
      SELECT randomblob(900) FROM c",
    c"INSERT INTO t WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 20000) \
      SELECT randomblob(900) FROM c",
    c"UPDATE t SET a = randomblob(800) WHERE rowid % 7 = 0",
    c"SAVEPOINT s; UPDATE t SET a = randomblob(900); ROLLBACK TO s; RELEASE s",
    c"DELETE FROM t WHERE rowid % 3 = 0",
    c"VACUUM",
    c"INSERT INTO t VALUES (randomblob(100))",
];

fn limit(headroom: Option<u64>) {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages: u64 = statm.split(' ').next().and_then(|size| size.parse().ok()).expect("a number");
    let (_, hard) = getrlimit(Resource::RLIMIT_AS).expect("a known limit");
    let soft = headroom.map_or(hard, |headroom| pages * 4096 + headroom);
    setrlimit(Resource::RLIMIT_AS, soft, hard).expect("lower than the hard limit");
}

/// Whether a code says that there is no memory.
fn is_nomem(code: c_int) -> bool {
    code == ffi::SQLITE_NOMEM || code == ffi::SQLITE_IOERR_NOMEM
}

fn execute(db: *mut ffi::sqlite3, sql: &CStr) -> c_int {
    // SAFETY: an open connection, or null where opening failed, which SQLite refuses by itself.
    unsafe {
        ffi::sqlite3_exec(db, sql.as_ptr(), None, null_mut(), null_mut());
        ffi::sqlite3_extended_errcode(db)
    }
}

fn open(uri: &CStr) -> (*mut ffi::sqlite3, c_int) {
    let mut db = null_mut();
    let flags = ffi::SQLITE_OPEN_READWRITE | ffi::SQLITE_OPEN_CREATE | ffi::SQLITE_OPEN_URI;
    // SAFETY: a place for the connection, and a text that ends with a zero.
    let code = unsafe { ffi::sqlite3_open_v2(uri.as_ptr(), &raw mut db, flags, null()) };
    (db, code)
}

fn says(db: *mut ffi::sqlite3) -> String {
    // SAFETY: SQLite answers a text for every connection, and one for null.
    unsafe { CStr::from_ptr(ffi::sqlite3_errmsg(db).cast::<c_char>()) }.to_string_lossy().into()
}

/// The part of the other process: says how many statements failed.
#[test]
#[ignore = "the part of another process"]
fn writes_with_little_memory() {
    let Some(path) = role("writes_with_little_memory") else { return };
    let get = |name: &str| std::env::var(name).expect("a part has its orders");
    let headroom = Some(get("DASH_SUITE_HEADROOM").parse().expect("a number"));
    let uri = CString::new(suite::uri(path, "")).expect("no zeros");
    let opened_before = get("DASH_SUITE_OPENED") == "before";
    suite::load();
    let (mut db, mut codes) = (null_mut(), [ffi::SQLITE_OK; STATEMENTS.len() + 1]);
    if opened_before {
        (db, codes[0]) = open(&uri);
        execute(db, c"SELECT count(*) FROM sqlite_master");
    }
    limit(headroom);
    if !opened_before {
        (db, codes[0]) = open(&uri);
    }
    for (code, sql) in codes[1..].iter_mut().zip(STATEMENTS) {
        *code = execute(db, sql);
    }
    limit(None);
    let failed = codes.iter().filter(|&&code| code != ffi::SQLITE_OK).count();
    let fitting = |&code: &c_int| {
        let follows = code == ffi::SQLITE_ERROR || code == ffi::SQLITE_MISUSE;
        code == ffi::SQLITE_OK || is_nomem(code) || (failed > 1 && follows)
    };
    assert!(codes.iter().all(fitting), "{codes:?}: {}", says(db));
    if codes[0] == ffi::SQLITE_OK {
        for sql in [STATEMENTS[0], STATEMENTS[1], STATEMENTS[7]] {
            let code = execute(db, sql);
            assert_eq!(code, ffi::SQLITE_OK, "with memory again: {} after {codes:?}", says(db));
        }
    }
    // SAFETY: nothing of the connection is in use.
    let closed = unsafe { ffi::sqlite3_close(db) };
    assert_eq!(closed, ffi::SQLITE_OK);
    println!("failed={failed}");
}

#[test]
fn a_process_without_memory_gets_errors_and_goes_on() {
    let mut failed = 0;
    for opened in ["before", "after"] {
        for headroom in HEADROOMS {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("app.db");
            let played = again("writes_with_little_memory", &path)
                .env("DASH_SUITE_HEADROOM", headroom.to_string())
                .env("DASH_SUITE_OPENED", opened)
                // Threads have heaps of 64 MiB otherwise, which are theirs before the limit.
                .env("MALLOC_ARENA_MAX", "1")
                .output()
                .expect("a process");
            let (out, err) =
                [&played.stdout, &played.stderr].map(|o| String::from_utf8_lossy(o)).into();
            let what = format!("opened {opened} the limit, {headroom} bytes more");
            assert!(played.status.success(), "{what}: {:?}\n{out}\n{err}", played.status);
            failed += u64::from(!out.contains("failed=0"));
            if path.exists() {
                suite::check(&suite::open(&path));
                suite::check(&suite::stock(&path));
            }
        }
    }
    assert!(failed >= 6, "memory never ran out: {failed}");
    println!("{failed} of {} processes ran out of memory", 2 * HEADROOMS.len());
}
