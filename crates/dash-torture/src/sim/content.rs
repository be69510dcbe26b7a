//! A pager in miniature: databases of numbered pages, written through an engine as SQLite would and
//! read back. A page holds one value in all its places, so that torn pages are seen.

use std::path::Path;

use dash_simulated::Machine;
use dash_storage::{Directory, OpenMode, Storage};

use super::commit::undoable;
use super::subject::{DB, Outcome, Session, Trouble};

/// What a database holds: a value a page, never 0. Page 1 holds SQLite's header, too.
pub type Content = Vec<u32>;

/// Values are below this: no page begins as a block of an engine may.
pub const VALUES: u64 = 1 << 24;

/// Bytes of SQLite's header.
const HEADER: usize = 100;

/// Where SQLite's b-tree header begins in page 1.
const BTREE: usize = 100;

/// What page 1 looks like with a value: type of the b-tree page, cells, where their content begins.
/// Its free middle reaches to the end of the first sector and is long, short or empty, or it ends
/// before: an engine may use it. Half of the values leave there what was in use before, as SQLite
/// does where it drops cells.
fn shape(value: u32) -> (u8, u16, u16) {
    match value % 5 {
        0 => (13, 4, 512),
        1 => (13, 138, 512),
        2 => (13, 162, 512),
        3 => (13, 4, 480),
        _ => (5, 4, 512),
    }
}

fn leaves_garbage(value: u32) -> bool {
    (value / 5).is_multiple_of(2)
}

/// The free middle of page 1, if it is a page as [`shape`] makes them.
fn middle(page: &[u8]) -> Option<std::ops::Range<usize>> {
    let number = |at: usize| usize::from(page[BTREE + at]) << 8 | usize::from(page[BTREE + at + 1]);
    let pointers = BTREE + if page.get(BTREE)? == &5 { 12 } else { 8 };
    let gap = pointers + 2 * number(3)..number(5);
    (gap.start <= gap.end && gap.end <= page.len()).then_some(gap)
}

/// Page `number`, from 0, of a database of `pages` pages.
pub fn page(size: usize, number: usize, value: u32, pages: usize, counter: u32) -> Vec<u8> {
    let mut page = value.to_le_bytes().repeat(size / 4);
    if number == 0 {
        let pages = u32::try_from(pages).unwrap_or(u32::MAX).to_be_bytes();
        page[..16].copy_from_slice(b"SQLite format 3\0");
        // 65,536 is stored as 1.
        page[16..18].copy_from_slice(&u16::try_from(size).unwrap_or(1).to_be_bytes());
        page[18..24].copy_from_slice(&[1, 1, 0, 64, 32, 32]);
        page[24..28].copy_from_slice(&counter.to_be_bytes());
        page[28..32].copy_from_slice(&pages);
        page[92..96].copy_from_slice(&counter.to_be_bytes());
        let (kind, cells, content) = shape(value);
        page[BTREE..BTREE + 3].copy_from_slice(&[kind, 0, 0]);
        page[BTREE + 3..BTREE + 5].copy_from_slice(&cells.to_be_bytes());
        page[BTREE + 5..BTREE + 7].copy_from_slice(&content.to_be_bytes());
        page[BTREE + 7] = 0;
        if !leaves_garbage(value) {
            let gap = middle(&page).unwrap_or_default();
            page[gap].fill(0);
        }
    }
    page
}

/// The one value of a page, if it has one. `plain`: nothing but what was written there, or zeros,
/// may be in the free middle of page 1; what is there in the file is nobody's business.
fn value(number: usize, bytes: &[u8], plain: bool) -> Option<u32> {
    if number > 0 {
        return repeated(bytes);
    }
    let gap = middle(bytes)?;
    let start = BTREE + if bytes[BTREE] == 5 { 12 } else { 8 };
    let value = repeated(&bytes[start..gap.start])?;
    let (kind, cells, content) = shape(value);
    let same = bytes[BTREE] == kind
        && bytes[BTREE + 3..BTREE + 5] == cells.to_be_bytes()
        && bytes[BTREE + 5..BTREE + 7] == content.to_be_bytes();
    let rest = gap.end == bytes.len() || repeated(&bytes[gap.end..]) == Some(value);
    let written = value.to_le_bytes();
    let garbage = |at: usize| if leaves_garbage(value) { written[at % written.len()] } else { 0 };
    let hidden = !plain || gap.clone().all(|at| bytes[at] == 0 || bytes[at] == garbage(at));
    (same && rest && hidden).then_some(value)
}

/// The four bytes that are repeated all over.
fn repeated(bytes: &[u8]) -> Option<u32> {
    let last = bytes.len().checked_sub(4)?;
    // Each four bytes are as the four before.
    (bytes[..last] == bytes[4..])
        .then(|| u32::from_le_bytes(bytes[last..].try_into().unwrap_or([0; 4])))
}

/// What the bytes of a file are to stock SQLite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stock {
    /// "file is not a database", or a page size it can't read.
    Refused,
    /// A database of whole pages.
    Content(Content),
    /// A database with a page that is torn, or that the file has not.
    Torn(usize),
}

/// Reads a file as stock SQLite does (btree.c `lockBtree`).
pub fn as_stock(bytes: &[u8]) -> Stock {
    if bytes.is_empty() {
        return Stock::Content(Vec::new());
    }
    let Some(header) = bytes.get(..HEADER) else {
        return Stock::Refused;
    };
    let size = match u32::from(header[16]) << 8 | u32::from(header[17]) << 16 {
        size @ 512..=65_536 if size.is_power_of_two() => size as usize,
        _ => return Stock::Refused,
    };
    if !header.starts_with(b"SQLite format 3\0") || header[19] > 2 {
        return Stock::Refused;
    }
    let number =
        |at: usize| header[at..at + 4].iter().fold(0, |n, &byte| n << 8 | usize::from(byte));
    let stated = number(28);
    let pages = match (stated, header[24..28] == header[92..96]) {
        (1.., true) => stated,
        _ => bytes.len() / size,
    };
    let mut content = Vec::with_capacity(pages.min(1 << 16));
    for at in 0..pages {
        match bytes.get(at * size..(at + 1) * size).and_then(|page| value(at, page, false)) {
            Some(value) => content.push(value),
            None => return Stock::Torn(at + 1),
        }
    }
    Stock::Content(content)
}

/// The committed content, in a transaction of its own.
pub fn read(session: &mut dyn Session, size: usize) -> Outcome<Content> {
    session.begin_read()?;
    let content = read_here(session, size);
    session.end()?;
    content
}

/// The content as the running transaction sees it.
pub fn read_here(session: &mut dyn Session, size: usize) -> Outcome<Content> {
    let len = usize::try_from(session.size()).unwrap_or(usize::MAX);
    if !len.is_multiple_of(size) {
        return Err(Trouble::Wrong(format!("a database of {len} bytes")));
    }
    let mut bytes = vec![0; size];
    let mut content = Vec::with_capacity(len / size);
    for number in 0..len / size {
        let read = session.read(&mut bytes, (number * size) as u64)?;
        match value(number, &bytes, true) {
            Some(value) if read == size => content.push(value),
            _ => return Err(Trouble::Wrong(format!("page {} is torn", number + 1))),
        }
    }
    Ok(content)
}

/// Begins a write transaction and writes what differs from the present content, page 1 always.
pub fn write(session: &mut dyn Session, size: usize, content: &[u32]) -> Outcome<()> {
    session.begin_read()?;
    let old = read_here(session, size)?;
    session.begin_write()?;
    write_over(session, size, &old, content)
}

/// Writes what differs from `old`, in the write transaction that is running.
pub fn write_over(
    session: &mut dyn Session,
    size: usize,
    old: &[u32],
    content: &[u32],
) -> Outcome<()> {
    let mut header = [0; HEADER];
    let counter = match session.read(&mut header, 0)? {
        HEADER => u32::from_be_bytes([header[24], header[25], header[26], header[27]]),
        _ => 0,
    };
    for (number, &value) in content.iter().enumerate() {
        if number == 0 || old.get(number) != Some(&value) {
            let page = page(size, number, value, content.len(), counter.wrapping_add(1));
            session.write(&page, (number * size) as u64)?;
        }
    }
    // SQLite says so to the file where it is sure to be at the end; else its header tells.
    if content.len() < old.len() && content[0].is_multiple_of(2) {
        session.truncate((content.len() * size) as u64)?;
    }
    Ok(())
}

/// Does so many steps of a commit, from the first on.
pub fn begin_commit(session: &mut dyn Session, steps: usize) -> Outcome<()> {
    (0..steps).try_for_each(|step| session.commit_step(step, None))
}

/// Does the steps of a commit that can be undone.
pub fn prepare(session: &mut dyn Session) -> Outcome<()> {
    let steps = undoable(session.commit_steps());
    begin_commit(session, steps)
}

/// Commits what was written.
pub fn finish(session: &mut dyn Session) -> Outcome<()> {
    let steps = session.commit_steps().len();
    begin_commit(session, steps)
}

/// A whole transaction: after success it must survive everything.
pub fn commit(session: &mut dyn Session, size: usize, content: &[u32]) -> Outcome<()> {
    let committed = write(session, size, content).and_then(|()| finish(session));
    let ended = session.end();
    committed.and(ended)
}

/// What a stock process does that opens a database whose name is missing: an empty file.
pub fn make_empty(machine: &Machine) -> std::io::Result<()> {
    let root = machine.process().open_directory(Path::new("/"))?;
    let name = DB.trim_start_matches('/').as_ref();
    root.open(name, OpenMode::CreateNew { permissions: 0o644 }).map(drop)
}
