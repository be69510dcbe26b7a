//! The library as a host loads it.

mod common;
use common::{message, number, text};
use dash_testing::extension::library;
use dash_testing::machine::has_sqlite3;
use dash_testing::{Need, skip};
use rusqlite::Connection;
use std::process::Command;

fn names(option: &str) -> Option<String> {
    let output = Command::new("nm").args(["-D", option]).arg(library()).output().ok()?;
    assert!(output.status.success());
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn the_library_exports_its_entries_and_needs_nothing_of_sqlite() {
    let (Some(defined), Some(undefined)) = (names("--defined-only"), names("--undefined-only"))
    else {
        return skip(Need::Nm, "nm is not installed");
    };
    let mut defined: Vec<&str> =
        defined.lines().filter_map(|line| line.split_whitespace().last()).collect();
    defined.sort_unstable();
    assert_eq!(
        defined,
        ["sqlite3_dash_init", "sqlite3_dashdefault_init", "sqlite3_extension_init"]
    );
    assert!(!undefined.contains("sqlite3_"), "{undefined}");
}

#[test]
fn a_host_loads_the_library_on_a_scratch_connection_and_then_opens() {
    let scratch = Connection::open_in_memory().expect("opens");
    // SAFETY: the library is dash's own.
    #[allow(unsafe_code, reason = "loading a library")]
    unsafe {
        scratch.load_extension_enable().expect("enables");
        scratch.load_extension(library(), None::<&str>).expect("loads");
        scratch.load_extension(library(), Some("sqlite3_extension_init")).expect("loads again");
    }
    assert_eq!(text(&scratch, "SELECT dash_engine()"), "none");
    drop(scratch);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("app.db");
    let db = Connection::open(format!("file:{}?vfs=dash", path.display())).expect("opens");
    db.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (1)").expect("commits");
    assert_eq!(text(&db, "SELECT dash_engine()"), "shadow");
    let unknown = message(Connection::open(format!("file:{}?vfs=dahs", path.display())));
    assert!(unknown.contains("dahs"), "{unknown}");

    // The other entry makes it the default.
    #[allow(unsafe_code, reason = "loading a library")]
    // SAFETY: the library is dash's own.
    unsafe {
        db.load_extension_enable().expect("enables");
        db.load_extension(library(), Some("sqlite3_dashdefault_init")).expect("loads");
    }
    drop(db);
    let db = Connection::open(&path).expect("opens");
    assert_eq!(text(&db, "SELECT dash_engine()"), "shadow");
    assert_eq!(text(&db, "PRAGMA journal_mode=wal"), "wal");
    assert_eq!(text(&db, "SELECT dash_engine()"), "wal");
    assert_eq!(number(&db, "SELECT count(*) FROM t"), 1);
}

#[test]
fn the_command_line_shell_uses_it() {
    if !has_sqlite3() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("app.db");
    let script = format!(
        ".load {}\n.open file:{}?vfs=dash\n.vfsname\nPRAGMA journal_mode;\nCREATE TABLE t(x);\nINSERT INTO t VALUES (7);\nSELECT x, dash_engine() FROM t;\n",
        library().with_extension("").display(),
        path.display()
    );
    assert_eq!(shell(&script), "dash/shadow\nshadow\n7|shadow\n");
}

/// A host that names a file and no entry, such as PHP's class SQLite3.
#[test]
fn a_link_whose_name_says_so_makes_it_the_default() {
    if !has_sqlite3() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let engine = |name: &str| {
        let link = folder.path().join(name);
        std::os::unix::fs::symlink(library(), &link).expect("a link");
        let path = folder.path().join(format!("{name}.db"));
        let (link, path) = (link.display(), path.display());
        shell(&format!(
            ".load {link}\n.open {path}\nPRAGMA journal_mode=wal;\nSELECT dash_engine();\n"
        ))
    };
    assert_eq!(engine("libdashdefault.so"), "wal\nwal\n");
    assert_eq!(engine("libdashdefaults.so"), "wal\nnone\n");
    assert_eq!(engine("renamed.so"), "wal\nnone\n");
}

/// What the command line shell prints for a script.
fn shell(script: &str) -> String {
    let mut shell = Command::new("sqlite3")
        .arg(":memory:")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("starts");
    std::io::Write::write_all(&mut shell.stdin.take().expect("piped"), script.as_bytes())
        .expect("reads");
    let output = shell.wait_with_output().expect("ends");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
