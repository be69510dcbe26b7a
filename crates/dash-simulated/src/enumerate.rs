//! Every combination of survivors, one after the other.
//!
//! An odometer whose number of digits and their bases appear as questions are asked: answering the
//! same way up to a digit asks the same question there, so counting up the last digit that can be,
//! and forgetting those behind it, walks the whole tree of answers once.

use crate::survivors::{Question, Survivors};

/// Walks all combinations of survivors of one machine:
/// `while all.advance() { machine.power_loss(&mut all); }`.
#[derive(Debug, Clone)]
pub struct Enumerate {
    digits: Vec<(usize, usize)>,
    asked: usize,
    walked: u64,
    limit: u64,
    complete: bool,
}

impl Enumerate {
    /// Stops after `limit` combinations.
    /// [`Machine::survivor_count`](crate::Machine::survivor_count) says how many there are.
    #[must_use]
    pub fn new(limit: u64) -> Self {
        Self { digits: Vec::new(), asked: 0, walked: 0, limit, complete: false }
    }

    /// Goes on to the next combination; `false` if there is none, or the limit is reached.
    pub fn advance(&mut self) -> bool {
        if self.walked > 0 && !self.complete {
            while self.digits.pop_if(|(digit, base)| *digit + 1 == *base).is_some() {}
            match self.digits.last_mut() {
                Some((digit, _)) => *digit += 1,
                None => self.complete = true,
            }
        }
        let go_on = !self.complete && self.walked < self.limit;
        self.walked += u64::from(go_on);
        go_on
    }

    /// How many combinations [`Enumerate::advance`] has gone to.
    #[must_use]
    pub fn walked(&self) -> u64 {
        self.walked
    }

    /// Whether these were all.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.complete
    }
}

impl Survivors for Enumerate {
    fn begin(&mut self) {
        self.asked = 0;
    }

    fn choose(&mut self, _: Question, answers: usize, _: usize) -> usize {
        if self.asked == self.digits.len() {
            self.digits.push((0, answers));
        }
        let answer = self.digits.get(self.asked).map_or(0, |(digit, _)| *digit);
        self.asked += 1;
        answer
    }
}
