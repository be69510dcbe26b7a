//! A statement as the `sqlite3` shell takes it for one: with an end, and without lines in which the
//! shell sees something else than SQLite does.

use crate::token::{Kind, token};

/// The text, and whatever ends it (`STATEMENT-5`).
///
/// - A comment that is open at its end, which SQLite allows, is closed.
/// - A line that is a mere `/` or `go` ends a statement in the shell; a comment before it does not.
/// - The shell drops a carriage return at the end of a line; with a second one it keeps the first.
#[must_use]
pub fn for_shell(sql: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(sql.len() + 4);
    let (mut rest, mut last) = (sql, None);
    while let Some((kind, length)) = token(rest) {
        let (text, behind) = rest.split_at(length);
        if is_end(text) && is_blank(&out) && is_blank_behind(behind) {
            out.extend(b"/**/ ");
        }
        put(&mut out, text);
        (rest, last) = (behind, Some((kind, text)));
    }
    match last {
        Some((Kind::Line { is_open: true }, _)) => put(&mut out, b"\n;"),
        Some((Kind::Comment { is_open: true }, _)) => out.extend(b"*/;"),
        Some((_, b";")) => {}
        _ => out.push(b';'),
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
            ("SELECT 1 -- one", "SELECT 1 -- one\n;"),
            ("SELECT 1 -- one;", "SELECT 1 -- one;\n;"),
            ("SELECT '--'", "SELECT '--';"),
            ("SELECT 1 /* one", "SELECT 1 /* one*/;"),
            ("SELECT 1 /**", "SELECT 1 /***/;"),
            ("SELECT 1 /* one */", "SELECT 1 /* one */;"),
            ("SELECT 4\n/\n2", "SELECT 4\n/**/ /\n2;"),
            ("SELECT 4\n / -- by\r\n2", "SELECT 4\n /**/ / -- by\r\r\n2;"),
            ("SELECT 4\n/2", "SELECT 4\n/2;"),
            ("SELECT a FROM\n Go \t\nWHERE '\n/\n'", "SELECT a FROM\n /**/ Go \t\nWHERE '\n/\n';"),
            ("SELECT a FROM\ngo", "SELECT a FROM\n/**/ go;"),
            ("SELECT 'a\r\nb\rc'", "SELECT 'a\r\r\nb\rc';"),
        ] {
            assert_eq!(String::from_utf8_lossy(&for_shell(sql.as_bytes())), expected);
        }
    }
}
