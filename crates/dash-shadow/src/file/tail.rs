//! The tail of one file: where its blocks are, reading, writing and moving them.
//!
//! Small commits have their block in page 1 instead (`format/first_page.rs`); which of the two
//! counts is decided in `format/which_counts.rs`. The tail's is the last 4 KiB of the file, the
//! intent block the 4 KiB before it, a list area (if any) ends where the intent begins. A tail
//! moves only when the file grows: extend, write the intent at the new end, flush, wipe the old
//! place, then use it (F13, T24).

use crate::file::page_list::within;
use crate::format::which_counts::which_counts;
use crate::format::{
    BLOCK, BLOCK_LEN, BlockError, CommitBlock, IntentBlock, SECTOR_BYTES, TAIL_LEN, UNIT, Unit,
    encode_units, first_page,
};
use crate::mutation::{Mutation, broken};
use crate::tuning::Tuning;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_engine::holes::data_in;
use dash_engine::io::{STRIDE, read_exact, read_padded};
use dash_engine::memory::zeros;
use dash_storage::{File, FileId};

/// Bytes of a page list that are written at once.
const LIST_PIECE: usize = 64 << 10;

/// What the blocks of a file say.
#[derive(Debug, Clone)]
pub struct Tail {
    /// Length of the file in bytes.
    pub len: u64,
    /// The commit block that counts: the one in page 1 or the one in the tail.
    pub commit: std::result::Result<CommitBlock, BlockError>,
    /// The intent block.
    pub intent: std::result::Result<IntentBlock, BlockError>,
    /// Length and beginning of the page list of the block in the tail, if that is whole, whichever
    /// counts.
    pub list: Option<(u32, Vec<Unit>)>,
    /// The first sector; zeros where the file ends before.
    pub sector: [u8; SECTOR_BYTES],
}

impl Tail {
    /// Reads both blocks.
    pub fn read<F: File>(file: &F, name: &str) -> Result<Self> {
        let len = file.metadata().during(Operation::Stat, name)?.len;
        Self::at_end(file, len, name)
    }

    /// The same, of a file that is known to be `len` bytes long.
    pub fn at_end<F: File>(file: &F, len: u64, name: &str) -> Result<Self> {
        let mut sector = [0; SECTOR_BYTES];
        read_padded(file, &mut sector, 0).during(Operation::Read, name)?;
        Self::beside(file, len, sector, name)
    }

    /// The same, of a file whose first sector has been read.
    pub fn beside<F: File>(
        file: &F,
        len: u64,
        sector: [u8; SECTOR_BYTES],
        name: &str,
    ) -> Result<Self> {
        let mut bytes = [0; 2 * BLOCK];
        let blocks = len
            .checked_sub(TAIL_LEN)
            .map(|at| read_exact(file, &mut bytes, at))
            .transpose()
            .during(Operation::Read, name)?;
        if blocks != Some(true) {
            let absent = BlockError::Absent;
            return Ok(Self { len, commit: Err(absent), intent: Err(absent), list: None, sector });
        }
        let commit = within(CommitBlock::decode(&bytes[BLOCK..]), len);
        let intent = IntentBlock::decode(&bytes[..BLOCK]);
        let list = commit.as_ref().ok().map(|block| (block.unit_count, block.units.clone()));
        let first = within(first_page::extract(&sector), len);
        let commit = which_counts(commit, &intent, first);
        Ok(Self { len, commit, intent, list, sector })
    }

    /// The commit block, if it is whole and was written into this very file.
    pub fn bound(&self, id: FileId) -> Option<&CommitBlock> {
        self.commit.as_ref().ok().filter(|block| block.inode == id.inode)
    }

    /// The intent block, if it is whole and was written into this very file.
    pub fn bound_intent(&self, id: FileId) -> Option<&IntentBlock> {
        self.intent.as_ref().ok().filter(|block| block.inode == id.inode)
    }

    /// The version of a block whose format is another one than this dash's.
    pub fn other_format(&self) -> Option<u32> {
        match (&self.commit, &self.intent) {
            (Err(BlockError::OtherFormat(version)), _)
            | (_, Err(BlockError::OtherFormat(version))) => Some(*version),
            _ => None,
        }
    }
}

/// Whether a tail of this very file, or of one of this pair, is left somewhere before its end: it
/// was about to move when the power went (F13). Looks from the end, because that is where it was.
pub fn has_buried_tail<F: File>(file: &F, len: u64, pair: Option<u64>, name: &str) -> Result<bool> {
    let mut buffer = zeros(STRIDE)?;
    let data: Vec<_> = data_in(file, 0..len - len % BLOCK_LEN, name)?.iter().collect();
    for range in data.into_iter().rev() {
        let mut end = range.end.next_multiple_of(BLOCK_LEN);
        let first = range.start - range.start % BLOCK_LEN;
        while end > first {
            let start = end.saturating_sub(STRIDE).max(first);
            let part = &mut buffer[..usize::try_from(end - start).unwrap_or(BLOCK)];
            read_padded(file, part, start).during(Operation::Read, name)?;
            for block in part.chunks_exact(BLOCK) {
                let commit = CommitBlock::decode(block).map(|block| (block.inode, block.pair));
                let intent = IntentBlock::decode(block).map(|block| (block.inode, block.pair));
                // A copy of the file has another inode number, and is of the same pair.
                if let Ok((inode, of)) = commit.or(intent)
                    && (inode == file.id().inode
                        || pair == Some(of) && !broken(Mutation::InodesBelieved))
                {
                    return Ok(true);
                }
            }
            end = start;
        }
    }
    Ok(false)
}

/// Writes a commit block and its list area at the end of a file of `len` bytes.
pub fn write_commit<F: File>(
    file: &F,
    len: u64,
    block: &mut CommitBlock,
    units: Vec<Unit>,
    name: &str,
) -> Result<u64> {
    block.unit_count = u32::try_from(units.len()).map_err(|_| {
        Error::Refused("the transaction changes too many places for one page list".into())
    })?;
    block.list_checksum = 0;
    let mut written = BLOCK_LEN;
    let area = block.list_len();
    if area > 0 {
        // Whoever gives the length has made the file long enough.
        let place = len.checked_sub(TAIL_LEN).and_then(|rest| rest.checked_sub(area));
        let mut place = place
            .ok_or_else(|| Error::Corrupt(format!("{name} became shorter while it was written")))?;
        let mut hasher = crc32fast::Hasher::new();
        for units in units.chunks(LIST_PIECE / UNIT) {
            let list = encode_units(units);
            hasher.update(&list);
            file.write_at(&list, place).during(Operation::Write, name)?;
            place += list.len() as u64;
            written += list.len() as u64;
        }
        block.list_checksum = hasher.finalize();
    }
    block.units = units;
    file.write_at(&*block.encode(), len - BLOCK_LEN).during(Operation::Write, name)?;
    Ok(written)
}

/// Writes the intent block at the end of a file of `len` bytes.
pub fn write_intent<F: File>(file: &F, len: u64, intent: &IntentBlock, name: &str) -> Result<()> {
    file.write_at(&*intent.encode(), len - TAIL_LEN).during(Operation::Write, name)
}

/// The length a file of a database of `size` bytes should have, with room for a list area.
pub fn roomy_len(size: u64, list: u64, tuning: &Tuning) -> u64 {
    let chunk = (size / 4).clamp(tuning.chunk_min, tuning.chunk_max);
    least_len(size, list).next_multiple_of(chunk.next_multiple_of(BLOCK_LEN))
}

/// The least that will do.
pub fn least_len(size: u64, list: u64) -> u64 {
    (size + list + TAIL_LEN).next_multiple_of(BLOCK_LEN)
}
