//! Systems that this machine is none of: dash where the C library is musl, and on aarch64, in a
//! program in C with its own SQLite. It works in a thread with the stack that the C library gives,
//! which is 128 KiB there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::done;
use crate::common::programs::{amalgamation, killed, stock};
use dash_testing::long::is_long;
use dash_testing::machine::{has_sqlite3, runs};
use dash_testing::{Need, skip};
use tempfile::TempDir;

const PROGRAM: &str = r#"#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sqlite3.h>
#ifdef LINKED
#include "dash.h"
#endif
static int say(void *nothing, int n, char **values, char **names) { return puts(values[0]) < 0; }
static const char *end;
static void *work(void *code) {
  static const char *commits = "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
    "CREATE TABLE IF NOT EXISTS t(x); INSERT INTO t VALUES (zeroblob(300000));"
    "PRAGMA wal_checkpoint; INSERT INTO t VALUES (7), (8), (9);";
  const char *sql = strcmp(end, "dies") ? "SELECT count(*) FROM t; PRAGMA integrity_check" : commits;
  char *error = 0;
  sqlite3 *db;
  *(int *)code = sqlite3_open_v2("file:app.db?vfs=dash", &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI, 0);
  if (!*(int *)code) *(int *)code = sqlite3_exec(db, sql, say, 0, &error);
  if (!*(int *)code) *(int *)code = sqlite3_exec(db, "SELECT dash_engine()", say, 0, &error);
  fflush(stdout);
  if (*(int *)code) fprintf(stderr, "%s\n", sqlite3_errmsg(db));
  else if (!strcmp(end, "dies")) raise(SIGKILL);
  else *(int *)code = sqlite3_close(db);
  return 0;
}
static int begin(const char *library) {
#ifdef LINKED
  return dash_register();
#else
  char *error = 0;
  sqlite3 *db;
  int code = sqlite3_open(":memory:", &db);
  sqlite3_enable_load_extension(db, 1);
  if (!code) code = sqlite3_load_extension(db, library, "sqlite3_dash_init", &error);
  if (error) fprintf(stderr, "%s\n", error);
  return code ? code : sqlite3_close(db);
#endif
}
int main(int n, char **arguments) {
  pthread_t thread;
  int code = begin(arguments[2]);
  end = arguments[1];
  if (!code) code = pthread_create(&thread, 0, work, &code);
  if (!code) pthread_join(thread, 0);
  return code;
}
"#;

/// A folder with the program, and what compiles it and dash.
struct Bench {
    folder: TempDir,
    tools: PathBuf,
    made: PathBuf,
}

impl Bench {
    /// None where Zig or the target's standard library can't be had.
    fn new(triple: &str) -> Option<Self> {
        let maker =
            PathBuf::from(std::env::var_os("CARGO_BIN_EXE_dash-packages").expect("cargo says"));
        if !runs(&maker.to_string_lossy(), &["tools"])
            || !runs("rustup", &["target", "add", triple])
        {
            skip(Need::Zig, &format!("there is no Zig, or no standard library for {triple}"));
            return None;
        }
        let packages = maker.ancestors().nth(2).expect("cargo's folder").join("packages");
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("app.c"), PROGRAM).expect("a file");
        Some(Self { folder, tools: packages.join("tools"), made: packages.join("static") })
    }

    /// Has dash compiled by a command of cargo; answers the folder of what is made.
    fn compile(
        &self,
        program: impl AsRef<Path>,
        command: &str,
        triple: &str,
        more: &[&str],
    ) -> PathBuf {
        let mut cargo = Command::new(program.as_ref());
        cargo.args([command, "--quiet", "--locked", "--package", "libdash", "--target", triple]);
        cargo.args(more).arg("--target-dir").arg(&self.made);
        cargo.env("CARGO_ZIGBUILD_PYTHON_PATH", self.tools.join("python/bin/python"));
        cargo.env("RUSTFLAGS", "-C target-feature=-crt-static");
        done(cargo.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")));
        self.made.join(triple).join("debug")
    }

    /// Compiles the program and SQLite, with what makes the program load dash or has it inside.
    fn link(&self, system: &str, with: &[&str]) {
        let sqlite = amalgamation();
        let mut zig = Command::new(self.tools.join("python/bin/python"));
        zig.args(["-m", "ziglang", "cc", "-target", system, "-O0", "-fno-sanitize=all"]);
        zig.args(["-o", "app", "-I"]).arg(&sqlite);
        zig.args(["-I", concat!(env!("CARGO_MANIFEST_DIR"), "/tarball"), "app.c"]);
        zig.arg(sqlite.join("sqlite3.c")).args(with);
        done(zig.current_dir(self.folder.path()));
    }

    /// A process that is killed after its commits loses none of them.
    fn commits_dies_and_is_recovered(&self, run_by: &[&str], library: &Path) {
        let folder = self.folder.path();
        let app = |end: &str| {
            let mut app = Command::new(run_by.first().copied().unwrap_or("./app"));
            app.args(run_by.iter().skip(1)).args([end]).arg(library).current_dir(folder);
            app
        };
        assert_eq!(killed(&mut app("dies")), "wal\n0\nwal\n");
        assert_eq!(done(&mut app("reads")), "4\nok\nwal\n");
        assert_eq!(stock(folder, "app.db", "SELECT count(*) FROM t"), "4\n");
    }
}

#[test]
fn where_the_c_library_is_musl_a_program_loads_it() {
    // Compiling dash once more, and SQLite, takes a minute.
    if !is_long() || !has_sqlite3() {
        return;
    }
    let processor = std::env::consts::ARCH;
    let loader = format!("/lib/ld-musl-{processor}.so.1");
    if !Path::new(&loader).exists() {
        return skip(Need::Musl, &format!("there is no {loader}"));
    }
    let triple = format!("{processor}-unknown-linux-musl");
    let Some(bench) = Bench::new(&triple) else { return };
    let zigbuild = fs::read_dir(&bench.tools).expect("a folder").flatten().map(|it| it.path());
    let zigbuild = zigbuild.map(|it| it.join("bin/cargo-zigbuild")).find(|it| it.exists());
    let made = bench.compile(zigbuild.expect("a program"), "zigbuild", &triple, &[]);
    bench.link(&format!("{processor}-linux-musl"), &["-dynamic"]);
    bench.commits_dies_and_is_recovered(&[&loader, "./app"], &made.join("libdash.so"));
}

#[test]
fn on_aarch64_a_program_has_it_inside() {
    if !is_long() || !has_sqlite3() {
        return;
    }
    let qemu = "qemu-aarch64-static";
    if !runs(qemu, &["--version"]) {
        return skip(Need::Qemu, &format!("there is no {qemu}"));
    }
    let triple = "aarch64-unknown-linux-musl";
    let Some(bench) = Bench::new(triple) else { return };
    let made = bench.compile("cargo", "rustc", triple, &["--crate-type", "staticlib"]);
    let archive = made.join("libdash.a");
    bench.link(
        "aarch64-linux-musl",
        &["-DLINKED", "-static", &archive.to_string_lossy(), "-lunwind"],
    );
    bench.commits_dies_and_is_recovered(&[qemu, "./app"], Path::new(""));
}
