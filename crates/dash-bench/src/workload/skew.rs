//! Which rows are chosen: all alike, or a few much more often than the rest.

use clap::ValueEnum;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand_distr::{Distribution, Uniform, Zipf};

use crate::failure::{Explain, Result};

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
    random: SmallRng,
    rows: i64,
    kind: Kind,
}

enum Kind {
    Uniform(Uniform<i64>),
    Zipf(Zipf<f64>),
}

impl Keys {
    /// Numbers from 1 to `rows`, the same ones for the same seed.
    pub fn new(skew: Skew, rows: i64, seed: u64) -> Result<Self> {
        let rows = rows.max(1);
        let kind = match skew {
            Skew::Uniform => {
                Kind::Uniform(Uniform::new_inclusive(1, rows).explain("choosing rows")?)
            }
            #[expect(clippy::cast_precision_loss, reason = "there are fewer than 2^53 rows")]
            Skew::Zipf => Kind::Zipf(Zipf::new(rows as f64, EXPONENT).explain("choosing rows")?),
        };
        Ok(Self { random: SmallRng::seed_from_u64(seed), rows, kind })
    }

    /// The next.
    pub fn next(&mut self) -> i64 {
        match &self.kind {
            Kind::Uniform(uniform) => uniform.sample(&mut self.random),
            Kind::Zipf(zipf) => {
                #[expect(clippy::cast_possible_truncation, reason = "a rank between 1 and rows")]
                let rank = zipf.sample(&mut self.random) as i64;
                // Scattered over the table, the same row for the same rank.
                1 + (i128::from(rank) * 0x9E37_79B9_7F4A_7C15 % i128::from(self.rows))
                    .try_into()
                    .unwrap_or(0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn times(skew: Skew) -> HashMap<i64, u32> {
        let mut keys = Keys::new(skew, 1000, 5).expect("keys");
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
