//! The bytes of `-wal` (SQLite's "WAL file format", wal.c). Nothing is written here.
//!
//! A header of 32 bytes, then frames, numbered from 1: a header of 24 bytes and a page each. All
//! numbers are big-endian.
//!
//! | header | | frame header | |
//! |---|---|---|---|
//! | 0 | magic `0x377f0682`; `..83` where checksums read big-endian words | 0 | page number |
//! | 4 | format, 3007000 | 4 | a commit: size of the database in pages; else 0 |
//! | 8 | page size in bytes | 8 | the salts |
//! | 12 | checkpoint sequence | 16 | checksum |
//! | 16 | salts: one that every reset raises by one, a random one | | |
//! | 24 | checksum | | |
//!
//! A checksum covers all before it: the header's first 24 bytes; of each frame the first 8 bytes
//! and the page, on top of the frame before. So a valid frame vouches for every frame below it.
//! Frames that don't have the header's salts are remains of an earlier generation.

pub(crate) mod seal;
mod sums;

use crate::bounds::is_page_size;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_engine::io::{read_exact, read_padded, read_some};
use dash_engine::memory::zeros;
use dash_storage::File;
use std::ops::ControlFlow;
pub(crate) use sums::{ByteOrder, Checksum, HEADER, checksum};
use sums::{FORMAT, MAGIC, number};

/// Bytes of a frame before its page.
pub(crate) const FRAME_HEADER: usize = 24;

/// Bytes read at once where frames are gone through; one frame, if that is more.
const STRIDE: u64 = 1 << 20;

/// Both salts, as the numbers that the file's big-endian bytes are.
pub(crate) type Salts = [u32; 2];

/// The header of `-wal`: one generation of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WalHeader {
    /// How checksums are made.
    pub(crate) order: ByteOrder,
    /// Bytes of a page, 512 to 65536.
    pub(crate) page_size: u32,
    /// Checkpoints that the connection that wrote it has counted: no order of generations, as each
    /// connection counts for itself.
    pub(crate) sequence: u32,
    /// The salts. The first one is the last generation's + 1, or random where there was none.
    pub(crate) salts: Salts,
    /// The checksum that frame 1 continues.
    pub(crate) checksum: Checksum,
    /// It keeps stock SQLite out ([`seal`]).
    pub(crate) is_sealed: bool,
}

impl WalHeader {
    /// What 32 bytes say; `None` where SQLite takes the whole file for empty: a magic, page size
    /// or checksum that is none.
    ///
    /// # Errors
    ///
    /// A whole header of another format than SQLite has ever had: nothing is to be done about
    /// such a file but to leave it alone. `name` is the file's.
    pub(crate) fn decode(bytes: &[u8; HEADER], name: &str) -> Result<Option<Self>> {
        let number = |at: usize| number(bytes, at);
        let order = match number(0) {
            MAGIC => ByteOrder::Little,
            magic if magic == MAGIC | 1 => ByteOrder::Big,
            _ => return Ok(None),
        };
        let page_size = number(8);
        let sums = [number(24), number(28)];
        let whole = checksum(order, &bytes[..24], [0, 0]) == sums;
        if !is_page_size(page_size) || !whole {
            return Ok(None);
        }
        let is_sealed = number(4) == seal::SEALED;
        if number(4) != FORMAT && !is_sealed {
            return Err(Error::CantOpen(format!(
                "{name} has format {}, this dash knows {FORMAT}: use the SQLite that wrote it",
                number(4)
            )));
        }
        let salts = [number(16), number(20)];
        let checksum = match is_sealed {
            true => checksum(order, &seal::opened(bytes)[..24], [0, 0]),
            false => sums,
        };
        Ok(Some(Self { order, page_size, sequence: number(12), salts, checksum, is_sealed }))
    }

    /// The header that a file begins with; `None` as for [`Self::decode`], and where the file is
    /// shorter.
    ///
    /// # Errors
    ///
    /// Those of [`Self::decode`], and of reading.
    pub(crate) fn read<F: File>(file: &F, name: &str) -> Result<Option<Self>> {
        let mut bytes = [0; HEADER];
        match read_exact(file, &mut bytes, 0).during(Operation::Read, name)? {
            true => Self::decode(&bytes, name),
            false => Ok(None),
        }
    }

    /// Bytes of a frame.
    pub(crate) fn frame_size(&self) -> u64 {
        frame_size(self.page_size)
    }
}

/// Bytes of a frame: its header and a page.
pub(crate) fn frame_size(page_size: u32) -> u64 {
    FRAME_HEADER as u64 + u64::from(page_size)
}

/// Where frame `number`, from 1, begins (wal.c `walFrameOffset`). Number 0 has no place: what is
/// answered for it is that of frame 1.
pub(crate) fn frame_offset(number: u32, page_size: u32) -> u64 {
    HEADER as u64 + u64::from(number.saturating_sub(1)) * frame_size(page_size)
}

/// How many whole frames a file of `len` bytes has room for.
pub(crate) fn frames_in(len: u64, page_size: u32) -> u32 {
    let frames = len.saturating_sub(HEADER as u64) / frame_size(page_size);
    u32::try_from(frames).unwrap_or(u32::MAX)
}

/// What an offset of `-wal` belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// The file's header.
    Header,
    /// Byte `within` of frame `number`: below [`FRAME_HEADER`] its header.
    Frame {
        /// From 1.
        number: u32,
        /// Below the frame's size.
        within: u64,
    },
}

/// What an offset belongs to; `None` behind the last frame that has a number.
pub(crate) fn place_of(offset: u64, page_size: u32) -> Option<Place> {
    let Some(behind) = offset.checked_sub(HEADER as u64) else {
        return Some(Place::Header);
    };
    let number = u32::try_from(behind / frame_size(page_size)).ok()?.checked_add(1)?;
    Some(Place::Frame { number, within: behind % frame_size(page_size) })
}

/// The header of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    /// Number of its page, from 1.
    pub(crate) page: u32,
    /// In the last frame of a commit the size of the database in pages, else 0.
    pub(crate) commit: u32,
    /// The generation's salts.
    pub(crate) salts: Salts,
    /// The checksum up to this frame's page.
    pub(crate) checksum: Checksum,
}

impl FrameHeader {
    /// What 24 bytes say. Any bytes say something: see [`walk`] for what is valid.
    pub(crate) fn decode(bytes: &[u8; FRAME_HEADER]) -> Self {
        let number = |at: usize| number(bytes, at);
        Self {
            page: number(0),
            commit: number(4),
            salts: [number(8), number(12)],
            checksum: [number(16), number(20)],
        }
    }

    /// The bytes of one in a `-wal` with the header `wal`, behind a frame with the checksum
    /// `before`: of the page `numbers.0` with this image, and `numbers.1`, see
    /// [`commit`](Self::commit).
    pub(crate) fn behind(
        wal: &WalHeader,
        before: Checksum,
        numbers: (u32, u32),
        image: &[u8],
    ) -> [u8; FRAME_HEADER] {
        let (page, commit) = numbers;
        let begins = [page, commit].map(u32::to_be_bytes).concat();
        let [one, two] = checksum(wal.order, image, checksum(wal.order, &begins, before));
        let numbers = [page, commit, wal.salts[0], wal.salts[1], one, two];
        let mut bytes = [0; FRAME_HEADER];
        for (place, number) in bytes.chunks_exact_mut(4).zip(numbers) {
            place.copy_from_slice(&number.to_be_bytes());
        }
        bytes
    }

    /// Whether a transaction ends here.
    pub(crate) fn is_commit(&self) -> bool {
        self.commit != 0
    }
}

/// Where the salts are in a frame's header; the checksum follows.
pub(crate) const SALTS: usize = 8;

/// Whether a frame's header is to get its salts and its checksum later.
pub(crate) fn is_unsummed(header: &[u8; FRAME_HEADER]) -> bool {
    header[SALTS..].iter().all(|&byte| byte == 0)
}

/// The frames of `-wal` that are valid, from the first one on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Prefix {
    /// Number of the last frame; 0: none.
    pub(crate) last: u32,
    /// The checksum there.
    pub(crate) checksum: Checksum,
    /// Number of the last frame that ends a commit; 0: none. What is behind it SQLite ignores.
    pub(crate) committed: u32,
    /// The checksum there.
    pub(crate) committed_checksum: Checksum,
    /// Size of the database in pages as of that commit; 0 if there is none.
    pub(crate) pages: u32,
}

impl Prefix {
    /// No frame yet: what a walk through all of them begins with.
    pub(crate) fn before_all(header: &WalHeader) -> Self {
        let checksum = header.checksum;
        Self { last: 0, checksum, committed: 0, committed_checksum: checksum, pages: 0 }
    }

    /// All up to frame `last`, which are valid.
    ///
    /// # Errors
    ///
    /// As the calls on the file.
    pub(crate) fn up_to<F: File>(
        file: &F,
        header: &WalHeader,
        last: u32,
        name: &str,
    ) -> Result<Self> {
        let (all, mut bytes) = (Self::before_all(header), [0; FRAME_HEADER]);
        if last == 0 {
            return Ok(all);
        }
        let at = frame_offset(last, header.page_size);
        read_padded(file, &mut bytes, at).during(Operation::Read, name)?;
        let FrameHeader { checksum, .. } = FrameHeader::decode(&bytes);
        Ok(Self { last, checksum, committed: last, committed_checksum: checksum, ..all })
    }

    /// These and the next one.
    fn with(self, frame: &FrameHeader) -> Self {
        let next = Self { last: self.last + 1, checksum: frame.checksum, ..self };
        if !frame.is_commit() {
            return next;
        }
        let (committed, committed_checksum, pages) = (next.last, frame.checksum, frame.commit);
        Self { committed, committed_checksum, pages, ..next }
    }
}

/// Goes through the frames behind `from` as long as they are valid, by wal.c's rules
/// (`walDecodeFrame`): the header's salts, a page number, the checksum of all before. Each is shown
/// to `visit` (its number, its header, its page), which may end the walk: that frame does not
/// count any more.
///
/// # Errors
///
/// Those of reading, and memory for a frame or 1 MiB.
pub(crate) fn walk<F: File>(
    file: &F,
    header: &WalHeader,
    from: Prefix,
    name: &str,
    mut visit: impl FnMut(u32, &FrameHeader, &[u8]) -> ControlFlow<()>,
) -> Result<Prefix> {
    let mut prefix = from;
    let len = file.metadata().during(Operation::Stat, name)?.len;
    let mut left = frames_in(len, header.page_size).saturating_sub(prefix.last);
    let size = header.frame_size();
    let at_once = (STRIDE / size).max(1).min(u64::from(left));
    let mut buffer = zeros(at_once * size)?;
    let frame_bytes = FRAME_HEADER + page_bytes(header.page_size)?;
    while left > 0 {
        let at = frame_offset(prefix.last + 1, header.page_size);
        let read = read_some(file, &mut buffer, at).during(Operation::Read, name)?;
        let whole = &buffer[..read - read % frame_bytes];
        if whole.is_empty() {
            break;
        }
        for frame in whole.chunks_exact(frame_bytes) {
            let Some((found, page)) = valid(frame, header, prefix.checksum) else {
                return Ok(prefix);
            };
            if left == 0 || visit(prefix.last + 1, &found, page).is_break() {
                return Ok(prefix);
            }
            prefix = prefix.with(&found);
            left -= 1;
        }
    }
    Ok(prefix)
}

/// The frames behind `from` that are valid, all of them.
///
/// # Errors
///
/// Those of [`walk`].
pub(crate) fn valid_prefix<F: File>(
    file: &F,
    header: &WalHeader,
    from: Prefix,
    name: &str,
) -> Result<Prefix> {
    walk(file, header, from, name, |_, _, _| ControlFlow::Continue(()))
}

/// A frame's header and page, if it continues what has the checksum `before`.
fn valid<'a>(
    frame: &'a [u8],
    header: &WalHeader,
    before: Checksum,
) -> Option<(FrameHeader, &'a [u8])> {
    let (bytes, page) = frame.split_first_chunk::<FRAME_HEADER>()?;
    let found = FrameHeader::decode(bytes);
    if found.salts != header.salts || found.page == 0 {
        return None;
    }
    let sums = checksum(header.order, page, checksum(header.order, &bytes[..8], before));
    (sums == found.checksum).then_some((found, page))
}

fn page_bytes(page_size: u32) -> Result<usize> {
    usize::try_from(page_size).map_err(|_| Error::OutOfMemory)
}

/// Two 32-bit numbers of a header as one word.
pub(crate) fn pack(numbers: [u32; 2]) -> u64 {
    u64::from(numbers[0]) << 32 | u64::from(numbers[1])
}

/// And back.
pub(crate) fn unpack(word: u64) -> [u32; 2] {
    let half = |word: u64| u32::try_from(word & u64::from(u32::MAX)).unwrap_or(0);
    [half(word >> 32), half(word)]
}

#[cfg(test)]
mod tests;
