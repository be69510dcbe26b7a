//! A set of pages, by their numbers: what a connection has read or written.

/// Pages of a part, which is there once one of them is in the set.
const PART: usize = 4096;

type Part = [u64; PART / 64];

/// Costs a bit a page, in parts of 512 bytes.
#[derive(Debug, Default)]
pub struct PageSet {
    parts: Vec<Option<Box<Part>>>,
    /// The parts that have a page.
    used: Vec<usize>,
    /// Memory ran out: every page counts as one of the set.
    is_everything: bool,
}

impl PageSet {
    /// Adds a page.
    #[inline]
    pub fn insert(&mut self, page: u32) {
        let (part, bit) = place(page);
        match self.parts.get_mut(part) {
            Some(Some(bits)) => bits[bit / 64] |= 1 << (bit % 64),
            _ => self.insert_first(part, bit),
        }
    }

    #[cold]
    fn insert_first(&mut self, part: usize, bit: usize) {
        let missing = (part + 1).saturating_sub(self.parts.len());
        if self.parts.try_reserve(missing).is_err() || self.used.try_reserve(1).is_err() {
            self.is_everything = true;
            return;
        }
        self.parts.resize_with(self.parts.len() + missing, || None);
        let mut bits = Box::new([0; PART / 64]);
        bits[bit / 64] |= 1 << (bit % 64);
        self.parts[part] = Some(bits);
        self.used.push(part);
    }

    /// From here on every page counts as one of the set, until it is cleared.
    pub fn insert_all(&mut self) {
        self.is_everything = true;
    }

    /// Whether a page is in it.
    #[must_use]
    pub fn contains(&self, page: u32) -> bool {
        let (part, bit) = place(page);
        let bits = self.parts.get(part).and_then(Option::as_ref);
        self.is_everything || bits.is_some_and(|bits| bits[bit / 64] & 1 << (bit % 64) != 0)
    }

    /// Empties it, at the cost of the parts that it has.
    pub fn clear(&mut self) {
        for part in self.used.drain(..) {
            self.parts[part] = None;
        }
        self.is_everything = false;
    }
}

/// The part of a page, and which it is in there.
fn place(page: u32) -> (usize, usize) {
    let page = usize::try_from(page).unwrap_or(usize::MAX);
    (page / PART, page % PART)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::{btree_set, vec};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_has_what_was_added_since_it_was_cleared(
            before in vec(1_u32..100_000, 0..50),
            pages in btree_set(1_u32..100_000, 0..50),
            asked in vec(1_u32..100_000, 0..50),
        ) {
            let mut set = PageSet::default();
            before.iter().for_each(|&page| set.insert(page));
            prop_assert!(before.iter().all(|&page| set.contains(page)));
            set.clear();
            pages.iter().for_each(|&page| set.insert(page));
            for page in asked.iter().chain(&pages).chain(&before) {
                prop_assert_eq!(set.contains(*page), pages.contains(page));
            }
        }
    }

    #[test]
    fn everything_is_in_it_until_it_is_cleared() {
        let mut set = PageSet::default();
        set.insert_all();
        assert!(set.contains(u32::MAX));
        set.clear();
        assert!(!set.contains(u32::MAX));
        set.insert(u32::MAX);
        assert!(set.contains(u32::MAX) && !set.contains(u32::MAX - 1));
    }
}
