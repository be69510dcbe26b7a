//! The shared header of the wal-index, as SQLite's connections leave it for each other (wal.c
//! `WalIndexHdr`): two copies of 48 bytes at the beginning, in the machine's byte order, and behind
//! them what checkpoints have done.

use super::pages;
use crate::frames::{ByteOrder, Checksum, Salts, checksum};
use dash_storage::SharedMemory;
use std::sync::atomic::Ordering::SeqCst;

/// WALINDEX_MAX_VERSION.
const VERSION: u32 = 3_007_000;

/// A version that is none: that of dash's index in memory.
const FORBIDDEN: u32 = VERSION + 1;

/// Bytes of one copy of the header.
pub(super) const HEADER: usize = 48;

/// WAL_NREADER.
const READERS: usize = 5;

/// Where `nBackfill` is (wal.c `WalCkptInfo`).
pub(super) const BACKFILL: usize = 2 * HEADER;

/// Words of one copy.
pub(super) const HEADER_WORDS: usize = HEADER / 8;

/// The shared header of the wal-index (wal.c `WalIndexHdr`): what is committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IndexHeader {
    /// Changes with every transaction.
    pub(crate) change: u32,
    /// How `-wal` makes its checksums.
    pub(crate) order: ByteOrder,
    /// Bytes of a page.
    pub(crate) page_size: u32,
    /// The last frame that counts; 0: none.
    pub(crate) mx_frame: u32,
    /// Size of the database in pages.
    pub(crate) pages: u32,
    /// The checksum of the frame `mx_frame`.
    pub(crate) frame_checksum: Checksum,
    /// The generation's salts, as [`crate::frames`] reads them.
    pub(crate) salts: Salts,
}

/// Both copies of a header are alike: one of them.
pub(crate) type RawHeader = [u8; HEADER];

/// What a commit adds to the header.
#[derive(Debug, Clone, Copy)]
pub(crate) struct End {
    /// Its last frame.
    pub(crate) frame: u32,
    /// That one's checksum.
    pub(crate) checksum: Checksum,
    /// Size of the database in pages.
    pub(crate) pages: u32,
}

/// The header in region 0, where both copies are the same, initialised and whole.
pub(super) fn read<M: SharedMemory>(memory: &M) -> Option<IndexHeader> {
    // A writer fills the second copy first (wal.c `walIndexWriteHdr`).
    let first = copy(memory, 0);
    let second = copy(memory, HEADER_WORDS);
    (first == second).then(|| decode(&first))?
}

/// The checksum of the first copy.
pub(super) fn sum<M: SharedMemory>(memory: &M) -> u64 {
    memory.word(HEADER_WORDS - 1).load(SeqCst)
}

/// Up to which frame all is in the database (wal.c `nBackfill`).
pub(super) fn backfilled<M: SharedMemory>(memory: &M) -> u32 {
    let [frame, _] = halves(memory.word(BACKFILL / 8).load(SeqCst));
    frame
}

/// Where the mark of reader `number` is (wal.c `WalCkptInfo`): the array is behind both copies and
/// the number of frames that were copied into the database.
fn mark_place(number: usize) -> usize {
    BACKFILL + 4 + 4 * number
}

/// That mark.
pub(super) fn mark<M: SharedMemory>(memory: &M, number: usize) -> Option<u32> {
    let mark = || u32::from_ne_bytes(pages::bytes(memory, mark_place(number)));
    (number < READERS).then(mark)
}

/// The mark of a slot that nobody reads by (READMARK_NOT_USED).
const NOT_USED: u32 = u32::MAX;

/// Whether mark `number` is nobody's.
pub(super) fn is_unused<M: SharedMemory>(memory: &M, number: usize) -> bool {
    mark(memory, number) == Some(NOT_USED)
}

/// Says so. The slot is held exclusively.
pub(super) fn unmark<M: SharedMemory>(memory: &M, number: usize) {
    pages::put(memory, mark_place(number), NOT_USED.to_ne_bytes());
}

/// Puts another checksum of frame `last` into the header, if that is the frame it ends with.
pub(super) fn set_frame_checksum<M: SharedMemory>(memory: &M, last: u32, sums: Checksum) {
    if read(memory).is_none_or(|header| header.mx_frame != last) {
        return;
    }
    let mut bytes = copy(memory, 0);
    put(&mut bytes, 24, sums);
    write(memory, bytes);
}

/// Shows a reader who had no mark up to where all is in the database, and its mark there: the first
/// one.
pub(super) fn show_mark<M: SharedMemory>(memory: &M, last: u32) {
    pages::put(memory, BACKFILL, last.to_ne_bytes());
    for (number, mark) in [0, last, NOT_USED, NOT_USED, NOT_USED].into_iter().enumerate() {
        pages::put(memory, mark_place(number), mark.to_ne_bytes());
    }
}

/// Makes frames visible that end with `end`, as one more change.
pub(super) fn show<M: SharedMemory>(memory: &M, end: End) {
    let mut bytes = copy(memory, 0);
    let change = number(&bytes, 8).wrapping_add(1);
    bytes[8..12].copy_from_slice(&change.to_ne_bytes());
    put(&mut bytes, 16, [end.frame, end.pages]);
    put(&mut bytes, 24, end.checksum);
    write(memory, bytes);
}

/// Writes both copies, with their checksum.
pub(super) fn write<M: SharedMemory>(memory: &M, mut bytes: [u8; HEADER]) {
    let own = checksum(ByteOrder::NATIVE, &bytes[..40], [0, 0]);
    put(&mut bytes, 40, own);
    // The second copy first (wal.c `walIndexWriteHdr`).
    for first in [HEADER_WORDS, 0] {
        for (index, word) in bytes.as_chunks::<8>().0.iter().enumerate() {
            memory.word(first + index).store(u64::from_ne_bytes(*word), SeqCst);
        }
    }
}

/// Makes it one of a version that SQLite doesn't know (wal.c `walIndexReadHdr`): whoever finds it
/// whole neither reads on nor recovers.
pub(super) fn forbid<M: SharedMemory>(memory: &M) {
    let mut bytes = [0; HEADER];
    bytes[..4].copy_from_slice(&FORBIDDEN.to_ne_bytes());
    bytes[12] = 1;
    write(memory, bytes);
}

/// Takes that one away, and no other.
pub(super) fn allow<M: SharedMemory>(memory: &M) {
    let is_forbidden = [0, HEADER_WORDS].iter().any(|&first| {
        let bytes = copy(memory, first);
        number(&bytes, 0) == FORBIDDEN
    });
    if is_forbidden {
        void(memory);
    }
}

/// Takes away whatever is there: whoever comes next makes the index anew, of `-wal`.
pub(super) fn void<M: SharedMemory>(memory: &M) {
    (0..2 * HEADER_WORDS).for_each(|index| memory.word(index).store(0, SeqCst));
}

/// Whether it is what SQLite makes of a `-wal` without a frame: then it is the same for any index.
pub(super) fn tells_nothing(header: &IndexHeader) -> bool {
    (header.change, header.mx_frame, header.salts) == (0, 0, [0; 2])
}

/// Makes such a header one that no other index has, and that says the same.
pub(super) fn tell_apart<M: SharedMemory>(memory: &M, random: impl FnOnce() -> u64) {
    // Nearly always it is not, which one word tells.
    let [change, _] = halves(memory.word(1).load(SeqCst));
    if change != 0 || !read(memory).as_ref().is_some_and(tells_nothing) {
        return;
    }
    let [change, salt] = halves(random()).map(|half| half | 1);
    let mut bytes = copy(memory, 0);
    bytes[8..12].copy_from_slice(&change.to_ne_bytes());
    put(&mut bytes, 32, [salt, change]);
    write(memory, bytes);
}

/// The numbers in a word, in the order in which they lie in memory.
fn halves(word: u64) -> [u32; 2] {
    let bytes = word.to_ne_bytes();
    [0, 4].map(|at| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]))
}

/// A copy of the header, from word `first` on.
pub(super) fn copy<M: SharedMemory>(memory: &M, first: usize) -> [u8; HEADER] {
    let mut bytes = [0; HEADER];
    for (index, word) in bytes.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        *word = memory.word(first + index).load(SeqCst).to_ne_bytes();
    }
    bytes
}

/// What a copy says (wal.c `walIndexTryHdr`).
pub(crate) fn decode(bytes: &[u8; HEADER]) -> Option<IndexHeader> {
    let number = |at| number(bytes, at);
    let salt = |at: usize| number(at).to_be();
    let sums = checksum(ByteOrder::NATIVE, &bytes[..40], [0, 0]);
    if bytes[12] == 0 || number(0) != VERSION || sums != [number(40), number(44)] {
        return None;
    }
    let size = u32::from(u16::from_ne_bytes([bytes[14], bytes[15]]));
    Some(IndexHeader {
        change: number(8),
        order: if bytes[13] == 0 { ByteOrder::Little } else { ByteOrder::Big },
        page_size: (size & 0xFE00) + ((size & 1) << 16),
        mx_frame: number(16),
        pages: number(20),
        frame_checksum: [number(24), number(28)],
        // Copied from `-wal` byte by byte.
        salts: [salt(32), salt(36)],
    })
}

/// A number in this machine's byte order.
pub(super) fn number(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn put(bytes: &mut [u8; HEADER], at: usize, [one, two]: Checksum) {
    bytes[at..at + 4].copy_from_slice(&one.to_ne_bytes());
    bytes[at + 4..at + 8].copy_from_slice(&two.to_ne_bytes());
}
