//! Values as SQL writes them, so that what is read again is what was bound.

use std::collections::BTreeSet;

use crate::model::Value;
use crate::real;
use crate::terminal::is_obeyed;

/// Values between commas.
#[must_use]
pub fn literals(values: &[Value]) -> String {
    values.iter().map(literal).collect::<Vec<_>>().join(", ")
}

/// One value. A real number has 17 digits, which are enough for every bit; infinity is a number too
/// large for a real; in a text what a line or a terminal can't hold is a mark that is replaced.
#[must_use]
pub fn literal(value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Integer(value) => value.to_string(),
        Value::Real(bits) => real::decimal(f64::from_bits(*bits)),
        Value::Text(text) => match core::str::from_utf8(text) {
            Ok(text) => quoted(text),
            // Without the plus a cast would change what is compared with it.
            Err(_) => format!("+CAST({} AS TEXT)", hex(text)),
        },
        Value::Blob(blob) => hex(blob),
        Value::Zeroblob(count) => format!("zeroblob({count})"),
        Value::Pointer => "NULL /* a pointer */".to_owned(),
    }
}

/// The same, with real numbers as SQLite itself reads them to the last bit, which it does not do
/// with every decimal.
#[must_use]
pub fn exact(value: &Value) -> String {
    match value {
        Value::Real(bits) => real::exact(f64::from_bits(*bits)),
        value => literal(value),
    }
}

/// A text in quotes, as an expression where it has what a terminal obeys.
pub fn written(text: &[u8]) -> String {
    literal(&Value::Text(text.to_vec()))
}

/// A text. A literal can't hold a zero, the `sqlite3` shell drops a carriage return at the end of a
/// line, and what a terminal obeys is not to be printed. The bytes of a text depend on the
/// database's encoding, so it is cast from none.
fn quoted(text: &str) -> String {
    let special: BTreeSet<char> = text.chars().filter(|c| is_obeyed(*c)).collect();
    let mut marked = text.replace('\'', "''");
    let mut marks = Vec::new();
    for special in special.into_iter().rev() {
        let mark = mark(text, &name(special));
        marked = marked.replace(special, &mark);
        marks.push((mark, u32::from(special)));
    }
    marks.into_iter().fold(format!("'{marked}'"), |written, (mark, special)| {
        format!("replace({written}, '{mark}', char({special}))")
    })
}

/// What a character is called behind the backslash of its mark. None is the beginning of another.
fn name(special: char) -> String {
    match special {
        '\r' => "r".to_owned(),
        '\0' => "z".to_owned(),
        other => format!("{{{:x}}}", u32::from(other)),
    }
}

/// What stands for a character in a text that does not have it. It has its first character only
/// once, so nothing beside it makes another one.
fn mark(text: &str, name: &str) -> String {
    let numbered = (1_u64..).map(|number| format!("\\{number}{name}"));
    let mut marks = std::iter::once(format!("\\{name}")).chain(numbered);
    marks.find(|mark| !text.contains(mark)).unwrap_or_default()
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: [char; 16] =
        ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F'];
    let digit = |value: u8| DIGITS[usize::from(value & 15)];
    let digits = bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]);
    format!("X'{}'", digits.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_literal_says_exactly_what_was_bound() {
        let real = |value: f64| literal(&Value::Real(value.to_bits()));
        let text = |text: &[u8]| literal(&Value::Text(text.to_vec()));
        for (literal, expected) in [
            (real(0.1 + 0.2), "3.0000000000000004e-1"),
            (real(-0.0), "-0.0000000000000000e0"),
            (real(f64::INFINITY), "9e999"),
            (real(f64::NEG_INFINITY), "-9e999"),
            (real(5e-324), "4.9406564584124654e-324"),
            (literal(&Value::Integer(i64::MIN)), "-9223372036854775808"),
            (text(b"it's"), "'it''s'"),
            (text(b"a\nb"), "'a\nb'"),
            (text(b"a\0b"), r"replace('a\zb', '\z', char(0))"),
            (text(b"\\r\\1r\r"), r"replace('\r\1r\2r', '\2r', char(13))"),
            (text(b"'\r\0"), r"replace(replace('''\r\z', '\r', char(13)), '\z', char(0))"),
            (
                text(b"\x1b\r\\{1b}\x7f"),
                r"replace(replace(replace('\1{1b}\r\{1b}\{7f}', '\{7f}', char(127)), '\1{1b}', char(27)), '\r', char(13))",
            ),
            (text("\u{202e}".as_bytes()), r"replace('\{202e}', '\{202e}', char(8238))"),
            (text(b"\xff"), "+CAST(X'FF' AS TEXT)"),
            (literal(&Value::Blob(vec![0, 171])), "X'00AB'"),
            (literal(&Value::Zeroblob(9)), "zeroblob(9)"),
            (literal(&Value::Pointer), "NULL /* a pointer */"),
            (literals(&[Value::Null, Value::Integer(-5)]), "NULL, -5"),
            (exact(&Value::Real(0.5_f64.to_bits())), "0.5"),
        ] {
            assert_eq!(literal, expected);
        }
    }
}
