//! The rollback journal: a file in memory.
//!
//! SQLite writes the old content of pages here and reads it back for ROLLBACK and savepoints; a
//! crash never needs it, since the engine leaves the current copy alone. So it needs no name and no
//! flush. Above [`MEMORY_MAX`] it moves to a temporary file without a name. Which super-journal it
//! names is told to [`Prepared`], as a journal on disk would show it.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

use dash_engine::error::remedy;
use dash_ffi::{Code, Error, Result, SideFile};
use dash_storage::real;

use super::super_journal::{self, Prepared};

/// Bytes kept in memory.
const MEMORY_MAX: usize = 4 << 20;
/// Bytes reserved at once: a small transaction's journal.
const RESERVED: usize = 16 << 10;

/// A journal.
pub struct Journal {
    content: Content,
    /// Where to spill if the system's folder for temporary files can't be used.
    beside: PathBuf,
    prepared: Arc<Prepared>,
}

enum Content {
    Memory(Vec<u8>),
    Spilled(fs::File),
}

fn failed(code: Code, source: &io::Error) -> Error {
    let code = match source.kind() {
        ErrorKind::OutOfMemory => Code::IOERR_NOMEM,
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => Code::FULL,
        _ => code,
    };
    Error::new(code, format!("the journal's temporary file: {source}{}", remedy(source)))
}

impl Journal {
    /// An empty journal.
    pub fn new(beside: PathBuf, prepared: Arc<Prepared>) -> Self {
        Self { content: Content::Memory(Vec::new()), beside, prepared }
    }

    fn spill(&mut self) -> io::Result<()> {
        let Content::Memory(memory) = &self.content else {
            return Ok(());
        };
        let mut folders = dash_ffi::temporary_folders().into_iter();
        let file = folders.find_map(|folder| tempfile::tempfile_in(folder).ok());
        let file = file.map_or_else(|| tempfile::tempfile_in(&self.beside), Ok)?;
        // What the process prints would be rolled back to.
        let file = real::keep_off_standard_streams(file)?;
        real::check_limit(memory.len() as u64)?;
        file.write_all_at(memory, 0)?;
        self.content = Content::Spilled(file);
        Ok(())
    }

    /// Whether there was memory for it; nothing has changed where there was none.
    fn write_memory(memory: &mut Vec<u8>, data: &[u8], at: usize) -> bool {
        let more = at.saturating_add(data.len()).saturating_sub(memory.len());
        let more = if memory.capacity() == 0 { more.max(RESERVED) } else { more };
        if memory.try_reserve(more).is_err() {
            return false;
        }
        if at > memory.len() {
            memory.resize(at, 0);
        }
        let over = data.len().min(memory.len() - at);
        let (old, new) = data.split_at(over);
        memory[at..at + over].copy_from_slice(old);
        memory.extend_from_slice(new);
        true
    }

    fn put(&mut self, data: &[u8], offset: u64) -> Result<()> {
        if let Content::Memory(memory) = &mut self.content
            && let Ok(at) = usize::try_from(offset)
            && at.saturating_add(data.len()) <= MEMORY_MAX
            && Self::write_memory(memory, data, at)
        {
            return Ok(());
        }
        self.spill()
            .and_then(|()| match &self.content {
                Content::Spilled(file) => {
                    real::check_limit(offset.saturating_add(data.len() as u64))?;
                    file.write_all_at(data, offset)
                }
                Content::Memory(_) => Ok(()),
            })
            .map_err(|error| failed(Code::IOERR_WRITE, &error))
    }
}

impl SideFile for Journal {
    fn read(&mut self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        match &self.content {
            Content::Memory(memory) => {
                let at = usize::try_from(offset).unwrap_or(usize::MAX);
                let there = memory.get(at..).unwrap_or_default();
                let len = there.len().min(buffer.len());
                buffer[..len].copy_from_slice(&there[..len]);
                Ok(len)
            }
            Content::Spilled(file) => {
                let mut done = 0;
                let mut at = offset;
                while done < buffer.len() {
                    match file.read_at(&mut buffer[done..], at) {
                        Ok(0) => break,
                        Ok(read) => {
                            done += read;
                            at += u64::try_from(read).unwrap_or(0);
                        }
                        Err(error) if error.kind() == ErrorKind::Interrupted => {}
                        Err(error) => return Err(failed(Code::IOERR_READ, &error)),
                    }
                }
                Ok(done)
            }
        }
    }

    fn write(&mut self, data: &[u8], offset: u64) -> Result<()> {
        self.put(data, offset)?;
        if super_journal::ends_name(data)
            && let Some(named) = super_journal::named(self, offset)?
        {
            self.prepared.set_super_journal(Some(named));
        }
        Ok(())
    }

    fn truncate(&mut self, size: u64) -> Result<()> {
        match &mut self.content {
            Content::Memory(memory) => {
                memory.truncate(usize::try_from(size).unwrap_or(usize::MAX));
                Ok(())
            }
            Content::Spilled(file) => {
                file.set_len(size).map_err(|error| failed(Code::IOERR_TRUNCATE, &error))
            }
        }
    }

    fn size(&mut self) -> Result<u64> {
        match &self.content {
            Content::Memory(memory) => Ok(u64::try_from(memory.len()).unwrap_or(u64::MAX)),
            Content::Spilled(file) => match file.metadata() {
                Ok(metadata) => Ok(metadata.len()),
                Err(error) => Err(failed(Code::IOERR_FSTAT, &error)),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_reads_back_as_written_in_memory_and_spilled() {
        let mut journal = Journal::new(std::env::temp_dir(), Arc::default());
        let mut seen = [9; 6];
        journal.write(b"cd", 2).expect("in memory");
        assert_eq!(journal.read(&mut seen, 0).expect("in memory"), 4);
        assert_eq!(&seen[..4], b"\0\0cd");
        journal.write(b"abX", 0).expect("in memory");
        let far = u64::try_from(MEMORY_MAX).expect("small");
        journal.write(b"far", far).expect("spills");
        assert!(matches!(journal.content, Content::Spilled(_)));
        assert_eq!(journal.read(&mut seen, 0).expect("spilled"), 6);
        assert_eq!(&seen, b"abXd\0\0");
        assert_eq!(journal.read(&mut seen, far).expect("spilled"), 3);
        journal.truncate(4).expect("spilled");
        assert_eq!(journal.size().expect("spilled"), 4);
    }

    #[test]
    fn the_super_journal_that_it_names_is_told() {
        let prepared = Arc::<Prepared>::default();
        let mut journal = Journal::new(std::env::temp_dir(), Arc::clone(&prepared));
        let mut marker = super_journal::Marker::new(std::path::Path::new("/a-mj1"));
        let mut content = [0; 600];
        let len = marker.read(&mut content, 0).expect("in memory");
        let (name, magic) = content[..len].split_at(len - 8);
        journal.write(name, 0).expect("in memory");
        assert_eq!(prepared.super_journal(), None);
        journal.write(magic, u64::try_from(name.len()).expect("small")).expect("in memory");
        assert_eq!(prepared.super_journal(), Some("/a-mj1".into()));
    }
}
