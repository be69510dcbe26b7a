//! LMDB by heed, with its default flags: a commit is flushed.

use std::path::Path;

use heed::byteorder::BigEndian;
use heed::types::{Bytes, U64};
use heed::{Database, Env, EnvOpenOptions};

use super::Store;
use crate::failure::{Explain, Result};

/// Bytes of address space.
const MAP: usize = 1 << 30;

/// The store.
struct Lmdb {
    environment: Env,
    database: Database<U64<BigEndian>, Bytes>,
}

impl Lmdb {
    #[expect(
        unsafe_code,
        reason = "a memory-mapped file: nobody else touches a new folder of ours"
    )]
    fn open(folder: &Path) -> Result<Self> {
        let what = "opening LMDB";
        // SAFETY: the file is made in a folder of this run alone, opened once, and nobody cuts it.
        let environment =
            unsafe { EnvOpenOptions::new().map_size(MAP).open(folder) }.explain(what)?;
        let mut transaction = environment.write_txn().explain(what)?;
        let database = environment.create_database(&mut transaction, None).explain(what)?;
        transaction.commit().explain(what)?;
        Ok(Self { environment, database })
    }
}

/// Opens it.
pub fn open(folder: &Path) -> Result<Box<dyn Store>> {
    Ok(Box::new(Lmdb::open(folder)?))
}

impl Store for Lmdb {
    fn put(&mut self, key: u64, value: &[u8]) -> Result<()> {
        let what = "putting into LMDB";
        let mut transaction = self.environment.write_txn().explain(what)?;
        self.database.put(&mut transaction, &key, value).explain(what)?;
        transaction.commit().explain(what)
    }
}
