//! The packages of npm: what their users have to write, and what they get, on better-sqlite3, on
//! node:sqlite and in Bun.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::programs::{killed, stock};
use crate::common::{Made, done, make};
use dash_testing::Need;
use dash_testing::drivers::{self, installed};
use dash_testing::machine::has_sqlite3;

/// As a page would have it; then it tells what it got, and dies or closes.
const OPENS: &str = "const { open } = require('sqlite-dash');
const [host, file, end] = process.argv.slice(2), found = require(host);
const db = open(found.DatabaseSync ?? found.Database ?? found, file);
db.exec('CREATE TABLE IF NOT EXISTS t(x); INSERT INTO t VALUES (7)');
const asked = \"SELECT dash_engine() engine, value FROM dash_stats WHERE name = 'durability'\";
const { engine, value } = db.prepare(asked).get();
console.log(engine, value);
if (end === 'dies') process.kill(process.pid, 'SIGKILL');
db.close();
";

/// The same program on stock SQLite.
const STAYS: &str = "const found = require(process.argv[2]);
const db = new (found.DatabaseSync ?? found.Database ?? found)(process.argv[3]);
db.exec('PRAGMA journal_mode = WAL; CREATE TABLE t(x); INSERT INTO t VALUES (7)');
const asked = \"SELECT dash_engine() engine, value FROM dash_stats WHERE name = 'durability'\";
const { engine, value } = db.prepare(asked).get();
console.log(engine, value);
db.close();
";

/// The packages in a project that was empty.
fn project() -> Option<Made> {
    if !has_sqlite3() {
        return None;
    }
    drivers::node()?;
    let made = make("node")?;
    let folder = made.folder.path();
    fs::write(folder.join("package.json"), "{\"private\": true}").expect("a file");
    fs::write(folder.join("opens.js"), OPENS).expect("a file");
    fs::write(folder.join("stays.js"), STAYS).expect("a file");
    let mut npm = Command::new("npm");
    npm.args(["install", "--offline", "--no-audit", "--no-fund", "--silent"]).args(&made.files);
    done(npm.current_dir(folder));
    Some(made)
}

/// Node with better-sqlite3, in a project.
fn node(project: &Made) -> Command {
    let mut node = drivers::node().expect("it was there before");
    node.current_dir(project.folder.path());
    node
}

/// A host that `install.sh` lays there, in a project.
fn other(project: &Made, name: &str) -> Option<Command> {
    let path = installed(Need::Bun, &format!("javascript/node_modules/.bin/{name}"))?;
    let mut other = Command::new(path);
    // Of an experiment that node:sqlite is.
    other.env("NODE_NO_WARNINGS", "1").current_dir(project.folder.path());
    Some(other)
}

/// That a kill loses nothing, and stock SQLite reads all of it in the end.
fn commits(project: &Made, mut host: impl FnMut() -> Command, driver: &str) {
    assert_eq!(killed(host().args(["opens.js", driver, "app ?#%.db", "dies"])), "wal full\n");
    assert_eq!(done(host().args(["opens.js", driver, "app ?#%.db"])), "wal full\n");
    assert_eq!(stock(project.folder.path(), "app ?#%.db", "SELECT count(*) FROM t"), "2\n");
    let no_file = "const found = require(process.argv[1]);
        const Database = found.DatabaseSync ?? found.Database ?? found;
        const db = require('sqlite-dash').open(Database, ':memory:');
        console.log(db.prepare('SELECT dash_engine() engine').get().engine);";
    assert_eq!(done(host().args(["-e", no_file, driver])), "none\n");
    assert!(!project.folder.path().join(":memory:").exists());
}

#[test]
fn better_sqlite3_commits_durably() {
    let Some(project) = project() else { return };
    commits(&project, || node(&project), "better-sqlite3");
}

#[test]
fn node_sqlite_and_bun_do() {
    let Some(project) = project() else { return };
    for (host, driver) in [("node", "node:sqlite"), ("bun", "bun:sqlite")] {
        if other(&project, host).is_none() {
            return;
        }
        commits(&project, || other(&project, host).expect("it was there before"), driver);
        fs::remove_file(project.folder.path().join("app ?#%.db")).expect("a file");
        fs::remove_file(project.folder.path().join("app ?#%.db-dashlog")).expect("a file");
    }
}

#[test]
fn a_program_may_stay_as_it_is() {
    let Some(project) = project() else { return };
    // Beside the program, as it would be: what is required first finds it there.
    let beside = project.folder.path().join("node_modules/better-sqlite3");
    let modules = drivers::folder().join("node/node_modules/better-sqlite3");
    if modules.exists() {
        std::os::unix::fs::symlink(modules, &beside).expect("a link");
        let register = ["--require", "sqlite-dash/register", "stays.js", "better-sqlite3", "a.db"];
        assert_eq!(done(node(&project).args(register)), "wal full\n");
        assert_eq!(stock(project.folder.path(), "a.db", "SELECT count(*) FROM t"), "1\n");
        let import = "import Database from 'better-sqlite3';
            console.log(new Database('a.db').prepare('SELECT dash_engine() engine').get().engine);";
        fs::write(project.folder.path().join("imports.mjs"), import).expect("a file");
        let register = ["--require", "sqlite-dash/register", "imports.mjs"];
        assert_eq!(done(node(&project).args(register)), "wal\n");
        fs::remove_file(beside).expect("a link");
    }
    let Some(mut newer) = other(&project, "node") else { return };
    let register = ["--require", "sqlite-dash/register", "stays.js", "node:sqlite", "b.db"];
    assert_eq!(done(newer.args(register)), "wal full\n");
    let Some(mut bun) = other(&project, "bun") else { return };
    let preload = ["--preload", "sqlite-dash/register", "stays.js", "bun:sqlite", "c.db"];
    assert_eq!(done(bun.args(preload)), "wal full\n");
    for file in ["b.db", "c.db"] {
        assert_eq!(stock(project.folder.path(), file, "SELECT count(*) FROM t"), "1\n");
    }
}

#[test]
fn what_does_not_work_is_told() {
    let Some(project) = project() else { return };
    let says = |script: &str| {
        let run = node(&project).args(["-e", script]).stdin(Stdio::null()).output();
        String::from_utf8_lossy(&run.expect("runs").stderr).into_owned()
    };
    // The driver's own WAL mode loses commits with the power.
    let said = says("require('sqlite-dash').register(require('better-sqlite3'))");
    assert!(said.contains("SQLITE_DASH_NORMAL") && said.contains("durable()"), "{said}");
    let said = says(
        "const D = require('better-sqlite3'), stock = new D('stock.db');
         require('sqlite-dash').register(D, { warn: false });
         require('sqlite-dash').durable(stock)",
    );
    assert!(said.contains("before dash was loaded"), "{said}");
    assert!(says("require('sqlite-dash').register(Map)").contains("DatabaseSync"));
    let elsewhere = "Object.defineProperty(process, 'platform', { value: 'darwin' });
         require('sqlite-dash').loadablePath()";
    let said = says(elsewhere);
    assert!(said.contains("no library for darwin-") && said.contains("linux-arm64-gnu"), "{said}");
    let modules: PathBuf = project.folder.path().join("node_modules");
    let of_this_system = fs::read_dir(&modules).expect("modules").find_map(|entry| {
        let name = entry.ok()?.file_name().into_string().ok()?;
        name.starts_with("sqlite-dash-linux-").then_some(name)
    });
    let name = of_this_system.expect("npm chose it");
    // The loader's own reason, and not that there is no libdash.so.so.
    let library = modules.join(&name).join("libdash.so");
    let whole = project.folder.path().join("whole.so");
    fs::rename(&library, &whole).expect("a file");
    fs::write(&library, "x").expect("a file");
    let said = says("require('sqlite-dash').register(require('better-sqlite3'))");
    assert!(said.contains("file too short"), "{said}");
    fs::remove_file(&library).expect("a file");
    fs::rename(&whole, &library).expect("a file");
    fs::remove_dir_all(Path::new(&modules).join(&name)).expect("a folder");
    let said = says("require('sqlite-dash').loadablePath()");
    assert!(said.contains(&format!("npm install {name}@")), "{said}");
}

/// Opens what can't be opened, and tells why.
const REFUSED: &str = "const { open } = require('sqlite-dash');
const found = require(process.argv[1]), Database = found.DatabaseSync ?? found.Database ?? found;
const told = (act) => { try { act(); console.log('nothing'); } catch (error) { console.log(error.message); } };
open(Database, 'app.db').close();
require('node:fs').mkdirSync('folder', { recursive: true });
told(() => open(Database, 'folder'));
told(() => open(Database, 'nowhere/app.db'));
";

#[test]
fn a_failed_opening_says_why() {
    let Some(project) = project() else { return };
    let reasons = |said: &str| {
        let lines: Vec<_> = said.lines().collect();
        assert_eq!(lines.len(), 2, "{said}");
        assert!(lines[0].contains("folder is not a regular file"), "{said}");
        assert!(lines[1].contains("nowhere"), "{said}");
    };
    reasons(&done(node(&project).args(["-e", REFUSED, "better-sqlite3"])));
    for (host, driver) in [("node", "node:sqlite"), ("bun", "bun:sqlite")] {
        let Some(mut host) = other(&project, host) else { return };
        reasons(&done(host.args(["-e", REFUSED, driver])));
    }
    // A program that stays as it is.
    let mut newer = other(&project, "node").expect("it was there before");
    newer.args(["--require", "sqlite-dash/register", "stays.js", "node:sqlite", "folder"]);
    let said = String::from_utf8_lossy(&newer.output().expect("runs").stderr).into_owned();
    assert!(said.contains("folder is not a regular file"), "{said}");
}

#[test]
fn a_second_copy_serves_and_another_version_is_told() {
    let Some(project) = project() else { return };
    let copy = project.folder.path().join("copy");
    fs::create_dir(&copy).expect("a folder");
    done(Command::new("cp").arg("-r").arg(project.folder.path().join("node_modules")).arg(&copy));
    let both = "const { open } = require('sqlite-dash');
        const Database = require('node:sqlite').DatabaseSync;
        open(Database, 'app.db').close();
        const db = require('./copy/node_modules/sqlite-dash').open(Database, 'app.db');
        console.log(db.prepare('SELECT dash_engine() engine').get().engine);";
    let Some(mut host) = other(&project, "node") else { return };
    assert_eq!(done(host.args(["-e", both])), "wal\n");
    let manifest = copy.join("node_modules/sqlite-dash/package.json");
    let text = fs::read_to_string(&manifest).expect("a file");
    let own = format!("\"version\": \"{}\"", env!("CARGO_PKG_VERSION"));
    assert!(text.contains(&own), "{text}");
    fs::write(&manifest, text.replace(&own, "\"version\": \"9.9.9\"")).expect("a file");
    let mut host = other(&project, "node").expect("it was there before");
    let said = host.args(["-e", both]).output().expect("runs").stderr;
    let said = String::from_utf8_lossy(&said);
    assert!(said.contains("already, and this is sqlite-dash 9.9.9"), "{said}");
}
