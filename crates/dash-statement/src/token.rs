//! The tokens of a text of SQL, as far as parameters, ends and lines have to be told from others.
//! A text need not be UTF-8: SQLite does not check.

/// What a text begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `?`, `?1`, `:a`, `@a`, `$a`, `#1`.
    Parameter,
    /// A name, a keyword or a number.
    Word,
    /// What stands in quotes, of any kind.
    Quoted,
    /// `-- …`, with the line break at its end; `is_open`: there is none.
    Line { is_open: bool },
    /// `/* … */`; `is_open`: it has no end.
    Comment { is_open: bool },
    /// One byte.
    Other,
}

/// The token that a text begins with, and its bytes; `None` at the end.
pub fn token(sql: &[u8]) -> Option<(Kind, usize)> {
    let while_word = |from: usize| from + sql[from..].iter().take_while(|it| is_word(**it)).count();
    let until = |from: usize, end: &[u8]| {
        let rest = sql.get(from..).unwrap_or_default();
        let at = rest.windows(end.len()).position(|window| window == end);
        (at.map_or(sql.len(), |at| from + at + end.len()), at.is_none())
    };
    let first = *sql.first()?;
    Some(match (first, sql.get(1)) {
        (b'\'' | b'"' | b'`', _) => (Kind::Quoted, until(1, &[first]).0),
        (b'[', _) => (Kind::Quoted, until(1, b"]").0),
        (b'-', Some(b'-')) => {
            let (length, is_open) = until(2, b"\n");
            (Kind::Line { is_open }, length)
        }
        (b'/', Some(b'*')) => {
            let (length, is_open) = until(2, b"*/");
            (Kind::Comment { is_open }, length)
        }
        (b'?', _) => {
            let digits = sql[1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            (Kind::Parameter, 1 + digits)
        }
        (b'$', _) => named(variable(sql, while_word(1))),
        (b':' | b'@' | b'#', _) => named(while_word(1)),
        (byte, _) if is_word(byte) => (Kind::Word, while_word(1)),
        _ => (Kind::Other, 1),
    })
}

/// Whether a byte is part of a name.
pub fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte >= 0x80 || b"_$".contains(&byte)
}

/// A mark alone names nothing.
fn named(length: usize) -> (Kind, usize) {
    (if length > 1 { Kind::Parameter } else { Kind::Other }, length)
}

/// `$name::suffix(anything)`, as Tcl has it.
fn variable(sql: &[u8], mut end: usize) -> usize {
    while sql[end..].starts_with(b"::") {
        end += 2 + sql[end + 2..].iter().take_while(|byte| is_word(**byte)).count();
    }
    match sql.get(end) {
        Some(b'(') => {
            sql[end..].iter().position(|byte| *byte == b')').map_or(end, |at| end + at + 1)
        }
        _ => end,
    }
}
