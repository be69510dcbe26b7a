//! A statement with its values in the place of its parameters, to be run by whoever reads SQL.
//!
//! `sqlite3_expanded_sql` makes another program of some statements: `c-?` with a negative value
//! becomes a comment, `ORDER BY ?` names a column, and a real number loses digits. Here each value
//! stands between blanks, a negative one in parentheses, and a whole number behind `BY` is an
//! expression (`STATEMENT-5`).

use crate::model::Value;
use crate::token::{Kind, is_word, token};

/// See the module. `write` makes SQL of a value; a parameter without one is NULL, as in SQLite.
#[must_use]
pub fn expand(sql: &[u8], values: &[Value], write: impl Fn(&Value) -> String) -> Vec<u8> {
    let mut out = Vec::with_capacity(sql.len() + 16 * values.len());
    let (mut rest, mut names, mut greatest) = (sql, Vec::<(&[u8], usize)>::new(), 0);
    let mut is_behind_by = false;
    while let Some((kind, length)) = token(rest) {
        let (text, behind) = rest.split_at(length);
        rest = behind;
        if kind != Kind::Parameter {
            is_behind_by |= text.eq_ignore_ascii_case(b"BY");
            out.extend(text);
            continue;
        }
        let number = match text {
            [b'?'] => next(greatest),
            [b'?', digits @ ..] => number(digits),
            _ => match names.iter().find(|it| it.0 == text) {
                Some((_, number)) => *number,
                None => {
                    names.push((text, next(greatest)));
                    next(greatest)
                }
            },
        };
        greatest = greatest.max(number);
        let value = values.get(number.wrapping_sub(1)).unwrap_or(&Value::Null);
        let written = match (value, write(value)) {
            (Value::Integer(_), whole) if is_behind_by => format!("({whole}|0)"),
            (_, negative) if negative.starts_with('-') => format!("({negative})"),
            (_, plain) => plain,
        };
        put(&mut out, &written, rest);
    }
    out
}

/// Whether a text has parameters: with a value in its place it is another text.
#[must_use]
pub fn has_parameters(sql: &[u8]) -> bool {
    expand(sql, &[], |_| "NULL".to_owned()) != sql
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

fn put(out: &mut Vec<u8>, written: &str, rest: &[u8]) {
    if out.last().is_some_and(|byte| is_word(*byte)) {
        out.push(b' ');
    }
    out.extend(written.as_bytes());
    if rest.first().is_some_and(|byte| is_word(*byte)) {
        out.push(b' ');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::literal::literal;

    /// `STATEMENT-5`
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
            (
                "SELECT ? FROM t GROUP BY ?3, b ORDER BY ?2, ?1",
                "SELECT (-5) FROM t GROUP BY (7|0), b ORDER BY 'it''s', (-5|0)",
            ),
        ] {
            let expanded = expand(sql.as_bytes(), &values, literal);
            assert_eq!(String::from_utf8_lossy(&expanded), expected);
            assert_eq!(has_parameters(sql.as_bytes()), sql != expected);
        }
        assert_eq!(expand(b"VALUES (\xff?)", &values, literal), b"VALUES (\xff (-5))");
    }
}
