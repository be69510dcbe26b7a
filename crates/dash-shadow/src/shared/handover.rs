//! Turns: the write lock goes to whoever has waited longest, in whatever process.
//!
//! A lock that nobody can wait for is taken by whoever asks at the right moment, and that is who
//! has just given it up. So a connection that waits puts a **ticket** into its reader entry and
//! sleeps on that word (a futex, as the coordination file is memory of all processes). Who gives
//! WRITER up, looks for the oldest ticket, takes it out, which wakes its owner, and comes back only
//! when WRITER has been taken, or after [`PATIENCE`]: it keeps itself from asking again, and nobody
//! from getting the lock.
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
use crate::shared::coordination::{Coordination, ENTRIES, ENTRY, MAX_READERS, Word};
use crate::shared::locks;
use dash_storage::{File, LockKind, SharedMemory};
use std::sync::Weak;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

/// How long the one who gave the lock up keeps back for the one that was woken.
const PATIENCE: Duration = Duration::from_millis(2);

/// How long somebody is given who has just given the lock up and is about to take it again: it will
/// hand it over. Without that, who waits would be woken by every such gap, and find the lock taken.
const FREE: Duration = Duration::from_micros(500);

/// In a reader entry: the ticket of its owner, if that sleeps until WRITER is handed to it.
const TICKET: usize = 2;

fn ticket_word(entry: usize) -> usize {
    ENTRIES + entry * ENTRY + TICKET
}

fn head<M: SharedMemory>(memory: &M, word: Word) -> &AtomicU64 {
    memory.word(word as usize)
}

/// Takes a ticket out: one does, its owner or who hands over.
fn take<M: SharedMemory>(memory: &M, entry: usize, ticket: u64) -> bool {
    let taken = memory.word(ticket_word(entry)).compare_exchange(ticket, 0, SeqCst, SeqCst).is_ok();
    if taken {
        head(memory, Word::Waiting).fetch_sub(1, SeqCst);
    }
    taken
}

/// A connection's place where it waits for WRITER; it keeps nothing of it open.
pub struct Turn<M: SharedMemory> {
    pub(crate) memory: Weak<M>,
    pub(crate) entry: usize,
}

impl<M: SharedMemory> Turn<M> {
    /// Waits for WRITER to be handed over, or free; whether that was so before `time` was over. A
    /// `ticket` of 0 becomes a new one, behind all others. `None`, at once: the connection is
    /// closed.
    pub fn wait(&self, ticket: &mut u64, time: Duration) -> Option<bool> {
        let memory = &*self.memory.upgrade()?;
        if *ticket == 0 {
            // Odd, so that its lower half is not that of "none".
            *ticket = head(memory, Word::Tickets).fetch_add(1, SeqCst) << 1 | 1;
        }
        head(memory, Word::Waiting).fetch_add(1, SeqCst);
        memory.word(ticket_word(self.entry)).store(*ticket, SeqCst);
        let free = head(memory, Word::Writing).load(SeqCst) == 0;
        let time = if free { time.min(FREE) } else { time };
        memory.wait(ticket_word(self.entry), *ticket, time);
        Some(!take(memory, self.entry, *ticket) || free)
    }
}

/// What became of the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Handed {
    NobodyWaits,
    Taken,
    Missed,
}

impl<F: File> Coordination<F> {
    /// Tries to take WRITER.
    pub(crate) fn try_writer(&self) -> Result<bool> {
        let name = "the coordination file";
        let got =
            self.file.try_lock(locks::WRITER, LockKind::Exclusive).during(Operation::Lock, name)?;
        if got {
            self.word(Word::Writing).store(1, SeqCst);
        }
        Ok(got)
    }

    /// Gives WRITER up.
    pub(crate) fn release_writer(&self) -> Result<()> {
        self.word(Word::Writing).store(0, SeqCst);
        self.file.unlock(locks::WRITER).during(Operation::Lock, "the coordination file")
    }

    /// Tells who handed WRITER over that it was taken.
    pub(crate) fn came(&self) {
        if self.word(Word::HandedTo).load(SeqCst) != 0 {
            self.word(Word::HandedTo).store(0, SeqCst);
            self.memory.wake(Word::HandedTo as usize);
        }
    }

    /// A dead owner of this connection's reader entry waits no more.
    pub(crate) fn clear_ticket(&self, entry: usize) {
        let ticket = self.memory.word(ticket_word(entry)).load(SeqCst);
        if ticket != 0 {
            take(&*self.memory, entry, ticket);
        }
    }

    /// The oldest ticket and its place.
    fn first_in_line(&self) -> Option<(u64, usize)> {
        let high = usize::try_from(self.word(Word::ReaderHigh).load(SeqCst)).unwrap_or(MAX_READERS);
        (0..high.min(MAX_READERS))
            .filter(|&entry| Some(entry) != self.entry)
            .map(|entry| (self.memory.word(ticket_word(entry)).load(SeqCst), entry))
            .filter(|&(ticket, _)| ticket != 0)
            .min()
    }

    pub(crate) fn hand_over(&self) -> Result<Handed> {
        if self.word(Word::Waiting).load(SeqCst) == 0 {
            return Ok(Handed::NobodyWaits);
        }
        let handed_to = self.word(Word::HandedTo);
        // Each entry at most once: tickets may be written here by somebody who means no good.
        for _ in 0..MAX_READERS {
            let Some((ticket, entry)) = self.first_in_line() else {
                break;
            };
            let owner = self
                .file
                .lock_conflict(locks::reader(entry), LockKind::Exclusive)
                .during(Operation::Lock, "a reader entry")?;
            let mark = entry as u64 + 1;
            handed_to.store(mark, SeqCst);
            // Who takes its ticket out itself is awake and asks by itself.
            if take(&*self.memory, entry, ticket) && owner.is_some() {
                self.memory.wake(ticket_word(entry));
                if self.memory.wait(Word::HandedTo as usize, mark, PATIENCE) {
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
