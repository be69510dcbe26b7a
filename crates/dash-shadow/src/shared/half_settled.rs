//! How far a shadow is that was being settled ([`crate::connection::settle`]) when it was left.

use crate::shared::coordination::{Coordination, Word};
use dash_storage::File;
use std::sync::atomic::Ordering::SeqCst;

/// How far a shadow is that was being settled when it was left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HalfSettled {
    /// Its tail has moved, and may not be durable there.
    Growing,
    /// It is fenced, and some pages of D's list are in it.
    Copying,
}

impl<F: File> Coordination<F> {
    /// How far the shadow of the current pair and commit is settled, if it was left half-way.
    pub(crate) fn half_settled(&self) -> Option<HalfSettled> {
        let word = self.word(Word::Settling).load(SeqCst);
        let here = self.word(Word::SettlingIn).load(SeqCst) == self.generation();
        match word & 3 {
            _ if !here || word >> 2 != self.current().sequence => None,
            1 => Some(HalfSettled::Growing),
            2 => Some(HalfSettled::Copying),
            _ => None,
        }
    }

    pub(crate) fn set_half_settled(&self, how: HalfSettled) {
        let state = match how {
            HalfSettled::Growing => 1,
            HalfSettled::Copying => 2,
        };
        self.word(Word::SettlingIn).store(self.generation(), SeqCst);
        self.word(Word::Settling).store(self.current().sequence << 2 | state, SeqCst);
    }

    /// Says that it is not, or that something else tells of it.
    pub(crate) fn clear_half_settled(&self) {
        if self.word(Word::Settling).load(SeqCst) != 0 {
            self.word(Word::Settling).store(0, SeqCst);
        }
    }
}
