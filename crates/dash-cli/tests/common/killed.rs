//! Sessions that are killed, and what a power loss would leave of them.

use std::fs;
use std::io::{BufRead, BufReader, Write};

use rusqlite::Connection;

use super::Home;

/// Bytes of `-wal` up to the end of so many frames.
pub fn wal_bytes(frames: u64) -> u64 {
    32 + frames * (24 + 4096)
}

/// Runs statements in one session, whose process is killed then.
pub fn run_and_kill(home: &Home, statements: &[String]) {
    let mut shell = home.shell();
    let mut input = shell.stdin.take().unwrap();
    for statement in statements {
        writeln!(input, "{statement}").unwrap();
    }
    // Within a write transaction it does not come to rest.
    writeln!(input, "BEGIN IMMEDIATE; SELECT 'done';").unwrap();
    let mut said = String::new();
    let mut output = BufReader::new(shell.stdout.take().unwrap());
    while said != "done\n" {
        said.clear();
        assert_ne!(output.read_line(&mut said).unwrap(), 0, "it ended before");
    }
    shell.kill().unwrap();
    shell.wait().unwrap();
}

/// What a power loss leaves of it, `-wal` with so many frames.
pub fn lose_power(home: &Home, frames: u64) {
    fs::remove_file(home.file("app.db-dash")).unwrap();
    fs::remove_file(home.file("app.db-shm")).unwrap();
    let wal = fs::OpenOptions::new().write(true).open(home.file("app.db-wal")).unwrap();
    wal.set_len(wal_bytes(frames)).unwrap();
}

/// By stock SQLite, so there must be no fence any more.
pub fn whole_with(home: &Home, rows: i64) {
    assert_eq!(home.stock_rows(), rows);
    let stock = Connection::open(home.db()).unwrap();
    let check: String = stock.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(check, "ok");
}
