//! `sqlite-dash log` of a log that somebody has forged: nothing that it prints is a command, to the
//! `sqlite3` shell or to a terminal.
#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use super::common::forged::{Sender, control, statement};
use dash_statement::{Control, Event, Value, is_obeyed};
use dash_testing::long::moment;
use dash_testing::machine::has_sqlite3;
use dash_testing::random::Random;

/// What is printed last, by a statement as any: it is reached, whatever stands before.
const LAST: &str = "SELECT 'reached' AS the_end";

/// Texts that are no statement, or not one, or end where SQLite's do not.
const TEXTS: [&str; 32] = [
    "%",
    "\n%",
    "SELECT 1\n%",
    "SELECT 1;\n%\n",
    "SELECT 1\r%",
    "SELECT 1;\r\n%\r\n",
    "SELECT 1;\0\n%\n",
    "/* x */\n%",
    "/*\n%",
    "/* x\n*/\n%",
    "SELECT 1 /*",
    "SELECT 1 */;\n%",
    "-- x\n%",
    "-- x\r%",
    "SELECT 1 -- \n;\n%\n",
    "SELECT '\n%\n'",
    "SELECT \"\n%",
    "SELECT [\n%\n]",
    "SELECT `;\n%\n`",
    "SELECT 'a",
    "SELECT $a(';\n%\n')",
    "SELECT :a(;\n%\n)",
    ";;\n%",
    "/\n%\n",
    "go\n%\n",
    "\u{feff}%",
    "\u{feff}CREATE TRIGGER a INSERT ON t BEGIN SELECT 1;\n%\nEND",
    "CREATE TRIGGER a INSERT ON t BEGIN SELECT 1;\n%\n",
    "!touch OWNED",
    "#\n%",
    "SAVEPOINT a;\n%",
    "ROLLBACK TO \"a\n%\"",
];

/// What the shell makes of it, in a folder of its own: whether it ran a command, and what it says.
fn ran(sql: &[u8]) -> (bool, String) {
    let folder = tempfile::tempdir().unwrap();
    let mut shell = Command::new("sqlite3")
        .arg("scratch.db")
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = shell.stdin.take().unwrap();
    // One that ends by itself reads no more.
    drop(input.write_all(sql));
    drop(input);
    let said = shell.wait_with_output().unwrap();
    let owned = Path::new(folder.path()).join("OWNED").exists();
    (owned, String::from_utf8_lossy(&said.stdout).into_owned())
}

fn is_harmless(sender: &Sender, mut events: Vec<Event>) {
    events.push(statement(LAST.as_bytes(), None));
    let shown = format!("{events:?}");
    let home = sender.forge(events);
    let sql = home.dash(&["log", "app.db", "--sql"]).is(0).0.stdout;
    let text = home.dash(&["log", "app.db"]).is(0).0.stdout;
    let json = home.dash(&["log", "app.db", "--json"]).is(0).0.stdout;
    for printed in [&sql, &text, &json] {
        let mut chars = printed.utf8_chunks().flat_map(|chunk| chunk.valid().chars());
        assert!(!chars.any(|c| c != '\r' && is_obeyed(c)), "{shown}");
        let ends = printed.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
        assert!(!ends.into_iter().any(|line| line.contains(&b'\r')), "{shown}");
    }
    let (owned, said) = ran(&sql);
    let sql = String::from_utf8_lossy(&sql);
    assert!(!owned, "the shell ran a command: {shown}\n{sql}");
    assert!(said.lines().any(|line| line == "reached"), "a text hid another: {shown}\n{sql}");
}

/// SEC S2-2
#[test]
fn no_text_of_it_is_a_command() {
    if !has_sqlite3() {
        return;
    }
    let sender = Sender::new();
    for text in TEXTS {
        let text = text.replace('%', ".shell touch OWNED");
        let bytes = text.as_bytes();
        let value = || Some(vec![Value::Text(bytes.to_vec())]);
        for events in [
            vec![statement(bytes, None)],
            vec![statement(bytes, value())],
            vec![statement(b"INSERT INTO t VALUES (?)", value()), statement(bytes, value())],
            vec![control(Control::Savepoint, bytes), control(Control::Release, bytes)],
            vec![control(Control::RollbackTo, bytes)],
        ] {
            is_harmless(&sender, events);
        }
    }
}

/// SEC S2-2
#[test]
fn no_random_text_of_it_is_a_command() {
    if !has_sqlite3() {
        return;
    }
    const PIECES: [&str; 34] = [
        "SELECT ",
        "CREATE TRIGGER ",
        "EXPLAIN ",
        "END",
        "1",
        "'",
        "'",
        "\"",
        "[",
        "]",
        "`",
        "/*",
        "*/",
        "--",
        "\n",
        "\n",
        "\r",
        "\r\n",
        ";",
        ";\n",
        "\n.shell touch OWNED\n",
        "\n.shell touch OWNED\n",
        ".shell touch OWNED",
        "/",
        "go",
        "$a(",
        ":b(",
        ")",
        "?",
        "#",
        "\0",
        "\u{feff}",
        "\u{1b}[2J",
        " ",
    ];
    let (sender, mut random) = (Sender::new(), Random(39));
    for _ in 0..moment(100, 3000) {
        let events = (0..1 + random.below(3)).map(|_| {
            let begin = if random.below(2) == 0 { "SELECT 1 " } else { "" };
            let pieces = (0..random.below(12)).map(|_| random.one_of(&PIECES));
            let text = begin.to_owned() + &pieces.collect::<String>();
            let value = Value::Text(
                (0..random.below(4))
                    .map(|_| random.one_of(&PIECES))
                    .collect::<String>()
                    .into_bytes(),
            );
            match random.below(5) {
                0 => control(Control::Savepoint, text.as_bytes()),
                1 => statement(text.as_bytes(), None),
                _ => statement(text.as_bytes(), Some(vec![value])),
            }
        });
        let events: Vec<_> = events.collect();
        is_harmless(&sender, events);
    }
}

/// SEC S2-10
#[test]
fn a_terminal_is_told_nothing() {
    let sender = Sender::new();
    let text = b"SELECT '\x1b]0;owned\x07\x1b[2J\x9b31m\xc2\x9b31m\x08\x7f\xe2\x80\xae'";
    let home = sender.forge(vec![statement(text, None)]);
    for arguments in
        [&["log", "app.db"][..], &["log", "app.db", "--sql"], &["log", "app.db", "--json"]]
    {
        let printed = home.dash(arguments).is(0).0.stdout;
        for bad in [&b"\x1b"[..], b"\x07", b"\xc2\x9b", b"\x08", b"\x7f", b"\xe2\x80\xae"] {
            let has = printed.windows(bad.len()).any(|window| window == bad);
            assert!(!has, "{arguments:?}: {bad:?}");
        }
    }
    let json = home.dash(&["log", "app.db", "--json"]).is(0).out();
    let last: serde_json::Value = serde_json::from_str(json.lines().last().unwrap()).unwrap();
    let sql = last["statements"][0]["sql"].as_str().unwrap();
    assert!(sql.starts_with("SELECT '\u{1b}]0;owned\u{7}"), "{sql:?}");
}
