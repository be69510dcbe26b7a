//! Turns: the write lock goes to the connection that has waited longest, in whatever process.
//!
//! A lock that nobody can wait for is taken by whoever asks at the right moment, and that is the
//! connection that has just given it up. So a connection that waits puts a **ticket** into its
//! entry in shared memory and sleeps on that word (a futex, as it is memory of all processes). A
//! connection that gives the lock up looks for the oldest ticket, takes it out, which wakes its
//! owner, and comes back only when the lock has been taken, or after [`PATIENCE`]: it keeps itself
//! from asking again, and nobody from getting the lock.
//!
//! No lock attempt fails because of this. It costs a commit two stores; calls are made only if
//! somebody waits. A dead waiter is known by the lock on its entry; one that does not come
//! (stopped, or late) costs one [`PATIENCE`], then its ticket is gone until it sleeps again. There
//! are no times and no process ids in the words: they would mean something else in another
//! container.
//!
//! Nobody is overlooked: a waiter shows its ticket, then looks whether somebody is writing; a
//! writer says that it is not, then looks for tickets. A version of dash that knows nothing of
//! tickets leaves the words alone; beside it waiting is polling.

use crate::error::{Context, Operation, Result};
use dash_storage::{File, LockKind, SharedMemory};
use std::ops::Range;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How long the one that gave the lock up keeps back for the one that was woken.
pub const PATIENCE: Duration = Duration::from_millis(2);

/// How long somebody is given who has just given the lock up and is about to take it again: it will
/// hand it over. Without that, a waiter would be woken by every such gap, and find the lock taken.
const FREE: Duration = Duration::from_micros(500);

/// Where the words of an engine's shared memory are that tell of its write lock.
#[derive(Debug, Clone, Copy)]
pub struct Line {
    /// 1: somebody holds the lock and will look whether others wait.
    pub writing: usize,
    /// Connections that wait for it, or died of it.
    pub waiting: usize,
    /// Tickets drawn.
    pub tickets: usize,
    /// 1 + the entry that the lock is being handed to; 0: none.
    pub handed_to: usize,
    /// Entries ever used.
    pub high: usize,
    /// Entries there are.
    pub entries: usize,
    /// The process of the first one's owner, by which others name it; 0: it has none.
    pub first_process: usize,
    /// The ticket of the first one's owner, if that sleeps until the lock is handed to it.
    pub first_ticket: usize,
    /// Words from one entry to the next.
    pub stride: usize,
}

/// The byte of the coordination file that the owner of an entry has locked.
pub fn entry(entry: usize) -> Range<u64> {
    let byte = 16 + entry as u64;
    byte..byte + 1
}

const ENTRY: &str = "an entry of the coordination file";

/// Entries of owners that may be dead are tried before a new one is used.
const GUESSES: usize = 4;
static GUESSED: AtomicUsize = AtomicUsize::new(0);

/// Whether an entry has a living owner, other than this connection.
///
/// # Errors
///
/// Those of looking at the lock.
pub fn is_alive<F: File>(file: &F, at: usize) -> Result<bool> {
    let lock = file.lock_conflict(entry(at), LockKind::Exclusive).during(Operation::Lock, ENTRY)?;
    Ok(lock.is_some())
}

impl Line {
    /// The entries that were ever used, by the word that tells so.
    pub fn used(&self, high: u64) -> Range<usize> {
        0..usize::try_from(high).unwrap_or(self.entries).min(self.entries)
    }

    /// Takes a free entry for a connection's life; what it holds beside the ticket is of a former
    /// owner. The words say which are free, so that it costs no call for each connection that
    /// there is; they don't say which owners were killed, so a few of the others are tried as well.
    ///
    /// # Errors
    ///
    /// Those of the lock.
    pub fn register<F: File>(&self, file: &F, memory: &F::Memory) -> Result<Option<usize>> {
        let high = self.used(memory.word(self.high).load(SeqCst)).end;
        let is_free = |at: &usize| memory.word(self.process(*at)).load(SeqCst) == 0;
        let first = GUESSED.fetch_add(GUESSES, Relaxed);
        let guesses = (0..GUESSES.min(high)).map(|number| first.wrapping_add(number) % high);
        for at in (0..high).filter(is_free).chain(guesses).chain(high..self.entries) {
            let got = file.try_lock(entry(at), LockKind::Exclusive);
            if got.during(Operation::Lock, ENTRY)? {
                self.clear(memory, at);
                memory.word(self.high).fetch_max(at as u64 + 1, SeqCst);
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    /// Says that an entry is given back, before its lock is.
    pub fn leave<M: SharedMemory>(&self, memory: &M, entry: usize) {
        memory.word(self.process(entry)).store(0, SeqCst);
    }

    fn process(&self, entry: usize) -> usize {
        self.first_process + entry * self.stride
    }

    /// The ticket of an entry's owner, if it sleeps.
    pub fn ticket(&self, entry: usize) -> usize {
        self.first_ticket + entry * self.stride
    }

    /// Takes a ticket out: one does, its owner or the connection that hands over.
    fn take<M: SharedMemory>(&self, memory: &M, entry: usize, ticket: u64) -> bool {
        let word = memory.word(self.ticket(entry));
        let taken = word.compare_exchange(ticket, 0, SeqCst, SeqCst).is_ok();
        if taken {
            memory.word(self.waiting).fetch_sub(1, SeqCst);
        }
        taken
    }

    /// Tells the connection that handed the lock over that it was taken.
    pub fn acknowledge<M: SharedMemory>(&self, memory: &M) {
        let handed_to = memory.word(self.handed_to);
        if handed_to.load(SeqCst) != 0 {
            handed_to.store(0, SeqCst);
            memory.wake(self.handed_to);
        }
    }

    /// The dead owner of an entry waits no more.
    pub fn clear<M: SharedMemory>(&self, memory: &M, entry: usize) {
        let ticket = memory.word(self.ticket(entry)).load(SeqCst);
        if ticket != 0 {
            self.take(memory, entry, ticket);
        }
    }

    /// The oldest ticket and its place, but for this connection's own entry.
    fn first<M: SharedMemory>(&self, memory: &M, own: Option<usize>) -> Option<(u64, usize)> {
        self.used(memory.word(self.high).load(SeqCst))
            .filter(|&entry| Some(entry) != own)
            .map(|entry| (memory.word(self.ticket(entry)).load(SeqCst), entry))
            .filter(|&(ticket, _)| ticket != 0)
            .min()
    }

    /// After the lock was given up: if somebody waits for it, lets the first in line out and
    /// returns when the lock has been taken, at the latest after [`PATIENCE`].
    ///
    /// # Errors
    ///
    /// Those of `is_alive`, which tells whether an entry has a living owner.
    pub fn hand_over<M: SharedMemory>(
        &self,
        memory: &M,
        own: Option<usize>,
        is_alive: impl Fn(usize) -> Result<bool>,
    ) -> Result<Handed> {
        if memory.word(self.waiting).load(SeqCst) == 0 {
            return Ok(Handed::NobodyWaits);
        }
        let handed_to = memory.word(self.handed_to);
        // Each entry at most once: tickets may be written here by somebody who means no good.
        for _ in 0..self.entries {
            let Some((ticket, entry)) = self.first(memory, own) else {
                break;
            };
            let alive = is_alive(entry)?;
            let mark = entry as u64 + 1;
            handed_to.store(mark, SeqCst);
            // An owner that takes its ticket out itself is awake and asks by itself.
            if self.take(memory, entry, ticket) && alive {
                memory.wake(self.ticket(entry));
                if memory.wait(self.handed_to, mark, PATIENCE) {
                    return Ok(Handed::Taken);
                }
                let _ = handed_to.compare_exchange(mark, 0, SeqCst, SeqCst);
                return Ok(Handed::Missed);
            }
            let _ = handed_to.compare_exchange(mark, 0, SeqCst, SeqCst);
        }
        Ok(Handed::NobodyWaits)
    }
}

impl Line {
    /// The same without holding back: wakes the first in line that is alive, and returns at once.
    ///
    /// # Errors
    ///
    /// Those of `is_alive`.
    pub fn wake_first<M: SharedMemory>(
        &self,
        memory: &M,
        own: Option<usize>,
        is_alive: impl Fn(usize) -> Result<bool>,
    ) -> Result<()> {
        if memory.word(self.waiting).load(SeqCst) == 0 {
            return Ok(());
        }
        for _ in 0..self.entries {
            let Some((ticket, entry)) = self.first(memory, own) else { break };
            let alive = is_alive(entry)?;
            if self.take(memory, entry, ticket) && alive {
                memory.wake(self.ticket(entry));
                break;
            }
        }
        Ok(())
    }
}

/// What became of the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handed {
    /// Nobody waits for it.
    NobodyWaits,
    /// The first in line has it.
    Taken,
    /// The first in line did not come.
    Missed,
}

/// A connection's place where it waits for the lock; it keeps nothing of it open.
pub struct Turn<M: SharedMemory> {
    /// The shared memory, as long as the connection is open.
    pub memory: Weak<M>,
    /// The words in it.
    pub line: Line,
    /// The connection's entry.
    pub entry: usize,
}

impl<M: SharedMemory> Turn<M> {
    /// That of the owner of an entry.
    pub fn of(memory: &Arc<M>, line: Line, entry: usize) -> Self {
        Self { memory: Arc::downgrade(memory), line, entry }
    }

    /// Waits for the lock to be handed over, or free; whether that was so before `time` was over. A
    /// `ticket` of 0 becomes a new one, behind all others. `None`, at once: the connection is
    /// closed.
    pub fn wait(&self, ticket: &mut u64, time: Duration) -> Option<bool> {
        let (memory, line) = (&*self.memory.upgrade()?, &self.line);
        if *ticket == 0 {
            // Odd, so that its lower half is not that of "none".
            *ticket = memory.word(line.tickets).fetch_add(1, SeqCst) << 1 | 1;
        }
        memory.word(line.waiting).fetch_add(1, SeqCst);
        memory.word(line.ticket(self.entry)).store(*ticket, SeqCst);
        let free = memory.word(line.writing).load(SeqCst) == 0;
        let time = if free { time.min(FREE) } else { time };
        memory.wait(line.ticket(self.entry), *ticket, time);
        Some(!line.take(memory, self.entry, *ticket) || free)
    }
}
