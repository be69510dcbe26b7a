//! What a record may say of frames at all (WAL-46). What a file holds is not believed before: a page
//! size, a number of frames, the number of one are what memory is taken by, and where is written.

use crate::context::{RecordContext, page_of};
use crate::frames::frame_size;
use dash_log::record::Record;

/// Bytes that the frames of a record have in `-wal` at most. More of them become durable by a flush
/// of it, whatever little their differences would take.
pub(crate) const FRAMES_MAX: u64 = 1 << 20;

/// Whether pages may have so many bytes.
pub(crate) fn is_page_size(bytes: u32) -> bool {
    bytes.is_power_of_two() && (512..=65_536).contains(&bytes)
}

/// Whether a record may say so of itself.
pub(crate) fn may_say(record: &Record<'_>, context: &RecordContext) -> bool {
    let page = record.unit_bytes;
    let is_its_size = context.start.is_none_or(|start| page_of(&start.header) == page);
    is_page_size(page) && is_its_size && frames(record, context).is_some_and(|it| fits(it, page))
}

/// How many frames it is of.
fn frames(record: &Record<'_>, context: &RecordContext) -> Option<u32> {
    let first = context.first_frame.checked_sub(1)?;
    match &context.carried {
        None => first.checked_add(record.count).map(|_| record.count),
        Some(carried) => carried.last.checked_sub(first).filter(|_| carried.last < u32::MAX),
    }
}

fn fits(frames: u32, page: u32) -> bool {
    u64::from(frames) * frame_size(page) <= FRAMES_MAX
}
