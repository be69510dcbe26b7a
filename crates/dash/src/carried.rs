//! What SQLite and the user have set by `xFileControl`, which lasts as long as the connection,
//! whatever engine comes under it.

use dash_ffi::{BusyHandler, FileControl, Pragma, Result};

use crate::mode::Database;

/// `PRAGMA`s of SQLite's own that engines take notice of.
pub const OF_ENGINES: [&str; 2] = ["locking_mode", "secure_delete"];

/// What was said of a database, and no file answers.
#[derive(Debug, Clone, Default)]
pub struct Said {
    /// `SQLITE_FCNTL_CHUNK_SIZE` in bytes.
    pub chunk: Option<i32>,
    /// `SQLITE_FCNTL_BUSYHANDLER`, which SQLite says once, when it opens the database.
    pub busy: Option<BusyHandler>,
    /// The values of [`OF_ENGINES`].
    pragmas: [Option<String>; OF_ENGINES.len()],
}

impl Said {
    /// Notes the value of a `PRAGMA`, if engines take notice of it.
    pub fn note(&mut self, pragma: &Pragma<'_>) {
        let name = pragma.name();
        let at = OF_ENGINES.iter().position(|known| known.eq_ignore_ascii_case(name));
        if let (Some(at), Some(value)) = (at, pragma.value()) {
            self.pragmas[at] = Some(value.to_owned());
        }
    }

    /// Whether SQLite keeps its lock, by what was said last.
    pub fn is_exclusive(&self) -> bool {
        self.pragmas[0].as_ref().is_some_and(|value| value.eq_ignore_ascii_case("exclusive"))
    }
}

/// The settings of one database.
#[derive(Debug)]
pub struct Carried {
    /// `SQLITE_FCNTL_MMAP_SIZE` in bytes; negative: not known, or not to be changed.
    mmap: i64,
    /// `SQLITE_FCNTL_PERSIST_WAL`; likewise.
    persist: i32,
    said: Said,
}

impl Carried {
    /// Those of a database that another one is going to replace.
    ///
    /// # Errors
    ///
    /// Those of its file.
    pub fn from(database: &mut dyn Database, said: &Said) -> Result<Self> {
        // Asked so, a file answers what is set.
        let (mut mmap, mut persist) = (-1, -1);
        database.file_control(FileControl::MmapSize(&mut mmap))?;
        database.file_control(FileControl::PersistWal(&mut persist))?;
        Ok(Self { mmap, persist, said: said.clone() })
    }

    /// Sets them in the one that took its place.
    ///
    /// # Errors
    ///
    /// Those of its file.
    pub fn set(mut self, database: &mut dyn Database) -> Result<()> {
        database.file_control(FileControl::MmapSize(&mut self.mmap))?;
        database.file_control(FileControl::PersistWal(&mut self.persist))?;
        if let Some(chunk) = self.said.chunk {
            database.file_control(FileControl::ChunkSize(chunk))?;
        }
        if let Some(busy) = self.said.busy {
            database.file_control(FileControl::BusyHandler(busy))?;
        }
        for (name, value) in OF_ENGINES.into_iter().zip(self.said.pragmas) {
            if let Some(answer) = value.and_then(|value| database.pragma(name, Some(&value))) {
                answer?;
            }
        }
        Ok(())
    }
}
