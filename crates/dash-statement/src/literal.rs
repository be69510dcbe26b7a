//! Values as SQL writes them, so that what is read again is what was bound.

use crate::model::Value;

/// Values between commas.
#[must_use]
pub fn literals(values: &[Value]) -> String {
    values.iter().map(literal).collect::<Vec<_>>().join(", ")
}

/// One value. A real number has 17 digits, which are enough for every bit; infinity is a number too
/// large for a real; a text with what a literal can't hold is a blob that is cast.
#[must_use]
pub fn literal(value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Integer(value) => value.to_string(),
        Value::Real(bits) => real(f64::from_bits(*bits)),
        Value::Text(text) => match core::str::from_utf8(text) {
            Ok(text) if !text.contains('\0') => format!("'{}'", text.replace('\'', "''")),
            _ => format!("CAST({} AS TEXT)", hex(text)),
        },
        Value::Blob(blob) => hex(blob),
        Value::Zeroblob(count) => format!("zeroblob({count})"),
        Value::Pointer => "NULL /* a pointer */".to_owned(),
    }
}

fn real(value: f64) -> String {
    match value {
        value if value.is_nan() => "NULL".to_owned(),
        f64::INFINITY => "9e999".to_owned(),
        f64::NEG_INFINITY => "-9e999".to_owned(),
        value => format!("{value:.16e}"),
    }
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
            (text(b"a\0b"), "CAST(X'610062' AS TEXT)"),
            (text(b"\xff"), "CAST(X'FF' AS TEXT)"),
            (literal(&Value::Blob(vec![0, 171])), "X'00AB'"),
            (literal(&Value::Zeroblob(9)), "zeroblob(9)"),
            (literal(&Value::Pointer), "NULL /* a pointer */"),
            (literals(&[Value::Null, Value::Integer(-5)]), "NULL, -5"),
        ] {
            assert_eq!(literal, expected);
        }
    }

    #[test]
    fn a_real_number_reads_back_to_its_last_bit() {
        for bits in [0x3fd3_3333_3333_3334, 1, 0x7fef_ffff_ffff_ffff, 0x4340_0000_0000_0001] {
            let text = literal(&Value::Real(bits));
            assert_eq!(text.parse::<f64>().map(f64::to_bits), Ok(bits), "{text}");
        }
    }
}
