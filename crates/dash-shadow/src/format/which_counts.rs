//! A file has two places for a commit block, its tail and page 1: which of the two counts.

use crate::format::{BlockError, CommitBlock, IntentBlock, Place, State};
use crate::mutation::{Mutation, broken};

/// A block that was looked for.
type Decoded<T> = std::result::Result<T, BlockError>;

/// Of the block in the tail and the one in page 1, the one that says what the file is (SHADOW-15).
///
/// Page 1 travels: in backups, in whatever is copied over a file. So its block counts only beside a
/// tail of ours, and only if it was made for the same file and pair. Of two the later one counts; a
/// superseded mark is made without page 1, later than the block there that has the same sequence.
pub fn which_counts(
    tail: Decoded<CommitBlock>,
    intent: &Decoded<IntentBlock>,
    first: Decoded<CommitBlock>,
) -> Decoded<CommitBlock> {
    let ours = |error: Option<&BlockError>| error != Some(&BlockError::Absent);
    let home = match (intent, &tail) {
        (Ok(intent), _) => Some((intent.pair, intent.inode)),
        (Err(_), Ok(block)) => Some((block.pair, block.inode)),
        (Err(_), Err(_)) => None,
    };
    let here = ours(intent.as_ref().err()) || ours(tail.as_ref().err());
    let first = match first {
        Ok(first) => Some(first)
            .filter(|first| here && home.is_none_or(|home| home == (first.pair, first.inode))),
        Err(BlockError::OtherFormat(version)) if here => {
            return Err(BlockError::OtherFormat(version));
        }
        Err(_) => None,
    };
    match (tail, first) {
        (Ok(tail), _) if broken(Mutation::TailAlwaysCounts) => Ok(tail),
        (tail, None) | (tail @ Err(BlockError::OtherFormat(_)), _) => tail,
        (Err(_), Some(first)) => Ok(first),
        (Ok(tail), Some(first)) => {
            let announced = first.place == Place::Announced && first.id == tail.id;
            let later = tail.sequence > first.sequence
                || tail.sequence == first.sequence
                    && tail.state == State::Superseded
                    && first.state != State::Superseded;
            Ok(if announced || later { tail } else { first })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{FORMAT_VERSION, Protocol, Vouched};
    use dash_storage::FileId;

    const PAIR: u64 = 7;
    const INODE: u64 = 70;

    pub(crate) fn block(place: Place, state: State, sequence: u64, id: u64) -> CommitBlock {
        let vouched = Vouched {
            sequence,
            id: 100 + sequence,
            counter: 1,
            names_durable: false,
            held: false,
            changed: 0,
        };
        CommitBlock {
            place,
            pair: PAIR,
            inode: INODE,
            slot: 0,
            state,
            protocol: Protocol::Single,
            sequence,
            id,
            parent: 1,
            counter: 1,
            page_size: 4096,
            size: 4096,
            vouched: matches!(state, State::Superseded | State::Settled).then_some(vouched),
            super_journal: Vec::new(),
            unit_count: 0,
            list_checksum: 0,
            units: Vec::new(),
        }
    }

    pub(crate) fn intent(pair: u64, inode: u64) -> Decoded<IntentBlock> {
        Ok(IntentBlock::new(pair, FileId { device: 1, inode }, 4096, 4096))
    }

    const NO_INTENT: Decoded<IntentBlock> = Err(BlockError::Absent);
    const NO_BLOCK: Decoded<CommitBlock> = Err(BlockError::Absent);

    /// What counts of a tail's block and one in page 1, beside this intent.
    fn counts(
        intent: &Decoded<IntentBlock>,
        tail: Decoded<CommitBlock>,
        first: CommitBlock,
    ) -> Decoded<Place> {
        which_counts(tail, intent, Ok(first)).map(|block| block.place)
    }

    #[test]
    fn the_later_of_two_blocks_counts() {
        let ours = intent(PAIR, INODE);
        for (tail, first, place) in [(3, 5, Place::FirstPage), (5, 3, Place::Tail)] {
            let tail = block(Place::Tail, State::Whole, tail, 8);
            let first = block(Place::FirstPage, State::Whole, first, 9);
            assert_eq!(counts(&ours, Ok(tail), first), Ok(place));
        }
        let first = block(Place::FirstPage, State::Whole, 3, 9);
        for state in [State::Superseded, State::Settled] {
            let mark = block(Place::Tail, state, 4, 0);
            assert_eq!(counts(&ours, Ok(mark), first.clone()), Ok(Place::Tail));
            let stale = block(Place::Tail, state, 2, 0);
            assert_eq!(counts(&ours, Ok(stale), first.clone()), Ok(Place::FirstPage));
        }
    }

    #[test]
    fn of_the_same_sequence_page_1_counts_unless_the_tail_says_that_it_was_flushed() {
        let ours = intent(PAIR, INODE);
        let settled = block(Place::FirstPage, State::Settled, 4, 0);
        let superseded = block(Place::Tail, State::Superseded, 4, 0);
        assert_eq!(counts(&ours, Ok(superseded), settled), Ok(Place::Tail));
        // Prepared twice: in the tail at first.
        let first = block(Place::FirstPage, State::Whole, 4, 9);
        let before = block(Place::Tail, State::Whole, 4, 8);
        assert_eq!(counts(&ours, Ok(before), first), Ok(Place::FirstPage));
    }

    #[test]
    fn an_announced_block_is_the_one_of_its_id_or_missing() {
        let ours = intent(PAIR, INODE);
        let announced = block(Place::Announced, State::Whole, 4, 9);
        for (tail, place) in [
            (Ok(block(Place::Tail, State::Whole, 4, 9)), Place::Tail),
            (Ok(block(Place::Tail, State::Whole, 4, 8)), Place::Announced),
            (Ok(block(Place::Tail, State::Whole, 2, 8)), Place::Announced),
            (Err(BlockError::Damaged), Place::Announced),
            (NO_BLOCK, Place::Announced),
            // Superseded at rest, after it was the one that was announced.
            (Ok(block(Place::Tail, State::Superseded, 5, 0)), Place::Tail),
        ] {
            assert_eq!(counts(&ours, tail, announced.clone()), Ok(place));
        }
    }

    #[test]
    fn a_block_that_came_with_page_1_from_elsewhere_is_none() {
        let first = || block(Place::FirstPage, State::Whole, 9, 9);
        let tail = || Ok(block(Place::Tail, State::Whole, 3, 8));
        assert_eq!(counts(&intent(PAIR, INODE + 1), tail(), first()), Ok(Place::Tail));
        assert_eq!(counts(&intent(PAIR + 1, INODE), tail(), first()), Ok(Place::Tail));
        assert_eq!(counts(&intent(PAIR, INODE), NO_BLOCK, first()), Ok(Place::FirstPage));
        // A file without a tail of ours, as copied from a backup.
        assert_eq!(counts(&NO_INTENT, NO_BLOCK, first()), Err(BlockError::Absent));
        // An intent that was torn is ours all the same.
        assert_eq!(counts(&Err(BlockError::Damaged), NO_BLOCK, first()), Ok(Place::FirstPage));
    }

    #[test]
    fn a_later_format_anywhere_is_told() {
        let first = || block(Place::FirstPage, State::Whole, 9, 9);
        let newer = Err(BlockError::OtherFormat(FORMAT_VERSION + 1));
        assert_eq!(
            counts(&intent(PAIR, INODE), newer.clone(), first()).unwrap_err(),
            BlockError::OtherFormat(FORMAT_VERSION + 1)
        );
        let tail = Ok(block(Place::Tail, State::Whole, 3, 8));
        assert_eq!(which_counts(tail, &intent(PAIR, INODE), newer.clone()), newer);
        assert_eq!(which_counts(NO_BLOCK, &NO_INTENT, newer), NO_BLOCK);
    }
}
