//! Where heads are, and which of them counts.
//!
//! A log of sectors has one, in the first sector. A log of lines has two, in the first two: memory
//! tears a head that is being written, so it is written beside the one that counts, which must be
//! durable by then (LOG-11).

use crate::format::{Beginning, Form, Invalid, LINES_VERSION, LINES_VERSIONS, RING_START, SECTOR};
use crate::head::{Head, MAGIC};

/// Bytes of both places.
pub const HEADS: usize = 2 * SECTOR;

/// What is found in the places of heads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heads {
    /// What the log is laid out for, as far as it can be told: without a head, for sectors.
    pub form: Form,
    /// The head that counts, or why there is none.
    pub head: Result<Head, Invalid>,
    /// The place of that head, 0 or 1.
    pub place: usize,
    /// Its turn; 0 without a head, and in a log of sectors.
    pub turn: u64,
}

impl Heads {
    /// The heads of a log that begins with `bytes`.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Self {
        let places = [bytes, bytes.get(SECTOR..).unwrap_or(&[])];
        let without = |form, why| Self { form, head: Err(why), place: 0, turn: 0 };
        let first = Head::decode(bytes);
        if first.is_ok() {
            return Self { form: Form::Sectors, head: first, place: 0, turn: 0 };
        }
        let turns = places.map(Head::decode_turn);
        // It may have been written after the other one (LOG-8).
        let newer = |turn: &Result<_, Invalid>| matches!(turn, Err(Invalid::Newer(_)));
        if turns.iter().any(newer) {
            return without(Form::Lines, Invalid::Newer(LINES_VERSION + 1));
        }
        let whole = turns.into_iter().enumerate();
        let whole =
            whole.filter_map(|(place, turn)| turn.ok().map(|(head, turn)| (place, head, turn)));
        if let Some((place, head, turn)) = whole.max_by_key(|(_, _, turn)| *turn) {
            return Self { form: Form::Lines, head: Ok(head), place, turn };
        }
        // The first head of a log of lines goes to the second place, and may be torn there.
        if first == Err(Invalid::Absent) {
            return without(Form::Sectors, Invalid::Absent);
        }
        let second = Beginning::of(places[1], MAGIC);
        if second.is_some_and(|it| LINES_VERSIONS.contains(&it.version)) {
            return without(Form::Lines, Invalid::Damaged);
        }
        without(Form::Sectors, first.err().unwrap_or(Invalid::Damaged))
    }

    /// The same, of a file of `len` bytes. A head that sends the first record where none can be is
    /// damaged: who believed it would find no record (LOG-18).
    #[must_use]
    pub fn within(self, len: u64) -> Self {
        match &self.head {
            Ok(head) if !head.next.is_none_or(|next| is_place(next, self.form, len)) => {
                Self { head: Err(Invalid::Malformed), ..self }
            }
            _ => self,
        }
    }
}

/// Whether a record may begin at a position, or behind it, in a log of `len` bytes.
pub(crate) fn is_place(position: u64, form: Form, len: u64) -> bool {
    position <= len.saturating_sub(RING_START) && position.is_multiple_of(form.step() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::seal;
    use crate::head::State;

    fn head(sequence: u64) -> Head {
        Head {
            id: 7,
            state: State::InUse,
            block: 64,
            sequence,
            ring: 4096,
            owner: 5,
            next: None,
            context: Vec::new(),
        }
    }

    /// Two places, each with one of these.
    fn found(first: Put, second: Put) -> (Form, Result<u64, Invalid>, u64) {
        let bytes = [first, second].map(|put| match put {
            Put::Zeros => [0; SECTOR],
            Put::Sectors => head(1).encode().unwrap(),
            Put::Turn(turn) => head(10 + turn).encode_turn(turn).unwrap(),
            Put::Former(turn) => {
                let mut former = head(10 + turn).encode_turn(turn).unwrap();
                former[8] = 2;
                seal(&mut former);
                former
            }
            Put::Torn(turn) => {
                let mut torn = head(10 + turn).encode_turn(turn).unwrap();
                torn[32..64].fill(0xee);
                torn
            }
            Put::Version(version) => {
                let mut newer = head(1).encode().unwrap();
                newer[8] = version;
                newer
            }
            Put::Garbage => [0xee; SECTOR],
        });
        let heads = Heads::decode(&bytes.concat());
        (heads.form, heads.head.map(|head| head.sequence), heads.turn)
    }

    #[derive(Clone, Copy)]
    enum Put {
        Zeros,
        Sectors,
        Turn(u64),
        /// As it was before there were compact records.
        Former(u64),
        Torn(u64),
        Version(u8),
        Garbage,
    }

    #[test]
    fn the_whole_head_with_the_greatest_turn_counts() {
        // LOG-11, and LOG-8 for the last ones.
        use Put::{Former, Garbage, Sectors, Torn, Turn, Version, Zeros};
        let lines = |turn| (Form::Lines, Ok(10 + turn), turn);
        let none = |form, why| (form, Err(why), 0);
        let newer = none(Form::Lines, Invalid::Newer(4));
        for (first, second, expected) in [
            (Zeros, Zeros, none(Form::Sectors, Invalid::Absent)),
            (Sectors, Zeros, (Form::Sectors, Ok(1), 0)),
            (Sectors, Garbage, (Form::Sectors, Ok(1), 0)),
            (Garbage, Zeros, none(Form::Sectors, Invalid::Damaged)),
            (Zeros, Garbage, none(Form::Sectors, Invalid::Absent)),
            (Zeros, Torn(1), none(Form::Sectors, Invalid::Absent)),
            (Zeros, Turn(1), lines(1)),
            (Torn(2), Turn(1), lines(1)),
            (Turn(2), Turn(1), lines(2)),
            (Turn(2), Turn(3), lines(3)),
            (Turn(2), Torn(3), lines(2)),
            (Former(2), Turn(3), lines(3)),
            (Former(4), Turn(3), lines(4)),
            (Torn(2), Former(1), lines(1)),
            (Garbage, Turn(3), lines(3)),
            (Torn(2), Torn(3), none(Form::Lines, Invalid::Damaged)),
            (Garbage, Torn(3), none(Form::Lines, Invalid::Damaged)),
            (Torn(2), Garbage, none(Form::Sectors, Invalid::Newer(3))),
            (Version(2), Zeros, none(Form::Sectors, Invalid::Newer(2))),
            (Version(3), Zeros, none(Form::Sectors, Invalid::Newer(3))),
            (Version(4), Turn(3), newer),
            (Turn(2), Version(4), newer),
            (Version(9), Zeros, newer),
        ] {
            assert_eq!(found(first, second), expected);
        }
    }

    #[test]
    fn a_short_file_has_the_heads_that_it_has() {
        let bytes = head(4).encode_turn(1).unwrap();
        assert_eq!(Heads::decode(&bytes).head, Ok(head(4)));
        assert_eq!(Heads::decode(&bytes[..511]).head, Err(Invalid::Absent));
        assert_eq!(Heads::decode(&[]).head, Err(Invalid::Absent));
    }
}
