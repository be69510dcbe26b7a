//! What stock SQLite does to a file, in miniature: commits in place, without a journal file.

use std::path::Path;

use dash_simulated::{Machine, StockDescriptor};
use dash_storage::{Directory, File, OpenMode, Storage};

use super::{Content, PAGE, counter, page};

/// What is left of the file around the pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// The tail and the block in page 1, as SQLite carries them along.
    All,
    /// The block in page 1: the database grew over the tail.
    Block,
    /// Nothing, as after VACUUM.
    Nothing,
}

/// All of them.
pub const ALL: [Left; 3] = [Left::All, Left::Block, Left::Nothing];

/// Cuts `app.db`.
pub fn set_len(machine: &Machine, len: u64) {
    let root = machine.process().open_directory(Path::new("/")).unwrap();
    root.open("app.db".as_ref(), OpenMode::ReadWrite).unwrap().set_len(len).unwrap();
}

/// A commit on `content`, the database's, flushed: changes the last page, and returns what is there
/// then.
pub fn commit(machine: &Machine, content: &[u8], left: Left) -> Content {
    commit_into(&machine.open_stock("app.db").unwrap(), content, left, &|len| set_len(machine, len))
}

/// The same, into a file that somebody has open.
pub fn commit_into(
    file: &StockDescriptor,
    content: &[u8],
    left: Left,
    set_len: &dyn Fn(u64),
) -> Content {
    let mut bytes = file.read_all();
    let next = if bytes.is_empty() { 1 } else { counter(&bytes) + 1 };
    let mut content = content.to_vec();
    if let Some(last) = content.last_mut() {
        *last = 77;
    }
    let pages = content.len();
    let mut first = match left {
        Left::Nothing => page(1, content[0], pages, next),
        _ => bytes[..PAGE].to_vec(),
    };
    for at in [24, 92] {
        first[at..at + 4].copy_from_slice(&next.to_be_bytes());
    }
    first[28..32].copy_from_slice(&u32::try_from(pages).unwrap().to_be_bytes());
    bytes.truncate(if left == Left::All { bytes.len() } else { pages * PAGE });
    bytes.resize(bytes.len().max(pages * PAGE), 0);
    bytes[..PAGE].copy_from_slice(&first);
    let last = (pages - 1) * PAGE;
    if pages > 1 {
        bytes[last..last + PAGE].copy_from_slice(&page(pages, 77, pages, next));
    }
    set_len(bytes.len() as u64);
    file.write_at(&bytes, 0).unwrap();
    file.flush().unwrap();
    content
}
