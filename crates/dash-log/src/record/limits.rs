//! Flags and limits of a record.

/// Flag: what the engine wrote before this record is durable elsewhere, and no entry from here on
/// builds on an image from before. Recovery reads from the newest such record on.
pub const WINDOW_START: u16 = 1;

/// Flag: an annotation follows the entries. An older dash takes the record for a newer one's.
pub const ANNOTATED: u16 = 2;

/// Flag: the annotation counts: the engine makes of it what entries would have said (LOG-17). An
/// older dash takes the record for a newer one's. In a compact record the bits between are taken.
pub const CARRYING: u16 = 32;

/// Longest record, in bytes, padding included. A shorter one is what it says, or is none: so what a
/// damaged beginning claims costs no more than this to look at (LOG-18).
pub const RECORD_MAX: usize = 4 << 20;

/// Longest annotation, in bytes.
pub const ANNOTATION_MAX: usize = u16::MAX as usize;

/// A number of bytes in memory.
pub(super) fn size(len: u32) -> usize {
    usize::try_from(len).unwrap_or(usize::MAX)
}
