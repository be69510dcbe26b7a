//! Numbers of the encoding; see FORMAT.md.

/// The versions that are written and read: nothing is said of the connection, or something is.
pub const VERSION: u8 = 1;
pub const WITH_CONTEXT: u8 = 2;
/// Bytes of what is said of it.
pub const CONTEXT: usize = 4;
/// Bytes before the texts: version, reasons, dropped.
pub const HEAD: usize = 1 + 4 + 4;

/// Kinds of a step.
pub const STATEMENT: u8 = 0;
pub const SAVEPOINT: u8 = 1;
pub const RELEASE: u8 = 2;
pub const ROLLBACK_TO: u8 = 3;

/// Flags of a statement.
pub const HAS_VALUES: u8 = 1;
pub const HAS_CLOCK: u8 = 2;

/// Kinds of a value.
pub const NULL: u8 = 0;
pub const INTEGER: u8 = 1;
pub const REAL: u8 = 2;
pub const TEXT: u8 = 3;
pub const BLOB: u8 = 4;
pub const ZEROBLOB: u8 = 5;
pub const POINTER: u8 = 6;
