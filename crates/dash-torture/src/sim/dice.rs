//! Random numbers that are the same for the same seed, on every machine and in every version.

/// A generator (splitmix64).
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// The generator of a seed; `salt` tells apart several of one seed.
    pub fn new(seed: u64, salt: u64) -> Self {
        let mut dice = Self(seed ^ salt.wrapping_mul(0xD6E8_FEB8_6659_FD93));
        dice.next();
        dice
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    /// A number below `below`; 0 if that is 0.
    pub fn roll(&mut self, below: u64) -> u64 {
        self.next() % below.max(1)
    }

    /// True one time in `times`.
    pub fn one_in(&mut self, times: u64) -> bool {
        self.roll(times) == 0
    }

    /// A place in something of this length.
    pub fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.roll(len as u64)).unwrap_or_default()
    }
}
