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
    /// One byte; a byte order mark, which is a blank to SQLite; or a mark that should name a
    /// parameter and does not.
    Other,
}

/// What SQLite takes for nothing.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

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
        (b'$' | b':' | b'@' | b'#', _) => named(sql),
        _ if sql.starts_with(BYTE_ORDER_MARK) => (Kind::Other, BYTE_ORDER_MARK.len()),
        (byte, _) if is_word(byte) => (Kind::Word, while_word(1)),
        _ => (Kind::Other, 1),
    })
}

/// Whether a byte is part of a name.
pub fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte >= 0x80 || b"_$".contains(&byte)
}

/// Whether this is white space to SQLite: a byte, or a byte order mark.
pub fn is_blank(text: &[u8]) -> bool {
    matches!(text, [b' ' | b'\t' | b'\n' | 0x0c | b'\r']) || text == BYTE_ORDER_MARK
}

/// `$name::suffix(anything)`, as Tcl has it, behind any mark; what is in braces has no blank. A
/// mark alone names nothing.
fn named(sql: &[u8]) -> (Kind, usize) {
    let (mut end, mut is_named) = (1, false);
    loop {
        match sql[end..] {
            [byte, ..] if is_word(byte) => {
                is_named = true;
                end += 1;
            }
            [b':', b':', ..] => end += 2,
            [b'(', ref inner @ ..] if is_named => {
                let ends = |byte: &u8| *byte == b')' || byte.is_ascii_whitespace() || *byte == 0x0b;
                let at = inner.iter().position(ends).unwrap_or(inner.len());
                return match inner.get(at) {
                    Some(b')') => (Kind::Parameter, end + at + 2),
                    _ => (Kind::Other, end + at + 1),
                };
            }
            _ => return (if is_named { Kind::Parameter } else { Kind::Other }, end),
        }
    }
}
