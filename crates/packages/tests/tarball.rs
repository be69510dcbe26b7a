//! The tarball, and a program in C that links what is in it.

use std::fs;
use std::process::Command;

use crate::common::programs::{amalgamation, killed, stock};
use crate::common::{done, make};
use dash_testing::long::moment_by_hand;
use dash_testing::machine::has_sqlite3;

const PROGRAM: &str = r#"#include <stdio.h>
#include <signal.h>
#include "dash.h"
static int say(void *nothing, int n, char **values, char **names) { return puts(values[0]) < 0; }
int main(int n, char **arguments) {
  sqlite3 *db;
  int code = dash_register();
  if (!code) code = sqlite3_open_v2("file:app.db?vfs=dash", &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI, 0);
  if (!code) code = sqlite3_exec(db, "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE IF NOT EXISTS t(x); INSERT INTO t VALUES (7); SELECT dash_engine()", say, 0, 0);
  fflush(stdout);
  return n > 1 ? raise(SIGKILL) : code ? code : sqlite3_close(db);
}
"#;

#[test]
fn a_program_in_c_links_it_with_its_own_sqlite() {
    // Compiling dash once more, and SQLite, takes a minute.
    if !moment_by_hand(false, true) || !has_sqlite3() {
        return;
    }
    let Some(made) = make("tarball") else { return };
    let folder = made.folder.path();
    let beside = made.files[0].parent().expect("a folder");
    done(Command::new("sha256sum").args(["--check", "SHA256SUMS"]).current_dir(beside));
    let bom = fs::read(&made.files[1]).expect("a file");
    let bom: serde_json::Value = serde_json::from_slice(&bom).expect("JSON");
    let components = bom["components"].as_array().expect("a list");
    for name in ["dash-wal", "rustix", "libsqlite3-sys"] {
        assert!(components.iter().any(|component| component["name"] == name), "{name}: {bom}");
    }
    let mut tar = Command::new("tar");
    tar.arg("-xf").arg(&made.files[0]).arg("--strip-components=1").current_dir(folder);
    done(&mut tar);
    for name in ["lib/libdash.so", "lib/libdashdefault.so", "share/doc/sqlite-dash/LICENSE-MIT"] {
        assert!(folder.join(name).exists(), "{name}");
    }
    assert!(done(Command::new(folder.join("bin/sqlite-dash")).arg("--version")).contains("dash"));
    fs::write(folder.join("app.c"), PROGRAM).expect("a file");
    let sqlite = amalgamation();
    let mut cc = Command::new("cc");
    cc.args(["-O0", "-Wall", "-Werror", "-o", "app", "-I"]).arg(&sqlite).args(["-I", "include"]);
    cc.arg("app.c").arg(sqlite.join("sqlite3.c")).arg("lib/libdash.a");
    done(cc.args(["-lgcc_eh", "-lm", "-ldl", "-lpthread"]).current_dir(folder));
    let app = |arguments: &[&str]| {
        let mut app = Command::new(folder.join("app"));
        app.args(arguments).current_dir(folder);
        app
    };
    assert_eq!(killed(&mut app(&["dies"])), "wal\nwal\n");
    assert_eq!(done(&mut app(&[])), "wal\nwal\n");
    assert_eq!(stock(folder, "app.db", "SELECT count(*) FROM t"), "2\n");
}
