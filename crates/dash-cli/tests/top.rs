//! `sqlite-dash top` says who writes, waits and reads, from outside, and stands in nobody's way.
#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::Duration;

use super::common::{Home, Run};
use dash_testing::names::names;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rusqlite::Connection;
use serde_json::Value;

/// A session of `sqlite-dash shell` that goes on until it is dropped.
struct Session {
    shell: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Session {
    fn of(home: &Home) -> Self {
        let mut shell = home.shell();
        let (input, output) = (shell.stdin.take(), BufReader::new(shell.stdout.take().unwrap()));
        Self { shell, input, output }
    }

    fn tell(&mut self, sql: &str) {
        writeln!(self.input.as_mut().unwrap(), "{sql}").unwrap();
    }

    /// Runs statements, and waits until they are done.
    fn run(&mut self, sql: &str) {
        self.tell(&format!("{sql} SELECT 'done';"));
        let mut said = String::new();
        while said != "done\n" {
            said.clear();
            assert_ne!(self.output.read_line(&mut said).unwrap(), 0, "it ended before");
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        drop(self.input.take());
        drop(self.shell.wait());
    }
}

fn once(home: &Home) -> Value {
    let run = home.dash(&["top", "app.db", "--once", "--json", "--interval", "0.2"]).is(0);
    serde_json::from_str(&run.out()).unwrap()
}

fn in_wal_mode() -> Home {
    let home = Home::new();
    drop(home.plain());
    home.dash(&["convert", "app.db", "--to", "wal"]).is(0);
    home
}

fn is_process(value: &Value, session: &Session) -> bool {
    *value == u64::from(session.shell.id())
}

#[test]
fn a_database_that_nobody_has_open_is_said_to_be_closed() {
    let home = in_wal_mode();
    let before = home.contents();
    home.dash(&["top", "app.db", "--once", "--interval", "0.1"])
        .is(0)
        .says("no connection of dash has it open");
    assert_eq!(once(&home)["open"], false);
    let metrics = home.dash(&["top", "app.db", "--prometheus"]).is(0).out();
    assert!(
        metrics.contains("\nsqlite_dash_open{file=") && metrics.ends_with("} 0\n"),
        "{metrics}"
    );
    assert_eq!(before, home.contents());
    home.dash(&["top", "gone.db", "--once"]).is(2).says("looking at gone.db");
    home.dash(&["top", "app.db", "--interval", "0"]).is(2).says("--interval takes");
}

#[test]
fn who_writes_waits_and_reads_is_named_with_its_age() {
    let home = in_wal_mode();
    let (mut writer, mut reader, mut waiter) =
        (Session::of(&home), Session::of(&home), Session::of(&home));
    writer.run("INSERT INTO t (body) VALUES ('one'); INSERT INTO t (body) VALUES ('two');");
    reader.run("BEGIN; SELECT count(*) FROM t;");
    writer.run("INSERT INTO t (body) VALUES ('three'); BEGIN IMMEDIATE;");
    waiter.run("PRAGMA busy_timeout = 60000;");
    waiter.tell("BEGIN IMMEDIATE; SELECT 'mine';");
    let stock = Connection::open(home.db()).unwrap();
    stock.execute_batch("BEGIN; SELECT count(*) FROM t;").unwrap();
    // The waiter comes when it comes.
    let comes = |_| Some(once(&home)).filter(|it| it["waiting"] != Value::Array(vec![]));
    let seen = (0..100).find_map(comes).expect("a waiter");
    assert_eq!((&seen["open"], &seen["mode"]), (&true.into(), &"wal".into()), "{seen:#}");
    assert_eq!((&seen["connections"], &seen["dash_stock"]), (&3.into(), &"read".into()));
    assert_eq!(seen["commits"], 3);
    assert!(is_process(&seen["writer"]["process"], &writer), "{seen:#}");
    assert!(seen["writer"]["seconds"].as_f64().unwrap() > 0.0);
    assert!(is_process(&seen["waiting"][0]["process"], &waiter), "{seen:#}");
    let readers = seen["readers"].as_array().unwrap();
    let ours = readers.iter().find(|it| is_process(&it["process"], &reader)).unwrap();
    assert_eq!(ours["kind"], "dash");
    // One frame of 4096 bytes was committed behind it.
    assert_eq!(ours["kept_bytes"], 4096 + 24);
    assert!(ours["seconds"].as_f64().unwrap() > 0.0);
    let stocks = readers.iter().find(|it| it["kind"] == "stock").unwrap();
    assert_eq!(stocks["process"], std::process::id());
    // What is not known is not there: since when stock reads.
    assert!(stocks.get("seconds").is_none(), "{seen:#}");
    let text = home.dash(&["top", "app.db", "--once", "--interval", "0.1"]).is(0).out();
    let line = format!("writer      process {} for", writer.shell.id());
    assert!(text.contains(", dash_stock=read, 3 connections\n"), "{text}");
    assert!(text.contains(&line) && text.contains("keeps 5 KiB of -wal"), "{text}");
    writer.run("COMMIT;");
    waiter.run("COMMIT;");
    drop(stock);
}

#[test]
fn commits_and_their_bytes_are_counted() {
    let home = in_wal_mode();
    let mut session = Session::of(&home);
    session.run("INSERT INTO t (body) VALUES ('one'); INSERT INTO t (body) VALUES ('two');");
    let top = home
        .command(&["top", "app.db", "--once", "--json", "--interval", "3"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_secs(1));
    for number in 0..10 {
        session.run(&format!("UPDATE t SET body = 'again {number}' WHERE id = 1;"));
    }
    let seen = Run(top.wait_with_output().unwrap()).is(0).out();
    let seen: Value = serde_json::from_str(&seen).unwrap();
    assert_eq!(seen["commits"], 12);
    let ratio = seen["wal_bytes_per_second"].as_f64().unwrap()
        / seen["commits_per_second"].as_f64().unwrap();
    // Each wrote one page, or more where SQLite had to.
    assert!((4119.0..13_000.0).contains(&ratio), "{seen:#}");
    assert_eq!(seen["group_size"], 1.0);
    assert!(seen["log_bytes_per_commit"].as_f64().unwrap() >= 512.0, "{seen:#}");
    assert!(seen["flush_seconds"].as_f64().unwrap() > 0.0);
}

#[test]
fn mode_shadow_tells_what_it_knows_and_leaves_out_the_rest() {
    let home = Home::new();
    home.shadowed();
    let (mut writer, mut reader) = (Session::of(&home), Session::of(&home));
    reader.run("BEGIN; SELECT count(*) FROM t;");
    let stock = Connection::open(home.db()).unwrap();
    stock.execute_batch("BEGIN; SELECT count(*) FROM t").unwrap();
    writer.run("INSERT INTO t (body) VALUES ('one'); BEGIN IMMEDIATE;");
    let seen = once(&home);
    assert_eq!((&seen["mode"], &seen["commits"]), (&"shadow".into(), &1.into()), "{seen:#}");
    assert!(is_process(&seen["writer"]["process"], &writer), "{seen:#}");
    let readers = seen["readers"].as_array().unwrap();
    let behind = readers.iter().find(|it| is_process(&it["process"], &reader)).unwrap();
    assert_eq!(behind["commits_behind"], 1, "{seen:#}");
    for unknown in
        ["wal_bytes_per_second", "group_size", "flush_seconds", "checkpoint", "dash_stock"]
    {
        assert!(seen.get(unknown).is_none(), "{seen:#}");
    }
    for unknown in ["seconds", "kept_bytes"] {
        assert!(behind.get(unknown).is_none(), "{seen:#}");
    }
    let stocks: Vec<_> = readers.iter().filter(|it| it["kind"] == "stock").collect();
    assert_eq!(stocks.len(), 1, "{seen:#}");
    assert_eq!(stocks[0]["process"], std::process::id());
    assert!(stocks[0].get("commits_behind").is_none(), "{seen:#}");
    let metrics = home.dash(&["top", "app.db", "--prometheus"]).is(0).out();
    assert!(metrics.contains(",mode=\"shadow\",kind=\"stock\"} 1\n"), "{metrics}");
    assert!(!metrics.contains("_bytes"), "{metrics}");
    drop(stock);
    writer.run("COMMIT;");
}

#[test]
fn metrics_are_in_the_text_format_of_prometheus() {
    let home = in_wal_mode();
    let mut session = Session::of(&home);
    session.run("INSERT INTO t (body) VALUES ('one'); INSERT INTO t (body) VALUES ('two');");
    let metrics = home.dash(&["top", "app.db", "--prometheus", "--interval", "60"]).is(0).out();
    let (mut described, mut names) = (BTreeSet::new(), BTreeSet::new());
    let mut lines = metrics.lines();
    while let Some(line) = lines.next() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, text) = help.split_once(' ').unwrap();
            assert!(text.ends_with('.') && described.insert(name), "{line}");
            let kind = lines.next().unwrap().strip_prefix(&format!("# TYPE {name} ")).unwrap();
            assert!(["gauge", "counter"].contains(&kind), "{line}");
            continue;
        }
        let (name, rest) = line.split_once("{file=\"").unwrap();
        assert!(described.contains(name), "{line} has no HELP before it");
        let (labels, value) = rest.rsplit_once("} ").unwrap();
        assert!(labels.contains("/app.db\"") && value.parse::<f64>().is_ok(), "{line}");
        names.insert(name);
    }
    assert_eq!(described, names);
    assert!(
        metrics.contains("sqlite_dash_commits_total{") && metrics.contains(",mode=\"wal\"} 2\n")
    );
    assert!(metrics.contains(",mode=\"wal\",kind=\"stock\"} 0\n"), "{metrics}");
    for name in
        ["sqlite_dash_wal_bytes_per_second", "sqlite_dash_group_size", "sqlite_dash_flush_seconds"]
    {
        assert!(names.contains(name), "{metrics}");
    }
}

#[test]
fn looking_makes_no_file_and_stands_in_nobodys_way() {
    for mode in ["wal", "shadow"] {
        let home = Home::new();
        drop(home.plain());
        home.dash(&["convert", "app.db", "--to", mode]).is(0);
        let mut session = Session::of(&home);
        session.run("INSERT INTO t (body) VALUES ('one');");
        let files = names(home.path());
        let mut top = home
            .command(&["top", "app.db", "--json", "--interval", "0.1"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(top.stdout.take().unwrap()).lines();
        let mut next =
            || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
        assert_eq!(next()["open"], true);
        assert_eq!(files, names(home.path()), "mode {mode}");
        // Exclusively, a commit, and a close that takes everything down.
        session.run("BEGIN EXCLUSIVE; INSERT INTO t (body) VALUES ('two'); COMMIT;");
        session.run("PRAGMA wal_checkpoint(TRUNCATE);");
        drop(session);
        assert!((0..100).any(|_| next()["open"] == false));
        assert!(!home.file("app.db-dash").exists() && !home.file("app.db-journal").exists());
        assert_eq!(home.stock_rows(), 202);
        kill(Pid::from_raw(i32::try_from(top.id()).unwrap()), Signal::SIGINT).unwrap();
        assert!(top.wait().unwrap().success(), "Ctrl-C ends it as any other end");
    }
}

#[test]
fn it_ends_when_nobody_reads() {
    let home = in_wal_mode();
    let mut top = home
        .command(&["top", "app.db", "--interval", "0.1"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(top.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert!(line.contains("no connection of dash"), "{line}");
    drop(output);
    assert!(top.wait().unwrap().success());
}

#[test]
fn q_ends_it_and_the_terminal_is_as_before() {
    use nix::pty::openpty;
    use nix::sys::termios::{LocalFlags, tcgetattr};
    let home = in_wal_mode();
    let pty = openpty(None, None).unwrap();
    let end = || Stdio::from(pty.slave.try_clone().unwrap());
    let mut top = home.command(&["top", "app.db"]).stdin(end()).stdout(end()).spawn().unwrap();
    let mut terminal = std::fs::File::from(pty.master.try_clone().unwrap());
    let mut shown = String::new();
    while !shown.contains("no connection of dash") {
        let mut bytes = [0; 256];
        let read = std::io::Read::read(&mut terminal, &mut bytes).unwrap();
        shown.push_str(&String::from_utf8_lossy(&bytes[..read]));
    }
    let echoes = || tcgetattr(&pty.slave).unwrap().local_flags.contains(LocalFlags::ECHO);
    assert!(!echoes());
    terminal.write_all(b"xq").unwrap();
    assert!(top.wait().unwrap().success());
    assert!(echoes());
}
