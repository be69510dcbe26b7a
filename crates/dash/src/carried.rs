//! What SQLite has set by `xFileControl`, which lasts as long as the connection, whatever engine
//! comes under it.

use dash_ffi::{FileControl, Result};

use crate::mode::Database;

/// The settings of one database.
#[derive(Debug, Clone, Copy)]
pub struct Carried {
    /// `SQLITE_FCNTL_MMAP_SIZE` in bytes; negative: not known, or not to be changed.
    mmap: i64,
    /// `SQLITE_FCNTL_PERSIST_WAL`; likewise.
    persist: i32,
    /// `SQLITE_FCNTL_CHUNK_SIZE` in bytes, if it was set: no file answers that.
    chunk: Option<i32>,
}

impl Carried {
    /// Those of a database that another one is going to replace.
    ///
    /// # Errors
    ///
    /// Those of its file.
    pub fn from(database: &mut dyn Database, chunk: Option<i32>) -> Result<Self> {
        // Asked so, a file answers what is set.
        let (mut mmap, mut persist) = (-1, -1);
        database.file_control(FileControl::MmapSize(&mut mmap))?;
        database.file_control(FileControl::PersistWal(&mut persist))?;
        Ok(Self { mmap, persist, chunk })
    }

    /// Sets them in the one that took its place.
    ///
    /// # Errors
    ///
    /// Those of its file.
    pub fn set(mut self, database: &mut dyn Database) -> Result<()> {
        database.file_control(FileControl::MmapSize(&mut self.mmap))?;
        database.file_control(FileControl::PersistWal(&mut self.persist))?;
        if let Some(chunk) = self.chunk {
            database.file_control(FileControl::ChunkSize(chunk))?;
        }
        Ok(())
    }
}
