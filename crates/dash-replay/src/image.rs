//! A database's file, by pages.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use dash_wal::history::Frame;

use crate::{Error, Result};

/// On page 1 what SQLite counts and notes of itself: the change counter, what it is valid for, and
/// the version.
const COUNTERS: [Range<usize>; 2] = [24..28, 92..100];

/// See the module.
pub struct Image {
    pub path: PathBuf,
    pub page: u32,
    file: File,
}

impl Image {
    /// A file that is there.
    pub fn open(path: &Path, page: u32) -> Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(path);
        let file = file.map_err(|error| Error::Io(path.display().to_string(), error))?;
        Ok(Self { path: path.to_owned(), page, file })
    }

    fn failed(&self, error: std::io::Error) -> Error {
        Error::Io(self.path.display().to_string(), error)
    }

    /// The same in another file, whatever is there.
    pub fn copy_to(&self, path: &Path) -> Result<Self> {
        std::fs::copy(&self.path, path)
            .map_err(|error| Error::Io(path.display().to_string(), error))?;
        Self::open(path, self.page)
    }

    /// Pages.
    pub fn pages(&self) -> Result<u32> {
        let len = self.file.metadata().map_err(|error| self.failed(error))?.len();
        Ok(u32::try_from(len / u64::from(self.page)).unwrap_or(u32::MAX))
    }

    /// Where a page is; `None`: there is none with this number.
    fn offset(&self, number: u32) -> Option<u64> {
        Some(u64::from(number.checked_sub(1)?) * u64::from(self.page))
    }

    /// A page; `None`: the file ends before it.
    pub fn get(&self, number: u32) -> Result<Option<Vec<u8>>> {
        let Some(offset) = self.offset(number) else { return Ok(None) };
        let mut bytes = vec![0; self.page as usize];
        match self.file.read_exact_at(&mut bytes, offset) {
            Ok(()) => Ok(Some(bytes)),
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Puts frames into it, after which it has so many pages. SQLite writes every page by which a
    /// database grows, but for the one that holds its locks.
    pub fn apply(&self, frames: &[Frame<'_>], pages: u32) -> Result<()> {
        let most = u64::from(self.pages()?) + frames.len() as u64 + 1;
        if u64::from(pages) > most {
            return Err(Error::NoBase(format!(
                "a commit says that the database has {pages} pages then, and with what came before it has {most} at most: the log is damaged, or its first commit is not the one behind that copy"
            )));
        }
        // What a transaction has written and then cut off is not in the database.
        for (number, image) in frames.iter().filter(|(number, _)| *number <= pages) {
            self.put(*number, image)?;
        }
        self.resize(pages)
    }

    pub fn put(&self, number: u32, image: &[u8]) -> Result<()> {
        let no_page = || Error::NoBase("the log is damaged: it has a page 0".to_owned());
        let offset = self.offset(number).ok_or_else(no_page)?;
        self.file.write_all_at(image, offset).map_err(|error| self.failed(error))
    }

    fn resize(&self, pages: u32) -> Result<()> {
        let len = u64::from(pages) * u64::from(self.page);
        self.file.set_len(len).map_err(|error| self.failed(error))
    }

    /// Whether these pages are the same in both, but for SQLite's counters.
    pub fn is_like(&self, other: &Self, pages: &BTreeSet<u32>) -> Result<bool> {
        if self.pages()? != other.pages()? {
            return Ok(false);
        }
        for number in pages {
            let [mut one, mut two] = [self.get(*number)?, other.get(*number)?];
            for image in [&mut one, &mut two].into_iter().flatten().filter(|_| *number == 1) {
                COUNTERS.into_iter().for_each(|range| image[range].fill(0));
            }
            if one != two {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Makes these pages those of the other one.
    pub fn become_like(&self, other: &Self, pages: &BTreeSet<u32>) -> Result<()> {
        for number in pages {
            if let Some(image) = other.get(*number)? {
                self.put(*number, &image)?;
            }
        }
        self.resize(other.pages()?)
    }
}
