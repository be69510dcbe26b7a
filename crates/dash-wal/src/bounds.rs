//! How large pages are, and the frames of a record (WAL-46). What a file says of that is what
//! memory is taken by, and where is written: it is not believed before.

/// Bytes that the frames of a record have in `-wal` at most. More of them become durable by a flush
/// of it, whatever little their differences would take.
pub(crate) const FRAMES_MAX: u64 = 1 << 20;

/// Whether pages may have so many bytes.
pub(crate) fn is_page_size(bytes: u32) -> bool {
    bytes.is_power_of_two() && (512..=65_536).contains(&bytes)
}
