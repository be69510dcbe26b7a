//! fjall, `PersistMode::SyncData` after each put.

use std::path::Path;

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use super::Store;
use crate::failure::{Explain, Result};

/// The store.
struct Fjall {
    database: Database,
    keyspace: Keyspace,
}

impl Fjall {
    fn open(folder: &Path) -> Result<Self> {
        let database = Database::builder(folder.join("fjall")).open().explain("opening fjall")?;
        let keyspace =
            database.keyspace("t", KeyspaceCreateOptions::default).explain("opening fjall")?;
        Ok(Self { database, keyspace })
    }
}

/// Opens it.
pub fn open(folder: &Path) -> Result<Box<dyn Store>> {
    Ok(Box::new(Fjall::open(folder)?))
}

impl Store for Fjall {
    fn put(&mut self, key: u64, value: &[u8]) -> Result<()> {
        let put = self.keyspace.insert(key.to_be_bytes(), value);
        put.and_then(|()| self.database.persist(PersistMode::SyncData))
            .explain("putting into fjall")
    }
}
