//! Which rows are chosen: all alike, or a few much more often than the rest.

use clap::ValueEnum;
use fastrand::Rng;

use crate::numbers::float;

/// How keys are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Skew {
    /// All alike.
    Uniform,
    /// The n-th most popular row as often as 1/n^0.99, as YCSB does it; popular rows lie apart.
    Zipf,
}

/// YCSB's exponent.
const EXPONENT: f64 = 0.99;

/// A sequence of row numbers.
pub struct Keys {
    random: Rng,
    rows: u64,
    zipf: Option<Zipf>,
}

impl Keys {
    /// Numbers from 1 to `rows`, the same ones for the same seed.
    pub fn new(skew: Skew, rows: i64, seed: u64) -> Self {
        let rows = rows.max(1).unsigned_abs();
        let zipf = (skew == Skew::Zipf).then(|| Zipf::new(rows));
        Self { random: Rng::with_seed(seed), rows, zipf }
    }

    /// The next.
    pub fn next(&mut self) -> i64 {
        let key = match &self.zipf {
            None => self.random.u64(0..self.rows),
            // Scattered over the table, the same row for the same rank.
            Some(zipf) => {
                let rank = u128::from(zipf.rank(self.random.f64()));
                (rank * 0x9E37_79B9_7F4A_7C15 % u128::from(self.rows)).try_into().unwrap_or(0)
            }
        };
        1 + i64::try_from(key).unwrap_or(0)
    }
}

/// The generator of YCSB (Gray and others, "Quickly generating billion-record synthetic databases",
/// SIGMOD 1994).
struct Zipf {
    rows: f64,
    /// The sum of 1/n^0.99 over all ranks.
    all: f64,
    eta: f64,
}

impl Zipf {
    fn new(rows: u64) -> Self {
        let sum = |ranks: u64| (1..=ranks).map(|rank| float(rank).powf(-EXPONENT)).sum::<f64>();
        let (rows, all) = (float(rows), sum(rows));
        let eta = (1.0 - (2.0 / rows).powf(1.0 - EXPONENT)) / (1.0 - sum(2) / all);
        Self { rows, all, eta }
    }

    /// The rank, from 1, for a number from 0 to 1 of which all are alike.
    fn rank(&self, number: f64) -> u64 {
        let at = number * self.all;
        if at < 1.0 {
            return 1;
        }
        if at < 1.0 + 0.5_f64.powf(EXPONENT) {
            return 2;
        }
        let share = (self.eta * (number - 1.0) + 1.0).powf(1.0 / (1.0 - EXPONENT));
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 0 and rows"
        )]
        let before = (self.rows * share) as u64;
        1 + before
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn times(skew: Skew) -> HashMap<i64, u32> {
        let mut keys = Keys::new(skew, 1000, 5);
        let mut times = HashMap::new();
        for _ in 0..20_000 {
            *times.entry(keys.next()).or_insert(0) += 1;
        }
        assert!(times.keys().all(|key| (1..=1000).contains(key)));
        times
    }

    #[test]
    fn uniform_keys_are_alike_and_zipf_keys_are_not() {
        let most = |times: &HashMap<i64, u32>| times.values().copied().max().unwrap_or(0);
        let uniform = times(Skew::Uniform);
        assert!(uniform.len() > 990 && most(&uniform) < 60);
        // The most popular of a thousand comes up once in about 7.7 times.
        assert!((2000..3300).contains(&most(&times(Skew::Zipf))));
    }
}
