//! Files that are no databases. SQLite finds that by itself when it has read one, and asks nobody:
//! what `dash_last_error()` is to say then is said before, to each connection, whenever it begins
//! to read. The first one to open the file has found out.

use std::sync::Mutex;

use dash_ffi::{File, explain};

use crate::leftovers::{HEADER, MAGIC};

/// What the connections of this process know of a file. Whoever holds the lock does just the same;
/// in a forked child that may be nobody.
#[derive(Default)]
pub struct NoDatabase(Mutex<Option<Found>>);

struct Found {
    message: String,
    /// How the file began then.
    begins: Option<Vec<u8>>,
}

impl NoDatabase {
    /// A connection has found it out, and goes on to [tell](Self::tell) it.
    pub fn is_found(&self, message: String) {
        if let Ok(mut known) = self.0.try_lock() {
            *known = Some(Found { message, begins: None });
        }
    }

    /// A connection begins to read: it is told, unless the file may be a database by now.
    pub fn tell(&self, file: &mut dyn File) {
        let Ok(mut known) = self.0.try_lock() else { return };
        let Some(found) = &mut *known else { return };
        let mut header = vec![0; HEADER];
        let len = file.read(&mut header, 0).unwrap_or(0);
        header.truncate(len);
        // One byte is an empty database to SQLite.
        let is_none = header.len() > 1 && !header.starts_with(MAGIC);
        let began = found.begins.get_or_insert_with(|| header.clone());
        match is_none || *began == header {
            true => explain(&found.message),
            false => *known = None,
        }
    }
}
