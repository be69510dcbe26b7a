//! Real numbers as SQL that every version of SQLite reads to the last bit.
//!
//! SQLite's own reading of decimals is not exact: which bit is the last one depends on the version,
//! and on the machine. Whole numbers below 2^53 are exact everywhere, and so is their product with,
//! or quotient by, a power of two.

/// Whole numbers up to this one are exact as reals.
const WHOLE: u64 = 1 << 53;
/// Digits behind the point up to which a power of ten is well below [`WHOLE`].
const PLACES: i32 = 15;
/// The greatest power of two that is an integer of SQLite's.
const POWER: u32 = 62;

/// With 17 digits, which are enough for every bit where decimals are read exactly.
pub fn decimal(value: f64) -> String {
    match value {
        value if value.is_finite() => format!("{value:.16e}"),
        value => exact(value),
    }
}

/// As a decimal where that is safe, else as a quotient or a product; `NULL` for what is no number,
/// as SQLite has it.
pub fn exact(value: f64) -> String {
    match value {
        value if value.is_nan() => "NULL".to_owned(),
        f64::INFINITY => "9e999".to_owned(),
        f64::NEG_INFINITY => "-9e999".to_owned(),
        value if is_safe(value) => format!("{value:?}"),
        value => by_powers_of_two(value),
    }
}

/// Whether the shortest decimal of a number is read as that number by whoever errs by less than
/// 2^-61 of it: it has few digits, and is not near the middle between two reals.
fn is_safe(value: f64) -> bool {
    let shown = format!("{:e}", value.abs());
    let Some((digits, exponent)) = shown.split_once('e') else { return false };
    let digits: String = digits.chars().filter(char::is_ascii_digit).collect();
    let behind = i32::try_from(digits.len()).unwrap_or(i32::MAX) - 1;
    let (Ok(whole), Ok(exponent)) = (digits.parse::<u64>(), exponent.parse::<i32>()) else {
        return false;
    };
    match exponent - behind {
        _ if whole == 0 => true,
        zeros @ 0..=PLACES => {
            let power = 10_u64.pow(zeros.unsigned_abs());
            whole.checked_mul(power).is_some_and(|all| all <= WHOLE)
        }
        places if (-PLACES..0).contains(&places) && whole <= WHOLE => {
            !is_near_the_middle(whole, 10_u128.pow(places.unsigned_abs()))
        }
        _ => false,
    }
}

/// Whether a quotient is within 1/256 of the way between two reals of their middle.
fn is_near_the_middle(whole: u64, power: u128) -> bool {
    let dividend = u128::from(whole);
    let quotient = (dividend << dividend.leading_zeros()) / power;
    // The power is below 2^50, so there are 25 bits or more behind those of a real.
    let behind = (u128::BITS - quotient.leading_zeros()).saturating_sub(53);
    let half = 1_u128 << behind.saturating_sub(1);
    (quotient & ((half << 1) - 1)).abs_diff(half) <= half >> 7
}

/// An odd whole number, times or divided by powers of two: no step has to be rounded.
fn by_powers_of_two(value: f64) -> String {
    let bits = value.abs().to_bits();
    let (exponent, fraction) = (bits >> 52, bits & ((1 << 52) - 1));
    let (whole, exponent) = match exponent {
        0 => (fraction, 1),
        exponent => (fraction | 1 << 52, exponent),
    };
    let odd = whole >> whole.trailing_zeros();
    let power = i32::try_from(exponent).unwrap_or(0) - 1075
        + i32::try_from(whole.trailing_zeros()).unwrap_or(0);
    let (sign, step) = (if value < 0.0 { "-" } else { "" }, if power < 0 { '/' } else { '*' });
    let mut written = format!("({sign}{odd}*1.0");
    let mut left = power.unsigned_abs();
    while left > 0 {
        let now = left.min(POWER);
        written.push_str(&format!("{step}{}", 1_u64 << now));
        left -= now;
    }
    written.push(')');
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_people_write_stays_what_it_was() {
        for (value, expected) in [
            (0.1, "0.1"),
            (-1234.5, "-1234.5"),
            (3.0, "3.0"),
            (-0.0, "-0.0"),
            (1e15, "1000000000000000.0"),
            (f64::INFINITY, "9e999"),
            (f64::NAN, "NULL"),
            (0.1 + 0.2, "(1351079888211149*1.0/4503599627370496)"),
            (-2_f64.powi(80), "(-1*1.0*4611686018427387904*262144)"),
            (1e-7, "1e-7"),
        ] {
            assert_eq!(exact(value), expected);
        }
    }

    #[test]
    fn a_decimal_reads_back_to_its_last_bit() {
        for bits in [0x3fd3_3333_3333_3334, 1, 0x7fef_ffff_ffff_ffff, 0x4340_0000_0000_0001] {
            let text = decimal(f64::from_bits(bits));
            assert_eq!(text.parse::<f64>().map(f64::to_bits), Ok(bits), "{text}");
        }
    }

    /// Half of the last place away, read with 64 bits and then with 53, it would be another one.
    #[test]
    fn a_decimal_near_the_middle_between_two_numbers_is_not_taken() {
        let (mut taken, mut near) = (0, 0);
        for whole in (1..2_000_000_u64).step_by(7) {
            match is_near_the_middle(whole, 10_u128.pow(9)) {
                true => near += 1,
                false => taken += 1,
            }
        }
        assert!(taken > 100 * near && near > 500, "{taken}, {near}");
    }
}
