//! Records of random lengths follow each other round the ring, and the window loses its oldest
//! ones: no record is ever put over one of the window (LOG-4), and what is free is used.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use dash_log::ring::Ring;
use proptest::prelude::*;
use std::collections::VecDeque;

proptest! {
    #[test]
    fn as_a_list_of_places_says(
        blocks in 1..40_u64, block in prop_oneof![Just(64_u32), Just(512), Just(4096)],
        steps in prop::collection::vec((1..12_u64, 0..4_usize), 1..200),
    ) {
        let block_len = u64::from(block);
        let ring = Ring { len: blocks * block_len, block };
        let mut window: VecDeque<(u64, u64)> = VecDeque::new();
        let mut position = 0;
        for (len, drop) in steps {
            let len = len * block_len;
            for _ in 0..drop {
                window.pop_front();
            }
            let oldest = window.front().map(|place| place.0);
            let next = ring.next(position, len);
            let Some(start) = next else {
                prop_assert!(len > ring.len);
                prop_assert!(!ring.free(oldest, position, len));
                continue;
            };
            prop_assert!(start % block_len == 0 && start + len <= ring.len);
            prop_assert!(start == position || start == 0 && position + len > ring.len);
            let clear = |place: &(u64, u64)| start + len <= place.0 || place.0 + place.1 <= start;
            // Between the newest and the oldest there may be none of the window, too.
            let free = window.iter().all(clear);
            prop_assert_eq!(ring.free(oldest, position, len), free, "{} {} {:?}", start, len, window);
            if free {
                window.push_back((start, len));
                position = start + len;
            }
            let bytes: u64 = window.iter().map(|place| place.1).sum();
            let used = ring.used(window.front().map(|place| place.0), position);
            prop_assert!(bytes <= used && used <= ring.len);
        }
    }
}

#[test]
fn another_block_moves_the_next_record_up() {
    // LOG-5: the one before it was padded to 512 bytes.
    let ring = Ring { len: 16 << 10, block: 4096 };
    assert_eq!(ring.next(512, 4096), Some(4096));
    assert_eq!(ring.next(8193, 4096), Some(12 << 10));
    assert_eq!(ring.next(12801, 4096), Some(0));
    assert_eq!(ring.next(0, 16 << 10), Some(0));
    assert_eq!(ring.next(0, (16 << 10) + 1), None);
}

#[test]
fn lengths_beyond_all_bounds_fit_nowhere() {
    let ring = Ring { len: 4096, block: 512 };
    assert_eq!(ring.next(u64::MAX, 512), None);
    assert_eq!(ring.next(512, u64::MAX), None);
    assert!(!ring.free(None, 512, u64::MAX));
    assert!(!ring.free(Some(0), 4096, 512));
}
