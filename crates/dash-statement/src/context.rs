//! What was so of the connection that ran a transaction, then or before, as far as it matters to
//! whoever runs the transaction again.

/// Something of a connection. Its number is its place in the list, and is never given to another
/// one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Circumstance {
    /// It has a database `temp`, and perhaps temporary tables, views or triggers in it.
    Temporary,
    /// It has other databases attached, or the transaction's is not its `main`.
    OtherDatabase,
    /// It takes shorter values than SQLite does as a rule, or writes a real number otherwise.
    Settings,
    /// It has written the table of the schema by hand.
    SchemaWritten,
    /// A statement of the transaction is not known to have changed a row: it found none, or failed,
    /// and what was in its way may not be there when it is run again.
    Unconfirmed,
}

impl Circumstance {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 5] = [
        Self::Temporary,
        Self::OtherDatabase,
        Self::Settings,
        Self::SchemaWritten,
        Self::Unconfirmed,
    ];
}

/// A set of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Context(u32);

impl Context {
    /// Adds one.
    pub fn add(&mut self, circumstance: Circumstance) {
        self.0 |= 1 << circumstance as u8;
    }

    /// Those that are there.
    pub fn iter(self) -> impl Iterator<Item = Circumstance> {
        let is_there = move |it: &Circumstance| self.0 & (1 << *it as u8) != 0;
        Circumstance::ALL.into_iter().filter(is_there)
    }

    /// Bit i is the one with number i.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// The set of these bits; `None` where one of them is nothing's.
    #[must_use]
    pub const fn of_bits(bits: u32) -> Option<Self> {
        if bits >> Circumstance::ALL.len() == 0 { Some(Self(bits)) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_circumstance_has_its_number() {
        for (number, circumstance) in Circumstance::ALL.into_iter().enumerate() {
            assert_eq!(circumstance as usize, number);
        }
        let all = Context::of_bits((1 << Circumstance::ALL.len()) - 1).expect("known ones");
        assert!(all.iter().eq(Circumstance::ALL));
        assert_eq!(Context::of_bits(1 << Circumstance::ALL.len()), None);
    }
}
