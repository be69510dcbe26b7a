//! Offsets in the record, behind what it has in common with a head, and in an entry.

/// Bytes of the record without padding, u32.
pub const LENGTH: usize = 32;
/// Bytes of the record on the disk, u32.
pub const PADDED: usize = 36;
/// Flags, u16.
pub const FLAGS: usize = 40;
/// Bytes of meta in each entry, u16.
pub const META_LEN: usize = 42;
/// Number of entries, u32.
pub const ENTRIES: usize = 44;
/// Bytes of an image, u32.
pub const UNIT_BYTES: usize = 48;
/// Length of the context, u16.
pub const CONTEXT_LEN: usize = 52;
/// Length of the annotation, u16.
pub const ANNOTATION_LEN: usize = 54;
/// The engine's context; the entries follow it.
pub const CONTEXT: usize = 56;
/// In an entry: number of the unit, u32.
pub const UNIT: usize = 0;
/// In an entry: what the difference is made of, u8.
pub const BASE: usize = 4;
/// In an entry: length of the difference, 1 to 5 bytes.
pub const DIFFERENCE_LEN: usize = 5;
