//! A log whose `-wal` is gone. Its name was durable before the first record, so somebody deleted
//! it: SQLite, after a complete checkpoint, or a user. A checkpoint leaves no older image of a page
//! in the database (WAL-16).

use super::look::{Log, Look};
use dash_engine::error::{Context, Operation, Result};
use dash_engine::io::read_padded;
use dash_engine::memory::zeros;
use dash_log::images::Images;
use dash_storage::Storage;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

impl<S: Storage> Look<'_, S> {
    /// Whether a page of the database is as the log had it before its last image there.
    pub(super) fn holds_older_image(&self, log: &Log<S::File>) -> Result<bool> {
        let Some(chain) = &log.chain else { return Ok(false) };
        let page = crate::context::page_of(&chain.generation.header);
        let mut images = Images::new(page);
        // Whether the database's page equals an image: the last, or one before.
        let mut equal: HashMap<u32, (Vec<u8>, bool, bool)> = HashMap::new();
        for record in log.scan.records() {
            let record = record?;
            for entry in record.entries() {
                let image = images.feed(&entry)?;
                let (found, last, before) = match equal.entry(entry.unit) {
                    Entry::Occupied(known) => known.into_mut(),
                    Entry::Vacant(new) => {
                        let mut bytes = zeros(u64::from(page))?;
                        let at = u64::from(entry.unit.saturating_sub(1)) * u64::from(page);
                        read_padded(self.database, &mut bytes, at)
                            .during(Operation::Read, self.names.shown())?;
                        new.insert((bytes, false, false))
                    }
                };
                *before |= *last;
                *last = found.as_slice() == image;
            }
        }
        Ok(equal.values().any(|(_, last, before)| *before && !*last))
    }
}
