//! Rows that are no SQLite: a durable commit of one 100-byte value each. Built in by feature.

#[cfg(feature = "fjall")]
mod fjall;
#[cfg(feature = "heed")]
mod lmdb;
#[cfg(feature = "redb")]
mod redb;

use std::path::Path;

use crate::failure::{Failure, Result};
use crate::rows::Row;

/// A store that a value can be put into, durably.
pub trait Store {
    /// One commit of one value; durable when it returns.
    fn put(&mut self, key: u64, value: &[u8]) -> Result<()>;
}

/// Opens the store of a row in a folder.
pub fn open(row: Row, folder: &Path) -> Result<Box<dyn Store>> {
    std::fs::create_dir_all(folder)
        .map_err(|error| Failure::new(format!("making {}: {error}", folder.display())))?;
    match row {
        #[cfg(feature = "redb")]
        Row::Redb => Ok(Box::new(redb::Redb::open(folder)?)),
        #[cfg(feature = "fjall")]
        Row::Fjall => Ok(Box::new(fjall::Fjall::open(folder)?)),
        #[cfg(feature = "heed")]
        Row::Lmdb => Ok(Box::new(lmdb::Lmdb::open(folder)?)),
        _ => Err(Failure::new(format!("{} is no store", row.name()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn every_store_that_is_built_in_takes_values() {
        let folder = tempfile::tempdir().expect("a folder");
        for row in Row::value_variants().iter().filter(|row| row.is_store()) {
            let mut store = open(*row, &folder.path().join(row.word())).expect("opens");
            (0..3).try_for_each(|key| store.put(key, &[7; 100])).expect("puts");
        }
    }
}
