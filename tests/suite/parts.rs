//! The parts that this test program plays when it is started again as another process.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use dash_testing::roles;
use rusqlite::Connection;

use super::{sandbox, workload};

/// The test that plays them all.
const PART: &str = "suite::parts::another_process_plays_its_part";
/// Before every line of ours: the test harness prints lines of its own.
pub const MARK: char = '\u{1}';

/// What a dash process does besides.
#[derive(Debug, Clone, Copy, Default)]
pub struct Part<'a> {
    /// URI parameters, such as `&dash_commit=paper`.
    pub parameters: &'a str,
    /// Becomes this user, in a group of the same number,
    pub user: Option<u32>,
    /// and in this one.
    pub group: Option<u32>,
    /// Permission bits that its new files lack.
    pub umask: Option<u32>,
    /// Runs where the kernel can't exchange two names.
    pub no_exchange: bool,
    /// The kernel gives no file a second name (`linkat` fails).
    pub no_links: bool,
    /// Relative to this folder are paths.
    pub folder: Option<&'a Path>,
}

/// This program again, in a part.
pub fn again(role: &str, path: &Path, part: Part<'_>) -> Command {
    let mut command = roles::again(PART, role);
    command.env("DASH_SUITE_FILE", path).env("DASH_SUITE_PARAMETERS", part.parameters);
    if let Some(user) = part.user {
        command.env("DASH_SUITE_USER", user.to_string());
    }
    if let Some(group) = part.group {
        command.env("DASH_SUITE_GROUP", group.to_string());
    }
    if let Some(umask) = part.umask {
        command.env("DASH_SUITE_UMASK", umask.to_string());
    }
    if part.no_exchange {
        command.env("DASH_SUITE_NO_EXCHANGE", "1");
    }
    if part.no_links {
        command.env("DASH_SUITE_NO_LINKS", "1");
    }
    if let Some(folder) = part.folder {
        command.current_dir(folder);
    }
    command
}

#[test]
#[ignore = "what other processes are started for"]
fn another_process_plays_its_part() {
    let Some(role) = roles::role(PART) else { return };
    let file = std::env::var_os("DASH_SUITE_FILE").expect("a path");
    if role != "stock" {
        super::load();
    }
    if std::env::var_os("DASH_SUITE_NO_EXCHANGE").is_some() {
        sandbox::forbid_exchange();
    }
    if std::env::var_os("DASH_SUITE_NO_LINKS").is_some() {
        sandbox::forbid_links();
    }
    let number = |name: &str| -> Option<u32> {
        std::env::var(name).ok().map(|number| number.parse().expect("a number"))
    };
    if let Some(umask) = number("DASH_SUITE_UMASK") {
        sandbox::keep_from_new_files(umask);
    }
    if let Some(user) = number("DASH_SUITE_USER") {
        sandbox::become_user(user, number("DASH_SUITE_GROUP"));
    }
    let opened = match &*role {
        "stock" => Connection::open(Path::new(&file)),
        _ => super::open_dash(&file, &std::env::var("DASH_SUITE_PARAMETERS").unwrap_or_default()),
    };
    match (&*role, opened) {
        ("writer", Ok(db)) => write_for_ever(&db),
        ("writer", Err(error)) => panic!("the writer opens: {error}; {}", last_error()),
        (_, Ok(db)) => {
            answer(Ok(String::new()));
            answer_lines(&db);
        }
        (_, Err(error)) => answer(Err(format!("{error}; {}", last_error()))),
    }
}

/// What dash said last in this process.
pub fn last_error() -> String {
    super::load();
    let db = Connection::open_in_memory().expect("memory");
    db.query_row("SELECT dash_last_error()", [], |row| row.get::<_, Option<String>>(0))
        .ok()
        .flatten()
        .unwrap_or_default()
}

fn answer(answer: Result<String, String>) {
    let (kind, text) = match answer {
        Ok(text) => ("ok", text),
        Err(text) => ("no", text.replace('\n', " ")),
    };
    println!("{MARK}{kind}\t{text}");
}

fn answer_lines(db: &Connection) {
    for line in std::io::stdin().lines() {
        let line = line.expect("text");
        answer(run(db, &line).map_err(|error| error.to_string()));
    }
}

fn run(db: &Connection, sql: &str) -> rusqlite::Result<String> {
    let mut statement = db.prepare(sql)?;
    let columns = statement.column_count();
    let mut rows = statement.query([])?;
    let mut lines = Vec::new();
    while let Some(row) = rows.next()? {
        let values = (0..columns).map(|column| {
            Ok(match row.get::<_, rusqlite::types::Value>(column)? {
                rusqlite::types::Value::Text(text) => text,
                rusqlite::types::Value::Integer(number) => number.to_string(),
                other => format!("{other:?}"),
            })
        });
        lines.push(values.collect::<rusqlite::Result<Vec<_>>>()?.join(","));
    }
    Ok(lines.join("|"))
}

fn write_for_ever(db: &Connection) {
    db.busy_timeout(Duration::from_secs(20)).expect("sets");
    loop {
        let n = workload::commit_next(db)
            .unwrap_or_else(|error| panic!("commits: {error:?}; {}", last_error()));
        println!("{MARK}ok\t{n}");
    }
}
