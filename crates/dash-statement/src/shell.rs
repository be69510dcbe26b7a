//! A statement as the `sqlite3` shell takes it for one: with an end, without lines in which the
//! shell sees something else than SQLite does, and without what a terminal obeys. A log may be
//! anybody's: what the shell would take for anything but the one statement is not written at all.
//!
//! The shell takes a line for a command of its own, such as `.shell`, where it has read nothing of
//! a statement so far. So what is written begins with a letter, and ends with the only semicolon
//! that ends a statement.

use crate::literal::written;
use crate::model::Control;
use crate::only::{Only, only};
use crate::reach::reaches_out;
use crate::terminal::{has_obeyed, without_obeyed};
use crate::token::{Kind, is_blank as is_space_of_sql, is_word, token};

/// Why a text is not written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unwritten {
    /// The shell would not take it for one statement.
    #[error("not one whole statement")]
    NotOne,
    /// It begins with a word, or reaches for a file, as no statement does that is recorded.
    #[error("no statement that a log records")]
    NotRecorded,
    /// A name has it, or a definition.
    #[error("it has what a terminal obeys, where SQL can't say it otherwise")]
    Obeyed,
}

/// What a statement begins with that may write a database, in which a text may be an expression;
/// and the others.
const OF_ROWS: [&str; 8] =
    ["DELETE", "EXPLAIN", "INSERT", "REPLACE", "SELECT", "UPDATE", "VALUES", "WITH"];
const OF_SCHEMA: [&str; 7] = ["ALTER", "ANALYZE", "CREATE", "DROP", "PRAGMA", "REINDEX", "VACUUM"];

/// The text, and whatever ends it (`STATEMENT-5`).
///
/// - A comment that is open at its end, which SQLite allows, is closed.
/// - A line that is a mere `/` or `go` ends a statement in the shell; a comment before it does not.
/// - The shell drops a carriage return at the end of a line; with a second one it keeps the first.
/// - What a terminal obeys is a blank in a comment or between words, and a call of `char()` in a
///   text.
///
/// # Errors
///
/// Why it is not written.
pub fn for_shell(sql: &[u8]) -> Result<Vec<u8>, Unwritten> {
    let only = only(sql).ok_or(Unwritten::NotOne)?;
    let is_into = only.is_any(&["VACUUM"]) && only.has_into;
    if is_into || reaches_out(only.text) || !(only.is_any(&OF_ROWS) || only.is_any(&OF_SCHEMA)) {
        return Err(Unwritten::NotRecorded);
    }
    write(only)
}

/// A savepoint's statement, made of the name in it.
///
/// # Errors
///
/// As of [`for_shell`].
pub fn control_for_shell(control: Control, sql: &[u8]) -> Result<Vec<u8>, Unwritten> {
    let made = control.statement(sql).ok_or(Unwritten::NotOne)?;
    write(only(made.as_bytes()).ok_or(Unwritten::NotOne)?)
}

fn write(only: Only<'_>) -> Result<Vec<u8>, Unwritten> {
    let mut out = Vec::with_capacity(only.text.len() + 4);
    let (mut rest, mut last) = (only.text, None);
    while let Some((kind, mut length)) = token(rest) {
        let is_text = rest[0] == b'\'';
        while is_text && rest.get(length) == Some(&b'\'') {
            length += token(&rest[length..]).map_or(1, |(_, more)| more);
        }
        let (text, behind) = rest.split_at(length);
        if is_end(text) && is_blank(&out) && is_blank_behind(behind) {
            out.extend(b"/**/ ");
        }
        match kind {
            _ if !has_obeyed(rest, length) => put(&mut out, text),
            Kind::Line { .. } | Kind::Comment { .. } => {
                put(&mut out, &without_obeyed(rest, length));
            }
            Kind::Other if is_space_of_sql(text) => out.push(b' '),
            Kind::Quoted
                if is_text
                    && only.is_any(&OF_ROWS)
                    && !out.last().is_some_and(|byte| is_word(*byte)) =>
            {
                let value = &text[1..text.len() - 1];
                out.extend(format!(" {} ", written(&unquoted(value))).as_bytes());
            }
            _ => return Err(Unwritten::Obeyed),
        }
        (rest, last) = (behind, Some(kind));
    }
    match last {
        Some(Kind::Line { is_open: true }) => put(&mut out, b"\n;"),
        Some(Kind::Comment { is_open: true }) => out.extend(b"*/;"),
        _ => out.push(b';'),
    }
    Ok(out)
}

/// What stands between the quotes, with each doubled one once.
fn unquoted(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        out.push(*byte);
        if *byte == b'\'' {
            bytes.next();
        }
    }
    out
}

fn put(out: &mut Vec<u8>, text: &[u8]) {
    for byte in text {
        if *byte == b'\n' && out.last() == Some(&b'\r') {
            out.push(b'\r');
        }
        out.push(*byte);
    }
}

fn is_end(text: &[u8]) -> bool {
    text == b"/" || text.eq_ignore_ascii_case(b"go")
}

/// Whether the last line has nothing so far. The first one has the statement's beginning.
fn is_blank(out: &[u8]) -> bool {
    let line = out.iter().rev().take_while(|byte| **byte != b'\n');
    line.clone().all(|byte| is_space(*byte)) && line.count() < out.len()
}

/// Whether a line may end with nothing, or with comments.
fn is_blank_behind(rest: &[u8]) -> bool {
    let skipped = rest.iter().position(|byte| *byte == b'\n' || !is_space(*byte));
    let rest = rest.get(skipped.unwrap_or(rest.len())..).unwrap_or_default();
    rest.is_empty() || [&b"\n"[..], b"--", b"/*"].iter().any(|start| rest.starts_with(start))
}

fn is_space(byte: u8) -> bool {
    byte == 0x0b || byte.is_ascii_whitespace()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `STATEMENT-5`: random texts are tried in `dash-cli/tests/log_sql.rs`.
    #[test]
    fn what_the_shell_takes_for_something_else_is_written_otherwise() {
        for (sql, expected) in [
            ("SELECT 1", "SELECT 1;"),
            ("SELECT 1 ;", "SELECT 1 ;"),
            ("SELECT 1; -- one", "SELECT 1;"),
            ("-- one\nSELECT 1", "SELECT 1;"),
            ("SELECT 1 -- one", "SELECT 1 -- one\n;"),
            ("SELECT 1 -- one;", "SELECT 1 -- one;\n;"),
            ("SELECT '--'", "SELECT '--';"),
            ("SELECT 1 /* one", "SELECT 1 /* one*/;"),
            ("SELECT 1 /**", "SELECT 1 /***/;"),
            ("SELECT 1 /*", "SELECT 1 /**/;"),
            ("SELECT 1 /*/", "SELECT 1 /*/*/;"),
            ("SELECT 1 /* one */", "SELECT 1 /* one */;"),
            ("SELECT 4\n/\n2", "SELECT 4\n/**/ /\n2;"),
            ("SELECT 4\n / -- by\r\n2", "SELECT 4\n /**/ / -- by\r\r\n2;"),
            ("SELECT 4\n/2", "SELECT 4\n/2;"),
            ("SELECT a FROM\n Go \t\nWHERE '\n/\n'", "SELECT a FROM\n /**/ Go \t\nWHERE '\n/\n';"),
            ("SELECT a FROM\ngo", "SELECT a FROM\n/**/ go;"),
            ("SELECT 'a\r\nb'", "SELECT 'a\r\r\nb';"),
            ("SELECT 'a''\rb',1", "SELECT  replace('a''\\rb', '\\r', char(13)) ,1;"),
            ("SELECT\x0c1\r,\u{feff}2/*\x1b[2J*/", "SELECT 1 , 2/* [2J*/;"),
            ("CREATE VIEW v AS SELECT 'a\r\nb'", "CREATE VIEW v AS SELECT 'a\r\r\nb';"),
        ] {
            let written = for_shell(sql.as_bytes()).expect(sql);
            assert_eq!(String::from_utf8_lossy(&written), expected);
        }
    }

    /// SEC S2-2
    #[test]
    fn what_it_would_take_for_a_command_is_not_written() {
        use Unwritten::{NotOne, NotRecorded, Obeyed};
        for (sql, why) in [
            (".shell x", NotOne),
            ("SELECT 1;\n.shell x", NotOne),
            ("SELECT 1;\0\n.shell x", NotOne),
            ("/* x */\n.shell x", NotOne),
            ("CREATE TRIGGER t BEGIN", NotOne),
            ("ATTACH 'x' AS y", NotRecorded),
            ("VACUUM INTO 'x'", NotRecorded),
            ("COMMIT", NotRecorded),
            ("go\n.shell x", NotRecorded),
            ("SELECT \"\x1b[2J\"", Obeyed),
            ("SELECT a\u{202e}b", Obeyed),
            ("SELECT x'\x1b'", Obeyed),
            ("CREATE VIEW v AS SELECT '\x1b'", Obeyed),
        ] {
            assert_eq!(for_shell(sql.as_bytes()), Err(why), "{sql:?}");
        }
        let control = |sql: &str| control_for_shell(Control::Savepoint, sql.as_bytes());
        assert_eq!(control("SAVEPOINT a -- x"), Ok(b"SAVEPOINT \"a\";".to_vec()));
        assert_eq!(control("SAVEPOINT a;\n.shell x"), Err(NotOne));
        assert_eq!(control("SAVEPOINT \"\x1b\""), Err(Obeyed));
        assert_eq!(control(".shell x"), Err(NotOne));
    }
}
