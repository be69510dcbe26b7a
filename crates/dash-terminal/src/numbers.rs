//! Conversions for display: counts here are far below 2^53, times below a year.

use std::time::Duration;

/// A count as a number to divide.
#[expect(clippy::cast_precision_loss, reason = "figures for people, four digits of them shown")]
pub fn float(count: u64) -> f64 {
    count as f64
}

/// `count` of `total`, 0 without a total.
pub fn per(count: u64, total: u64) -> f64 {
    if total == 0 { 0.0 } else { float(count) / float(total) }
}

/// Nanoseconds of a duration.
pub fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Length as a count.
pub fn count(len: usize) -> u64 {
    u64::try_from(len).unwrap_or(u64::MAX)
}

/// The middle of some figures; 0 without any.
pub fn median(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => 0.0,
        len if len % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_lies_between() {
        assert!((median(&[4.0, 1.0, 3.0, 2.0]) - 2.5).abs() < 1e-9);
        assert!((median(&[3.0, 1.0, 2.0]) - 2.0).abs() < 1e-9);
        assert!(median(&[]).abs() < 1e-9);
    }
}
