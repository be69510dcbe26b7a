//! SQLite 3.7.0 to 3.51.2 counts frames as copied that never were, where a writer begins `-wal`
//! anew while a passive checkpoint has read the header of the wal-index ("WAL-reset bug", WAL-47).
//! Here unmodified versions of it meet that instant, each by a hook in `sqlite3WalCheckpoint()`.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use dash_testing::Need;
use dash_testing::drivers::installed;
use dash_testing::extension::library;

/// `libsqlite3-sys` by its version, and the SQLite that it has.
const VERSIONS: [(&str, &str); 3] =
    [("0.18.0", "3.31.1"), ("0.28.0", "3.45.0"), ("0.36.0", "3.51.1")];
const WRITERS: [&str; 2] = ["connection", "process"];
const COMMITS: &str = "132";

fn program(version: &str) -> Option<PathBuf> {
    installed(Need::OlderSqlites, &format!("sqlite/{version}/reset"))
}

fn run(program: &Path, parameters: &str, library: &Path, writer: &str, meanwhile: &str) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    let uri = format!("file:{}?{parameters}", folder.path().join("app.db").display());
    let mut command = Command::new(program);
    command.arg(uri).arg(library).args([writer, meanwhile]);
    command.current_dir(folder.path()).output().expect("it runs")
}

fn whole(sqlite: &str) -> String {
    format!("{sqlite} committed {COMMITS} found {COMMITS} integrity ok\n")
}

/// Nothing is lost whatever happens between the header and the pages.
fn lose_nothing(parameters: &str, writers: &[&str]) {
    for (version, sqlite) in VERSIONS {
        let Some(program) = program(version) else { return };
        for writer in writers {
            for meanwhile in ["nothing", "rest", "backup"] {
                let told = run(&program, parameters, &library(), writer, meanwhile);
                let about = format!("{parameters} {writer} {meanwhile} {told:?}");
                assert_eq!(String::from_utf8_lossy(&told.stdout), whole(sqlite), "{about}");
                assert!(told.status.success(), "{about}");
            }
        }
    }
}

#[test]
fn in_mode_wal() {
    lose_nothing("vfs=dash&journal_mode=wal", &WRITERS);
}

/// The memory is one process's.
#[test]
fn with_the_wal_in_memory() {
    lose_nothing("vfs=dash&journal_mode=wal&dash_wal=memory", &WRITERS[..1]);
}

#[test]
fn in_mode_statement() {
    lose_nothing("vfs=dash&journal_mode=statement", &WRITERS);
}

/// The rig sees the bug.
#[test]
fn but_stock_sqlite_does() {
    for (version, sqlite) in VERSIONS {
        let Some(program) = program(version) else { return };
        for writer in WRITERS {
            let told = run(&program, "", Path::new("stock"), writer, "nothing");
            let errors = String::from_utf8_lossy(&told.stderr);
            assert!(errors.contains("database disk image is malformed"), "{sqlite} {told:?}");
        }
    }
}
