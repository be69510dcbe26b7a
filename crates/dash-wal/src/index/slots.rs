//! SQLite's eight slots, and which bytes of which file they are.

use crate::shared::locks;
use std::ops::Range;

/// WAL_WRITE_LOCK.
pub(crate) const WRITE: usize = 0;

/// WAL_CKPT_LOCK.
pub(crate) const CKPT: usize = 1;

/// WAL_RECOVER_LOCK.
pub(crate) const RECOVER: usize = 2;

/// WAL_READ_LOCK(0), the first of five.
pub(crate) const READ: usize = 3;

/// WAL_READ_LOCK(4): while a session lasts its mark is nobody's, and nobody has it exclusively.
pub(crate) const GUARDED: usize = READ + 4;

/// SQLITE_SHM_NLOCK.
pub(crate) const SLOTS: usize = 8;

/// Byte of the coordination file that is dash's own WRITE.
pub(crate) const WRITER_BYTE: u64 = locks::WRITER.start;

/// And its CKPT.
pub(crate) const CKPT_BYTE: u64 = locks::CKPT.start;

/// And its RECOVER.
pub(crate) const RECOVER_BYTE: u64 = locks::RECOVER.start;

/// UNIX_SHM_BASE: the byte of slot 0.
pub(super) const BASE: u64 = 120;

/// Neighbouring slots whose bytes are neighbours in one file.
pub(super) struct Piece {
    /// As bits.
    pub(super) slots: u16,
    /// In the coordination file, not in `-shm`.
    pub(super) private: bool,
    pub(super) bytes: Range<u64>,
}

/// The slots as bits.
pub(super) fn mask(slots: &Range<usize>) -> u16 {
    debug_assert!(slots.end <= SLOTS, "SQLite has {SLOTS} slots");
    slots.clone().filter(|&slot| slot < SLOTS).fold(0, |mask, slot| mask | 1 << slot)
}

/// Slots as what is locked at once, ascending.
pub(super) fn pieces(slots: u16) -> impl Iterator<Item = Piece> {
    let place = |slot: usize| match slot {
        WRITE => (true, WRITER_BYTE),
        CKPT => (true, CKPT_BYTE),
        RECOVER => (true, RECOVER_BYTE),
        read => (false, BASE + read as u64),
    };
    let mut wanted = (0..SLOTS).filter(move |slot| slots & 1 << slot != 0).peekable();
    std::iter::from_fn(move || {
        let slot = wanted.next()?;
        let (private, byte) = place(slot);
        let mut piece = Piece { slots: 1 << slot, private, bytes: byte..byte + 1 };
        while let Some(next) = wanted.next_if(|&next| place(next) == (private, piece.bytes.end)) {
            piece.slots |= 1 << next;
            piece.bytes.end += 1;
        }
        Some(piece)
    })
}
