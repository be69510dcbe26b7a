//! Rows that are no SQLite: a durable commit of one 100-byte value each. Built in by feature.

#[cfg(feature = "fjall")]
pub mod fjall;
#[cfg(feature = "heed")]
pub mod lmdb;
#[cfg(feature = "redb")]
pub mod redb;

use crate::failure::Result;

/// A store that a value can be put into, durably.
pub trait Store {
    /// One commit of one value; durable when it returns.
    ///
    /// # Errors
    ///
    /// The store's own.
    fn put(&mut self, key: u64, value: &[u8]) -> Result<()>;
}
