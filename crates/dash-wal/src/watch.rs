//! Who does what with a database, for whoever looks: what its connections say in the coordination
//! file and in the ring of the last commits, and the locks that they hold.
//!
//! [`watch`] looks from outside: it joins nobody, maps nothing, takes no lock and makes no file.

use crate::frames::frame_size;
use crate::index::{self, IndexHeader, Seen, Slots};
use crate::names::Names;
use crate::options::Stock;
use crate::shared::commits::{RecentCommit, recent};
use crate::shared::coordination::{Copy, Word};
use crate::shared::entries::{Told, living, told};
use crate::shared::locks;
use dash_engine::coordination::read_coordination;
use dash_engine::error::{Context, Operation, Result};
use dash_engine::open::open_if_there;
use dash_storage::{File, FileId, LockKind, OpenMode, SharedMemory, Storage};
use std::path::Path;

/// A connection that has not asked again for so long, in nanoseconds, waits no more. SQLite's busy
/// handler sleeps for 100 ms at most.
pub(crate) const GIVEN_UP: u64 = 500_000_000;

/// A lock that connections of dash have, or wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockName {
    /// WAL_WRITE_LOCK: to commit.
    Writer,
    /// WAL_CKPT_LOCK: to copy pages into the database.
    Checkpoint,
}

/// Who holds a lock, or waits for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockEntry {
    /// Which lock.
    pub lock: LockName,
    /// The process, if it is known.
    pub process: Option<u32>,
    /// Its place in line; 0: it holds the lock.
    pub place: u32,
    /// Since when, by the storage's clock in nanoseconds.
    pub since: Option<u64>,
}

/// Who reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reader {
    /// The process, if it is known.
    pub process: Option<u32>,
    /// A connection of dash; else of stock SQLite.
    pub is_ours: bool,
    /// Since when, by the storage's clock in nanoseconds.
    pub since: Option<u64>,
    /// The last frame of `-wal` that it sees; 0: it reads the database alone.
    pub frame: Option<u32>,
    /// Bytes of `-wal` behind that frame: no checkpoint can copy them before it ends.
    pub kept_bytes: Option<u64>,
}

/// What a database's connections do at a moment. Times are nanoseconds of the storage's clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watched {
    /// When it was looked.
    pub now: u64,
    /// The coordination file: another one says that all was closed meanwhile.
    pub file: FileId,
    /// Commits since the first of the present connections opened the database.
    pub commits: u64,
    /// Connections that have the database open.
    pub connections: usize,
    /// What stock SQLite may do meanwhile.
    pub stock: Stock,
    /// Who has which lock, and who waits for WRITER, in line.
    pub locks: Vec<LockEntry>,
    /// Who reads, of dash and of stock SQLite.
    pub readers: Vec<Reader>,
    /// The last 1,000 commits, the newest one first.
    pub recent: Vec<RecentCommit>,
    /// Bytes of a frame of `-wal`; not known before it has one.
    pub frame_bytes: Option<u64>,
}

/// Looks from outside. `None`: no connection of this engine, in any process, has the database at
/// `path` open.
///
/// # Errors
///
/// Those of reading the two files of shared memory, and of looking at locks.
pub fn watch<S: Storage>(storage: &S, path: &Path) -> Result<Option<Watched>> {
    let (folder, names) = Names::split(path)?;
    let directory = storage.open_directory(folder).during(Operation::Open, folder.display())?;
    let name = names.shown_coordination();
    let open = |name| open_if_there::<S>(&directory, name, OpenMode::Read);
    let which = names.coordination_file();
    let Some(file) = read_coordination::<S>(&directory, which)? else { return Ok(None) };
    let held = file.lock_conflict(locks::ALIVE, LockKind::Exclusive);
    if held.during(Operation::Lock, name)?.is_none() {
        return Ok(None);
    }
    let Some(copy) = Copy::of(&file).during(Operation::Read, name)? else { return Ok(None) };
    let now = storage.monotonic_nanos();
    let living = living(&file, copy.get(Word::EntryHigh), None)?;
    // In memory they are in no file; what stock SQLite left in the index's is not of them.
    let index = match copy.get(Word::InMemory) {
        0 => open(&names.shm)?.map(|file| Seen::of(file, names.shown())).transpose()?,
        _ => None,
    };
    let header = index.as_ref().and_then(Slots::header);
    let taken = file.lock_conflict(locks::WRITER, LockKind::Exclusive);
    let taken = taken.during(Operation::Lock, name)?.is_some();
    Ok(Some(Watched {
        now,
        file: file.id(),
        commits: copy.get(Word::Commits),
        connections: living.len(),
        stock: Stock::of(copy.get(Word::Stock)),
        locks: lock_entries(&copy.words, &living, taken, now),
        readers: readers(&copy.words, &living, index.as_ref())?,
        recent: recent(&copy.words),
        frame_bytes: header.map(|header| frame_size(header.page_size)),
    }))
}

/// Who has which lock, and who waits for WRITER, in line. `taken`: somebody has WRITER.
pub(crate) fn lock_entries<M: SharedMemory>(
    memory: &M,
    living: &[usize],
    taken: bool,
    now: u64,
) -> Vec<LockEntry> {
    let (mut held, mut waits) = (Vec::new(), Vec::new());
    let told = |entry, what| told(memory, entry, what);
    let place = |lock, entry, what, place| LockEntry {
        lock,
        process: u32::try_from(told(entry, Told::Process)).ok(),
        place,
        since: Some(told(entry, what)),
    };
    let holders = [(LockName::Writer, Told::Writes), (LockName::Checkpoint, Told::Checkpoints)];
    for &entry in living {
        let holds = holders.into_iter().filter(|(_, what)| told(entry, *what) != 0);
        held.extend(holds.map(|(lock, what)| place(lock, entry, what, 0)));
        let (since, ticket) = (told(entry, Told::Waits), told(entry, Told::Ticket));
        let asks = now.saturating_sub(told(entry, Told::Asked)) <= GIVEN_UP;
        if since != 0 && (ticket != 0 || asks) {
            waits.push((ticket.wrapping_sub(1), since, entry));
        }
    }
    // Without an entry of its own a connection can't say that it has it.
    if taken && held.iter().all(|held| held.lock != LockName::Writer) {
        held.push(LockEntry { lock: LockName::Writer, process: None, place: 0, since: None });
    }
    // Whoever has a ticket comes first; the others take their chance.
    waits.sort_unstable();
    let line = (1..).zip(waits);
    held.extend(line.map(|(at, (.., entry))| place(LockName::Writer, entry, Told::Waits, at)));
    held
}

/// Who reads, of dash and of stock SQLite.
pub(crate) fn readers<M: SharedMemory, I: Slots>(
    memory: &M,
    living: &[usize],
    index: Option<&I>,
) -> Result<Vec<Reader>> {
    let header = index.and_then(Slots::header);
    let reader = |slot, process, is_ours, since| {
        let mark = index.and_then(|index| index.mark(slot));
        let frame = mark.map(|mark| if slot == index::READ { 0 } else { mark });
        let kept_bytes = frame.map(|frame| kept(header, frame));
        Reader { process, is_ours, since, frame, kept_bytes }
    };
    let (mut readers, mut ours) = (Vec::new(), 0_u16);
    for &entry in living {
        let Some(slot) = usize::try_from(told(memory, entry, Told::Reads))
            .ok()
            .and_then(|told| told.checked_sub(1))
            .filter(|slot| (index::READ..index::SLOTS).contains(slot))
        else {
            continue;
        };
        let process = u32::try_from(told(memory, entry, Told::Process)).ok();
        readers.push(reader(slot, process, true, Some(told(memory, entry, Told::ReadsSince))));
        ours |= 1 << slot;
    }
    for slot in index::READ..index::SLOTS {
        let Some(index) = index else { break };
        let mut stock = index.stock_holders(slot)?;
        match index.others(slot)? {
            // Who is not in the list is in another pid namespace, and has no number here.
            Some(process) if process != 0 && !stock.contains(&process) => stock.push(process),
            // Locks of an open file description, as dash takes them, name no process.
            Some(0) if ours & 1 << slot == 0 => readers.push(reader(slot, None, true, None)),
            _ => {}
        }
        readers.extend(stock.into_iter().map(|process| {
            let process = u32::try_from(process).ok().filter(|process| *process > 0);
            reader(slot, process, false, None)
        }));
    }
    Ok(readers)
}

/// Bytes of `-wal` behind a frame.
fn kept(header: Option<IndexHeader>, frame: u32) -> u64 {
    let header = header.filter(|_| frame != 0);
    header.map_or(0, |header| {
        u64::from(header.mx_frame.saturating_sub(frame)) * frame_size(header.page_size)
    })
}
