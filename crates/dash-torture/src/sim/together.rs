//! A fate in which neighbours fare alike. What an engine says of its files stands at their ends,
//! what that is about in between: each has to be lost alone, which happens to sectors drawn one by
//! one too seldom.

use dash_simulated::{Question, Survivors};

use crate::random::{Dice, mix};

/// Smallest and largest piece of a file that survives or not as one, as powers of two.
const PIECES: std::ops::RangeInclusive<u64> = 9..=14;

/// See above; drawn from a seed.
#[derive(Debug, Clone)]
pub struct Together {
    seed: u64,
    dice: Dice,
    /// Logarithm of the bytes of a piece.
    piece: u64,
    /// Whether all names are as they were seen last.
    names: bool,
}

impl Together {
    /// The same seed, the same answers.
    pub fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed, 5);
        let piece = PIECES.start() + dice.below(PIECES.end() - PIECES.start() + 1);
        let names = dice.one_in(2);
        Self { seed: mix(seed), dice, piece, names }
    }
}

impl Survivors for Together {
    fn choose(&mut self, question: Question, answers: usize, newest: usize) -> usize {
        match question {
            Question::Operations { .. } if self.names => newest,
            Question::Unit { inode, offset } => {
                let file = mix(self.seed ^ inode);
                // Of four pieces of this file so many survive.
                let most = 1 + file % 3;
                if mix(file ^ (offset >> self.piece)) % 4 < most { newest } else { 0 }
            }
            _ => self.dice.index(answers),
        }
    }
}
