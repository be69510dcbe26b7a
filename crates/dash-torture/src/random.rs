//! Numbers that look random and are the same for the same seed, on every machine and in every
//! version (splitmix64). Rows of tests name seeds that were found with it, as others name seeds of
//! `fastrand` that the ring `fs` draws from: neither can take the place of the other.

/// What the state of a generator grows by: 2^64 over the golden ratio.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A generator.
#[derive(Debug, Clone)]
pub(crate) struct Dice(u64);

/// Mixes a number well.
pub(crate) fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(STEP);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Dice {
    /// The same seed, the same numbers; `salt` tells apart several generators of one seed.
    pub fn new(seed: u64, salt: u64) -> Self {
        Self((seed ^ salt.wrapping_mul(0xd6e8_feb8_6659_fd93)).wrapping_add(STEP))
    }

    /// The next number of 64 bits.
    pub fn draw(&mut self) -> u64 {
        let number = mix(self.0);
        self.0 = self.0.wrapping_add(STEP);
        number
    }

    /// A number below `limit`; 0 if that is 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.draw() % limit.max(1)
    }

    /// True one time in `times`.
    pub fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// A place in something of this length.
    pub fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).unwrap_or_default()
    }

    /// One of several.
    pub fn pick<T: Clone>(&mut self, of: &[T]) -> Option<T> {
        of.get(self.index(of.len())).cloned()
    }
}
