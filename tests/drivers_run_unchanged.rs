//! Popular drivers run on mode wal with the settings for WAL mode that people give them: eight
//! workers say theirs on a new database at the same moment and insert, and some of them are killed.
//! Nobody hears "locked", no acknowledged row is lost, and `dash_stats` tells what durability those
//! settings come to. tests/fixtures/drivers/README.md has a transcript.

mod workers;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use dash_testing::drivers::{self, installed};
use dash_testing::long::moment_by_hand;
use dash_testing::machine::runs;
use dash_testing::{Need, extension, skip};

use workers::crew::{Crew, Load};
use workers::gunicorn;
use workers::verdict::Durable;

fn load() -> Load {
    let [short, long] = [(3, 2), (120, 20)].map(|(seconds, kills)| {
        let time = Duration::from_secs(seconds);
        Load { time, kills }
    });
    moment_by_hand(short, long)
}

/// A program or folder of the drivers' own.
fn fixture(name: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/drivers")).join(name)
}

fn python() -> Option<PathBuf> {
    installed(Need::PythonDrivers, "python/bin/python")
}

#[test]
fn sqlalchemy_does() {
    let Some(python) = python() else { return };
    let crew = Crew {
        driver: "SQLAlchemy",
        settings: "`journal_mode=WAL`, `synchronous=NORMAL` at `connect`",
        processes: 4,
        threads: 2,
        durable: Durable::Normal,
    };
    crew.works(load(), || with(Command::new(&python), "python/with_sqlalchemy.py"));
}

#[test]
fn gunicorn_does() {
    let Some(python) = python() else { return };
    gunicorn::works(&python, &fixture("python"), false, load());
}

#[test]
fn gunicorn_does_with_the_app_loaded_before_it_forks() {
    let Some(python) = python() else { return };
    gunicorn::works(&python, &fixture("python"), true, load());
}

#[test]
fn django_does() {
    let Some(python) = python() else { return };
    let crew = Crew {
        driver: "Django",
        settings: "`init_command`, `transaction_mode=IMMEDIATE`",
        processes: 8,
        threads: 1,
        durable: Durable::Normal,
    };
    crew.works(load(), || with(Command::new(&python), "python/with_django.py"));
}

#[test]
fn better_sqlite3_does() {
    if drivers::node().is_none() {
        return;
    }
    let crew = Crew {
        driver: "better-sqlite3",
        settings: "`pragma('journal_mode = WAL')`",
        processes: 8,
        threads: 1,
        durable: Durable::Normal,
    };
    let node = || drivers::node().expect("it was there before");
    crew.works(load(), || with(node(), "node/worker.js"));
}

/// Its SQLite has no `sqlite3_transfer_bindings`.
#[test]
fn better_sqlite3_says_why_it_records_no_statement() {
    let Some(mut node) = drivers::node() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let program = "const [library, path] = process.argv.slice(1), Database = require('better-sqlite3');
        new Database(':memory:').loadExtension(library, 'sqlite3_dashdefault_init');
        const db = new Database(path);
        db.pragma('journal_mode = statement');
        db.exec('CREATE TABLE t(x)');
        console.log(db.prepare(\"SELECT value FROM dash_stats WHERE name='statements'\").pluck().get());
        console.log(db.prepare('SELECT reason FROM dash_statements').pluck().get());";
    let path = folder.path().join("app.db");
    let run = node.args(["-e", program]).arg(extension::library()).arg(path).output();
    let run = run.expect("runs");
    let said = String::from_utf8_lossy(&run.stdout);
    let lines = said.lines().filter(|line| line.contains("SQLITE_OMIT_DEPRECATED"));
    assert_eq!(lines.count(), 2, "{said}{}", String::from_utf8_lossy(&run.stderr));
}

#[test]
fn go_sqlite3_does() {
    let Some(worker) = installed(Need::Go, "go/worker") else { return };
    let crew = Crew {
        driver: "mattn/go-sqlite3",
        settings: "`_journal_mode=WAL&_synchronous=NORMAL&_txlock=immediate`",
        processes: 4,
        threads: 2,
        durable: Durable::Normal,
    };
    crew.works(load(), || Command::new(&worker));
}

#[test]
fn sqlite_jdbc_does() {
    let Some(worker) = installed(Need::Java, "java/Worker.class") else { return };
    let folder = worker.parent().expect("a folder").display();
    let crew = Crew {
        driver: "sqlite-jdbc",
        settings: "`journal_mode=WAL` in the URL",
        processes: 4,
        threads: 2,
        durable: Durable::Full,
    };
    crew.works(load(), || {
        let mut java = Command::new("java");
        java.args(["-cp", &format!("{folder}:{folder}/*"), "Worker"]);
        java
    });
}

/// Whether Ruby has its drivers, and what they have in common.
fn ruby(driver: &'static str, program: &str) {
    if !runs("ruby", &["-r", "sqlite3", "-r", "active_record", "-e", "1"]) {
        skip(Need::Ruby, "ruby with sqlite3 and active_record is not installed");
        return;
    }
    let crew = Crew {
        driver,
        settings: "`journal_mode=WAL`, `synchronous=NORMAL`",
        processes: 8,
        threads: 1,
        durable: Durable::Normal,
    };
    crew.works(load(), || with(Command::new("ruby"), program));
}

#[test]
fn rubys_sqlite3_does() {
    ruby("Ruby sqlite3", "ruby/with_sqlite3.rb");
}

#[test]
fn active_record_does() {
    ruby("ActiveRecord", "ruby/with_activerecord.rb");
}

#[test]
fn sqlx_does() {
    let Some(worker) = installed(Need::Sqlx, "sqlx/worker") else { return };
    let crew = Crew {
        driver: "sqlx",
        settings: "`journal_mode(Wal)`",
        processes: 4,
        threads: 2,
        durable: Durable::Full,
    };
    crew.works(load(), || Command::new(&worker));
}

/// A host, given one of the programs here.
fn with(mut host: Command, program: &str) -> Command {
    host.arg(fixture(program));
    host
}
