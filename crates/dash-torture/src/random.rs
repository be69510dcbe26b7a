//! Numbers that look random and are the same for the same seed (splitmix64).

/// A generator.
#[derive(Debug, Clone)]
pub(crate) struct Dice(u64);

/// Mixes a number well.
pub(crate) fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Dice {
    /// The same seed, the same numbers.
    pub fn new(seed: u64) -> Self {
        Self(mix(seed))
    }

    /// The next number of 64 bits.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(1);
        mix(self.0)
    }

    /// A number below `limit`, which is not 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.draw() % limit.max(1)
    }

    /// One of several.
    pub fn pick<T: Clone>(&mut self, of: &[T]) -> Option<T> {
        let at = usize::try_from(self.below(of.len() as u64)).ok()?;
        of.get(at).cloned()
    }
}
