//! What reached the device, in order: writes with their content, and flushes. The device appends,
//! the worker reads and empties; both know the log by its two files only, records of 24 bytes and
//! the bytes that were written.

use std::fs::{File, OpenOptions};
use std::io::{Result, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes of a record: place on the device, length (0: a flush), place in the data file.
const RECORD: usize = 24;

/// The files of a log.
#[derive(Debug)]
pub struct Log {
    records: File,
    data: File,
}

/// One thing that reached the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// All that was written before is durable.
    Flush,
    /// Bytes were written.
    Write {
        /// First byte on the device.
        place: u64,
        /// First byte in [`Copy::data`].
        from: usize,
        /// How many.
        length: usize,
    },
}

/// The log as it was at one time, in memory.
#[derive(Debug, Default)]
pub struct Recorded {
    /// In order.
    pub events: Vec<Event>,
    data: Vec<u8>,
}

impl Recorded {
    /// What a write wrote; nothing for a flush.
    pub fn bytes(&self, event: Event) -> &[u8] {
        match event {
            Event::Flush => &[],
            Event::Write { from, length, .. } => &self.data[from..from + length],
        }
    }
}

impl Log {
    /// Opens the log in a folder, creating it where there is none.
    pub fn open(folder: &Path) -> Result<Self> {
        let file =
            |name| OpenOptions::new().create(true).append(true).read(true).open(folder.join(name));
        Ok(Self { records: file("records")?, data: file("data")? })
    }

    /// How many events there are.
    pub fn position(&self) -> Result<u64> {
        Ok(self.records.metadata()?.len() / RECORD as u64)
    }

    /// Adds a write.
    pub fn write(&mut self, place: u64, bytes: &[u8]) -> Result<()> {
        let from = self.data.metadata()?.len();
        self.data.write_all(bytes)?;
        self.record([place, bytes.len() as u64, from])
    }

    /// Adds a flush.
    pub fn flush(&mut self) -> Result<()> {
        self.record([0; 3])
    }

    fn record(&mut self, fields: [u64; 3]) -> Result<()> {
        let mut record = [0; RECORD];
        for (bytes, field) in record.chunks_exact_mut(8).zip(fields) {
            bytes.copy_from_slice(&field.to_le_bytes());
        }
        self.records.write_all(&record)
    }

    /// Everything so far.
    pub fn read(&self) -> Result<Recorded> {
        let whole = |file: &File, length| -> Result<Vec<u8>> {
            let mut bytes = vec![0; length];
            file.read_exact_at(&mut bytes, 0)?;
            Ok(bytes)
        };
        let size = |file: &File| -> Result<usize> {
            Ok(usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX))
        };
        let records = whole(&self.records, size(&self.records)? / RECORD * RECORD)?;
        let data = whole(&self.data, size(&self.data)?)?;
        let field = |record: &[u8], number: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&record[number * 8..number * 8 + 8]);
            u64::from_le_bytes(bytes)
        };
        let index = |value| usize::try_from(value).unwrap_or(usize::MAX);
        let events = records
            .chunks_exact(RECORD)
            .map(|record| match field(record, 1) {
                0 => Event::Flush,
                length => Event::Write {
                    place: field(record, 0),
                    from: index(field(record, 2)),
                    length: index(length),
                },
            })
            .collect();
        Ok(Recorded { events, data })
    }

    /// Empties it. The device must be at rest.
    pub fn clear(&self) -> Result<()> {
        self.records.set_len(0)?;
        self.data.set_len(0)
    }
}
