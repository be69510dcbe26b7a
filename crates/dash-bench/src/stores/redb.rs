//! redb, `Durability::Immediate`.

use std::path::Path;

use redb::{Database, Durability, TableDefinition};

use super::Store;
use crate::failure::{Explain, Result};

const TABLE: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("t");

/// The store.
struct Redb(Database);

impl Redb {
    fn open(folder: &Path) -> Result<Self> {
        Database::create(folder.join("redb")).map(Self).explain("opening redb")
    }
}

/// Opens it.
pub fn open(folder: &Path) -> Result<Box<dyn Store>> {
    Ok(Box::new(Redb::open(folder)?))
}

impl Store for Redb {
    fn put(&mut self, key: u64, value: &[u8]) -> Result<()> {
        let what = "putting into redb";
        let mut transaction = self.0.begin_write().explain(what)?;
        transaction.set_durability(Durability::Immediate).explain(what)?;
        transaction.open_table(TABLE).explain(what)?.insert(key, value).explain(what)?;
        transaction.commit().explain(what)
    }
}
