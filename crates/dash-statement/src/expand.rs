//! A statement with its values in the place of its parameters, to be run by whoever reads SQL.
//!
//! `sqlite3_expanded_sql` makes another program of some statements: `c-?` with a negative value
//! becomes a comment, and a real number loses digits. Here each value stands between blanks, and a
//! negative one in parentheses.

use crate::literal::literal;
use crate::model::Value;

/// See the module. A parameter without a value is NULL, as in SQLite. A text that is no UTF-8 has
/// replacement characters.
#[must_use]
pub fn expand(sql: &[u8], values: &[Value]) -> String {
    let sql = String::from_utf8_lossy(sql);
    let mut out = String::with_capacity(sql.len() + 16 * values.len());
    let (mut rest, mut names, mut greatest) = (&sql[..], Vec::<(&str, usize)>::new(), 0);
    while let Some(length) = token(rest) {
        let (text, behind) = rest.split_at(length);
        rest = behind;
        let number = match text.as_bytes() {
            [b'?'] => next(greatest),
            [b'?', digits @ ..] => number(digits),
            [b':' | b'@' | b'$' | b'#', _, ..] => match names.iter().find(|it| it.0 == text) {
                Some((_, number)) => *number,
                None => {
                    names.push((text, next(greatest)));
                    next(greatest)
                }
            },
            _ => {
                out.push_str(text);
                continue;
            }
        };
        greatest = greatest.max(number);
        put(&mut out, values.get(number.wrapping_sub(1)).unwrap_or(&Value::Null), rest);
    }
    out
}

/// The number of a parameter that has none of its own.
fn next(greatest: usize) -> usize {
    greatest.saturating_add(1)
}

/// What follows a question mark. SQLite refuses one above 32766; a forged text may have any.
fn number(digits: &[u8]) -> usize {
    digits.iter().fold(0, |number, digit| {
        number.saturating_mul(10).saturating_add(usize::from(digit - b'0'))
    })
}

fn put(out: &mut String, value: &Value, rest: &str) {
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    if out.chars().next_back().is_some_and(is_word) {
        out.push(' ');
    }
    match literal(value) {
        negative if negative.starts_with('-') => {
            out.push('(');
            out.push_str(&negative);
            out.push(')');
        }
        plain => out.push_str(&plain),
    }
    if rest.chars().next().is_some_and(is_word) {
        out.push(' ');
    }
}

/// Bytes of the token that SQL begins with, as far as parameters have to be told from others;
/// `None` at its end.
fn token(sql: &str) -> Option<usize> {
    let bytes = sql.as_bytes();
    let while_word = |from: usize| {
        let is_word =
            |byte: &u8| byte.is_ascii_alphanumeric() || *byte >= 0x80 || b"_$".contains(byte);
        from + bytes[from..].iter().take_while(|byte| is_word(byte)).count()
    };
    let until = |from: usize, end: &str| {
        sql.get(from..)
            .and_then(|rest| rest.find(end))
            .map_or(sql.len(), |at| from + at + end.len())
    };
    let first = *bytes.first()?;
    Some(match (first, bytes.get(1)) {
        (b'\'' | b'"' | b'`', _) => until(1, &sql[..1]),
        (b'[', _) => until(1, "]"),
        (b'-', Some(b'-')) => until(2, "\n"),
        (b'/', Some(b'*')) => until(2, "*/"),
        (b'?', _) => 1 + bytes[1..].iter().take_while(|byte| byte.is_ascii_digit()).count(),
        (b'$', _) => variable(sql, while_word(1)),
        (b':' | b'@' | b'#', _) => while_word(1),
        (byte, _) if byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80 => while_word(1),
        _ => 1,
    })
}

/// `$name::suffix(anything)`, as Tcl has it.
fn variable(sql: &str, mut end: usize) -> usize {
    let bytes = sql.as_bytes();
    while bytes[end..].starts_with(b"::") {
        let word =
            |byte: &u8| byte.is_ascii_alphanumeric() || *byte >= 0x80 || b"_$".contains(byte);
        end += 2 + bytes[end + 2..].iter().take_while(|byte| word(byte)).count();
    }
    match bytes.get(end) {
        Some(b'(') => sql[end..].find(')').map_or(end, |at| end + at + 1),
        _ => end,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_where_their_parameters_did() {
        let values = [Value::Integer(-5), Value::Text(b"it's".to_vec()), Value::Integer(7)];
        for (sql, expected) in [
            ("UPDATE t SET c=c-? WHERE a=?", "UPDATE t SET c=c-(-5) WHERE a='it''s'"),
            ("SELECT 1 LIMIT?3", "SELECT 1 LIMIT 7"),
            ("VALUES (?2, ?, ?1)", "VALUES ('it''s', 7, (-5))"),
            ("VALUES (:a, @b, :a, $c::d(x), ?)", "VALUES ((-5), 'it''s', (-5), 7, NULL)"),
            (
                "VALUES ('?', \"?\", `?`, [?], ?) -- ?\n",
                "VALUES ('?', \"?\", `?`, [?], (-5)) -- ?\n",
            ),
            ("/* ? */ SELECT 'a''?', x?", "/* ? */ SELECT 'a''?', x (-5)"),
            ("SELECT a->>'$.b', é, ?3", "SELECT a->>'$.b', é, 7"),
            ("SELECT 'open", "SELECT 'open"),
            ("VALUES (?99999999999999999999999999, ?, :a, ?1)", "VALUES (NULL, NULL, NULL, (-5))"),
        ] {
            assert_eq!(expand(sql.as_bytes(), &values), expected);
        }
    }
}
