//! A pager in miniature: writes databases of numbered pages through the engine as SQLite would,
//! and reads them back.

#![allow(
    dead_code,
    clippy::cast_possible_truncation,
    clippy::unwrap_used,
    reason = "each test uses a part; page numbers are small"
)]

pub mod sim;
pub mod stock;

use std::path::{Path, PathBuf};

use dash_shadow::{Connection, Error, LockLevel, OpenOptions};
use dash_simulated::OperationKind;
use dash_storage::Storage;

/// Page size of the small databases: page 1 has a sector in which a commit block may be, and
/// another.
pub const PAGE: usize = 1024;

/// What a database holds: a value a page. Page 1 holds the header and its value.
pub type Content = Vec<u8>;

/// Cells of page 1 and the start of their content, by the page's value: room for a commit block and
/// a long list, for a short list, for none (it is announced), and no room at all.
fn shape(value: u8) -> (u16, u16) {
    match value % 4 {
        0 => (3, 600),
        1 => (138, 512),
        2 => (162, 700),
        _ => (3, 500),
    }
}

/// Page `number` (from 1) of a database of `pages` pages with `value` in it. Page 1 is a b-tree
/// page, its free middle zeros.
pub fn page(number: usize, value: u8, pages: usize, counter: u32) -> Vec<u8> {
    let mut page = vec![value; PAGE];
    if number == 1 {
        page[..16].copy_from_slice(b"SQLite format 3\0");
        page[16..18].copy_from_slice(&(PAGE as u16).to_be_bytes());
        page[18..24].copy_from_slice(&[1, 1, 0, 64, 32, 32]);
        page[24..28].copy_from_slice(&counter.to_be_bytes());
        page[28..32].copy_from_slice(&(pages as u32).to_be_bytes());
        page[92..96].copy_from_slice(&counter.to_be_bytes());
        let (cells, content) = shape(value);
        page[100..103].copy_from_slice(&[13, 0, 0]);
        page[103..105].copy_from_slice(&cells.to_be_bytes());
        page[105..107].copy_from_slice(&content.to_be_bytes());
        page[107] = 0;
        let gap = gap_of(&page).unwrap();
        page[gap].fill(0);
    }
    page
}

/// The free middle of page 1; `None` if it is not a b-tree page (one of the samples of old).
fn gap_of(page: &[u8]) -> Option<std::ops::Range<usize>> {
    let number = |at: usize| usize::from(page[at]) << 8 | usize::from(page[at + 1]);
    (page[100] == 13 && page[101..103] == [0, 0]).then(|| 108 + 2 * number(103)..number(105))
}

/// The value of a page; `None` if it is torn. `plain`: read through dash, which shows nothing of
/// its own.
pub fn value_of(number: usize, page: &[u8], plain: bool) -> Option<u8> {
    let value = *page.last()?;
    if number > 1 {
        return page[100..].iter().all(|&byte| byte == value).then_some(value);
    }
    let Some(gap) = gap_of(page) else {
        return page[100..].iter().all(|&byte| byte == value).then_some(value);
    };
    let shape = shape(value);
    let fits = gap == (108 + 2 * usize::from(shape.0)..usize::from(shape.1));
    let shown = plain && page[gap.clone()].iter().any(|&byte| byte != 0);
    let own = page[108..gap.start].iter().chain(&page[gap.end..]).all(|&byte| byte == value);
    (fits && own && !shown).then_some(value)
}

/// The counter in a header.
pub fn counter(header: &[u8]) -> u32 {
    u32::from_be_bytes(header[24..28].try_into().unwrap())
}

/// Opens `path` with default options.
pub fn open<S: Storage>(storage: &S, path: &str) -> Result<Connection<S>, Error> {
    Connection::open(storage, Path::new(path), &OpenOptions::default())
}

/// The committed content, under a lock of its own.
pub fn read<S: Storage>(connection: &mut Connection<S>) -> Result<Content, Error> {
    connection.lock(LockLevel::Shared)?;
    let content = read_locked(connection);
    connection.unlock(LockLevel::None)?;
    content
}

/// The content as the connection sees it under the lock it holds.
pub fn read_locked<S: Storage>(connection: &mut Connection<S>) -> Result<Content, Error> {
    let mut header = [0; 100];
    connection.read(&mut header, 0)?;
    let size = (usize::from(header[16]) << 8 | usize::from(header[17])).max(512);
    let pages = connection.size() as usize / size;
    let mut content = Vec::new();
    for number in 0..pages {
        let mut bytes = vec![0; size];
        let read = connection.read(&mut bytes, (number * size) as u64)?;
        assert_eq!(read, size);
        let value = value_of(number + 1, &bytes, true);
        content.push(value.unwrap_or_else(|| panic!("page {} is torn", number + 1)));
    }
    Ok(content)
}

/// Begins a write transaction and writes what differs from the present content.
pub fn write<S: Storage>(connection: &mut Connection<S>, content: &[u8]) -> Result<(), Error> {
    connection.lock(LockLevel::Shared)?;
    let old = read_locked(connection)?;
    let mut header = [0; 100];
    connection.read(&mut header, 0)?;
    connection.lock(LockLevel::Reserved)?;
    connection.lock(LockLevel::Exclusive)?;
    let counter = if old.is_empty() { 0 } else { counter(&header) };
    for (i, &value) in content.iter().enumerate() {
        if i == 0 || old.get(i) != Some(&value) {
            connection.write(&page(i + 1, value, content.len(), counter + 1), (i * PAGE) as u64)?;
        }
    }
    Ok(())
}

/// A whole transaction: after `Ok` it must survive everything.
pub fn commit<S: Storage>(connection: &mut Connection<S>, content: &[u8]) -> Result<(), Error> {
    let committed = write(connection, content)
        .and_then(|()| connection.prepare(None))
        .and_then(|()| connection.flush())
        .and_then(|()| connection.publish());
    let unlocked = connection.unlock(LockLevel::None);
    committed.and(unlocked)
}

/// A whole transaction under synchronous=OFF.
pub fn commit_unflushed<S: Storage>(connection: &mut Connection<S>, content: &[u8]) {
    write(connection, content).unwrap();
    connection.prepare(None).unwrap();
    connection.publish().unwrap();
    connection.unlock(LockLevel::None).unwrap();
}

/// Whether cutting before such an operation can leave anything that cutting before the last one did
/// not.
pub fn changes(kind: OperationKind) -> bool {
    !matches!(
        kind,
        OperationKind::Read
            | OperationKind::OpenDirectory
            | OperationKind::NameMetadata
            | OperationKind::Map
            | OperationKind::SharedMemory
            | OperationKind::Lock
            | OperationKind::Unlock
            | OperationKind::Metadata
            | OperationKind::LockConflict
    )
}

/// A folder on the real system and a database in it.
pub fn real() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    (folder, path)
}
