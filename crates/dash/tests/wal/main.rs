//! Mode wal, through SQLite.

#[path = "../common/mod.rs"]
mod common;

mod around;
mod beside_stock;
mod content;
mod copies;
mod elsewhere;
mod following;
mod history;
mod in_memory;
mod locks;
mod openers;
mod opening;
mod paper;
mod pragmas;
mod processes;
mod removed;
mod rest;
mod run_again;
mod statement_mode;
mod statements;
mod switches;
mod unconfirmed;
mod watch;

use common::*;

/// A database in mode wal, from the URI.
fn create(folder: &Folder, name: &str) -> Connection {
    let db = folder.try_open(name, "&journal_mode=wal").expect("opens in mode wal");
    assert_eq!(text(&db, "SELECT dash_engine()"), "wal");
    db
}

/// What a closed database has beside it.
fn beside(folder: &Folder, name: &str) -> Vec<String> {
    let mut found: Vec<_> = std::fs::read_dir(folder.path("."))
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .filter(|found| found.starts_with(name) && found != name)
        .collect();
    found.sort();
    found
}

/// A closed database is a whole file in WAL mode, and nothing lies beside it but a log.
fn at_rest(folder: &Folder, name: &str) {
    let log = format!("{name}-dashlog");
    assert!(beside(folder, name).iter().all(|found| *found == log), "{:?}", beside(folder, name));
    let stock = folder.stock(name);
    assert_eq!(text(&stock, "PRAGMA journal_mode"), "wal");
    whole(&stock);
}
