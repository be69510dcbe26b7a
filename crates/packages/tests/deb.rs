//! Debian's package, in a folder that stands for the root of a system.

use std::path::Path;
use std::process::Command;

use crate::common::programs::{killed, stock};
use crate::common::{done, make};
use dash_testing::machine::{has_sqlite3, is_root, runs};
use dash_testing::{Need, skip};

/// What is in it, by the names that `tar` prints.
const CONTENTS: [&str; 8] = [
    "/libdashdefault.so",
    "./usr/bin/sqlite-dash",
    "./usr/share/man/man1/sqlite-dash-backup.1.gz",
    "./usr/share/bash-completion/completions/sqlite-dash",
    "./usr/share/zsh/vendor-completions/_sqlite-dash",
    "./usr/share/fish/vendor_completions.d/sqlite-dash.fish",
    "./usr/share/doc/sqlite-dash/copyright",
    "./usr/share/doc/sqlite-dash/changelog.gz",
];

/// Where a new system's list of packages is empty.
fn installs_and_removes(deb: &Path, root: &Path) {
    let list = root.join("var/lib/dpkg");
    for folder in ["info", "updates"] {
        std::fs::create_dir_all(list.join(folder)).expect("a folder");
    }
    std::fs::write(list.join("status"), "").expect("a file");
    let dpkg = |arguments: &[&str]| {
        let mut dpkg = Command::new("dpkg");
        dpkg.arg("--root").arg(root).args(["--force-depends", "--log=/dev/null"]);
        done(dpkg.args(arguments).env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"))
    };
    dpkg(&["--install", &deb.to_string_lossy()]);
    assert!(root.join("usr/bin/sqlite-dash").exists());
    dpkg(&["--remove", "sqlite-dash"]);
    assert!(!root.join("usr").exists(), "it leaves nothing");
}

#[test]
fn sqlite_finds_it_by_its_name_alone() {
    if !runs("dpkg-deb", &["--version"]) {
        return skip(Need::Dpkg, "there is no dpkg-deb");
    }
    if !has_sqlite3() {
        return;
    }
    let Some(made) = make("deb") else { return };
    let (folder, deb) = (made.folder.path(), &made.files[0]);
    let listed = done(Command::new("dpkg-deb").arg("--contents").arg(deb));
    for name in CONTENTS {
        assert!(listed.contains(name), "{name} is not in\n{listed}");
    }
    let said = done(Command::new("dpkg-deb").arg("--field").arg(deb).arg("Description"));
    // As `apt search` and `apt show` print them.
    let (short, long) = said.split_once('\n').expect("what `apt show` prints");
    assert!(short.len() <= 80 && long.contains("vfs=dash"), "{said}");
    assert!(listed.lines().all(|line| line.contains("root/root")), "{listed}");
    done(Command::new("dpkg-deb").arg("--extract").arg(deb).arg(folder.join("root")));
    let at = |name: &str| folder.join("root/usr").join(name);
    let libraries = at(&format!("lib/{}-linux-gnu", std::env::consts::ARCH));
    let sqlite = |commands: &[&str]| {
        let mut sqlite = Command::new("sqlite3");
        sqlite.env("LD_LIBRARY_PATH", &libraries).current_dir(folder).args(["-batch", "-bail"]);
        let opens = [".load libdash", ".open file:app.db?vfs=dash"];
        sqlite.args(opens.iter().chain(commands).flat_map(|command| ["-cmd", command]));
        sqlite
    };
    killed(&mut sqlite(&[
        "PRAGMA journal_mode=WAL",
        "CREATE TABLE t(x); INSERT INTO t VALUES (7)",
        ".shell kill -9 $PPID",
    ]));
    // The program finds the library, too.
    let mut program = Command::new(at("bin/sqlite-dash"));
    program.args(["recover", "app.db"]).env_remove("DASH_LIBRARY").current_dir(folder);
    let said = done(&mut program);
    assert!(said.contains("app.db"), "{said}");
    assert_eq!(stock(folder, "app.db", "SELECT x FROM t"), "7\n");
    assert_eq!(done(&mut sqlite(&["SELECT dash_engine(), x FROM t"])), "wal|7\n");
    let page = done(Command::new("gzip").arg("-dc").arg(at("share/man/man1/sqlite-dash.1.gz")));
    assert!(page.contains(".TH SQLITE-DASH 1") && page.contains("recover"), "{page}");
    done(Command::new("bash").arg("-n").arg(at("share/bash-completion/completions/sqlite-dash")));
    if is_root() {
        installs_and_removes(deb, &folder.join("system"));
    }
}
