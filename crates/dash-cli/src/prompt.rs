//! A small SQL prompt, for machines without `sqlite3`: statements end with a semicolon, columns
//! are separated by `|`, `.quit` or the end of input leaves.

use std::ffi::OsString;
use std::io::{BufRead, IsTerminal, Write};
use std::path::Path;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode};

use crate::Outcome;
use crate::extension::Extension;
use crate::failure::{Explain, Failure, Result};
use crate::out::{say, say_aside};
use crate::split;

/// Runs statements given as arguments, else those that are typed.
pub fn run(extension: &Extension, file: &Path, arguments: &[OsString]) -> Result<Outcome> {
    let db = extension.open(file, true)?;
    if let Some(option) =
        arguments.iter().find(|argument| argument.as_encoded_bytes().starts_with(b"-"))
    {
        return Err(Failure::new(format!(
            "{} is an option of sqlite3, which is not installed",
            option.to_string_lossy()
        )));
    }
    let mut good = true;
    for sql in arguments {
        good &= execute(&db, &sql.to_string_lossy());
    }
    if arguments.is_empty() {
        good &= converse(&db)?;
    }
    Ok(if good { Outcome::Good } else { Outcome::Bad })
}

fn converse(db: &Connection) -> Result<bool> {
    let typed = std::io::stdin().is_terminal();
    let mut good = true;
    let mut text = String::new();
    let mut input = std::io::stdin().lock();
    loop {
        if typed {
            print!("{}", if text.is_empty() { "dash> " } else { "  ...> " });
            std::io::stdout().flush().explain("writing the prompt")?;
        }
        let mut line = String::new();
        let end = input.read_line(&mut line).explain("reading a statement")? == 0;
        if end || matches!(line.trim(), ".quit" | ".exit") && text.is_empty() {
            good &= execute(db, &text);
            return Ok(good);
        }
        text.push_str(&line);
        if split::is_complete(&text) {
            good &= execute(db, &text);
            text.clear();
        }
    }
}

fn execute(db: &Connection, sql: &str) -> bool {
    for statement in split::at_semicolons(sql) {
        if let Err(error) = print_rows(db, &statement) {
            say_aside!("Error: {error}");
            if let Some(more) = more(db, &error) {
                say_aside!("{more}");
            }
            return false;
        }
    }
    true
}

/// What dash knows of an error that SQLite has but a few words for.
fn more(db: &Connection, error: &rusqlite::Error) -> Option<String> {
    let code = error.sqlite_error_code()?;
    let says: Option<String> =
        db.query_row("SELECT dash_last_error()", [], |row| row.get(0)).ok()?;
    says.filter(|says| code != ErrorCode::Unknown && !error.to_string().contains(says.as_str()))
}

fn print_rows(db: &Connection, sql: &str) -> rusqlite::Result<()> {
    let mut statement = db.prepare(sql)?;
    let columns = statement.column_count();
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let cells: Vec<String> = (0..columns)
            .map(|column| row.get_ref(column).map(shown))
            .collect::<rusqlite::Result<_>>()?;
        say!("{}", cells.join("|"));
    }
    Ok(())
}

fn shown(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Null => String::new(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => number.to_string(),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            String::from_utf8_lossy(bytes).into_owned()
        }
    }
}
