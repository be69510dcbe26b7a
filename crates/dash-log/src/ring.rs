//! Where records go: the arithmetic of the ring.
//!
//! A position is a distance in bytes from the ring's beginning, a multiple of the block; `0` to the
//! ring's length, which is the same place as 0. The *window* are the records that may still be
//! needed: from the position of the oldest to behind the newest, around the ring's end if need be.

/// A ring of so many bytes, and what records in it are padded to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ring {
    /// Bytes.
    pub len: u64,
    /// What records begin at a multiple of, in bytes.
    pub block: u32,
}

impl Ring {
    /// Where a record of `len` bytes (padded) goes if the one before it ended at `position`: there,
    /// or at the ring's beginning where it would span the ring's end. `None` if it is longer than
    /// the ring.
    #[must_use]
    pub fn next(&self, position: u64, len: u64) -> Option<u64> {
        let block = u64::from(self.block).max(1);
        let here = position.checked_next_multiple_of(block)?;
        let fits = here.checked_add(len).is_some_and(|end| end <= self.len);
        if fits { Some(here) } else { (len <= self.len).then_some(0) }
    }

    /// Whether a record of `len` bytes (padded) can be written behind `position` without
    /// overwriting the window, which ends at `position` and begins at `oldest`; `None`: there is
    /// none (LOG-4).
    #[must_use]
    pub fn free(&self, oldest: Option<u64>, position: u64, len: u64) -> bool {
        let Some(start) = self.next(position, len) else {
            return false;
        };
        let Some(oldest) = oldest else {
            return true;
        };
        let end = start + len;
        if oldest < position {
            // The window lies in one piece: what is free is behind it, and before it.
            start >= position || end <= oldest
        } else {
            // It goes around the end, or fills the ring: what is free is in the middle.
            start >= position && end <= oldest
        }
    }

    /// Bytes from the beginning of the window to its end, with what was left over at the ring's
    /// end.
    #[must_use]
    pub fn used(&self, oldest: Option<u64>, position: u64) -> u64 {
        match oldest {
            None => 0,
            Some(oldest) if oldest < position => position - oldest,
            Some(oldest) => self.len.saturating_sub(oldest) + position,
        }
    }
}
