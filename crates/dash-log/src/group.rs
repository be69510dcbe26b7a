//! One flush for all who commit meanwhile (WALDIO's group synchronization), by helping: whoever
//! gets the lock of the log writes and flushes what everybody has committed, and those who don't
//! get it wait until a flush has ended, then look whether theirs was in it.
//!
//! Two words of memory that all processes share; the lock is the engine's. Nobody is overlooked
//! (LOG-6): one that waits says so first, and looks again whether somebody leads afterwards; one
//! that led gives the lock up first, and tells those who wait afterwards. A leader that is killed
//! tells nobody, so each wait has a limit.

use dash_engine::error::{Error, Operation, Result};
use dash_storage::SharedMemory;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

/// How long anybody waits before looking again by itself.
pub const WAIT: Duration = Duration::from_millis(5);

/// Flushes that one leads without its own commit being in them, before that is an error.
const TRIES: u32 = 16;

/// Where the words are in an engine's shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Group {
    /// Flushes ended, of any success: what waiters sleep on.
    pub rounds: usize,
    /// Somebody waits, or died of it, for the round before this one to end; 0: nobody ever did.
    pub awaited: usize,
}

/// What somebody waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen(u64);

/// What came of a look at the commit and at the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// The commit is durable; nobody was led.
    Durable,
    /// The lock was free: it was taken, what is committed was flushed, and it was given up.
    Led {
        /// Whether the commit is durable now.
        durable: bool,
    },
    /// Somebody else leads.
    Busy,
}

impl Group {
    /// Says that somebody is about to wait. It looks again then, and if somebody leads, waits for
    /// what this returns.
    pub fn announce<M: SharedMemory>(&self, memory: &M) -> Seen {
        let seen = memory.word(self.rounds).load(SeqCst);
        // The greatest, so that one who is late hides no other.
        memory.word(self.awaited).fetch_max(seen.wrapping_add(1), SeqCst);
        Seen(seen)
    }

    /// Waits until a round has ended since [`announce`](Self::announce); `false` if `time` was over
    /// first.
    pub fn wait<M: SharedMemory>(&self, memory: &M, seen: Seen, time: Duration) -> bool {
        memory.wait(self.rounds, seen.0, time)
    }

    /// Ends a round, with the lock given up: wakes all who wait.
    pub fn finish<M: SharedMemory>(&self, memory: &M) {
        let ended = memory.word(self.rounds).fetch_add(1, SeqCst);
        if memory.word(self.awaited).load(SeqCst) > ended {
            memory.wake(self.rounds);
        }
    }

    /// Returns when a commit is durable, whoever flushed it. `turn` looks whether it is; if not, it
    /// tries the lock, leads if it gets it, and gives it up.
    ///
    /// # Errors
    ///
    /// Those of `turn`; those who wait are told then, too. And an error if `turn` leads again and
    /// again, and its commit is never durable.
    pub fn commit<M: SharedMemory>(
        &self,
        memory: &M,
        mut turn: impl FnMut() -> Result<Turn>,
    ) -> Result<()> {
        let mut in_vain = 0;
        let mut announced = None;
        loop {
            match turn() {
                Ok(Turn::Durable) => return Ok(()),
                Ok(Turn::Led { durable }) => {
                    self.finish(memory);
                    if durable {
                        return Ok(());
                    }
                    announced = None;
                    in_vain += 1;
                    if in_vain == TRIES {
                        return Err(never_durable());
                    }
                }
                Ok(Turn::Busy) => {
                    // The first time it looks again instead.
                    if let Some(seen) = announced {
                        self.wait(memory, seen, WAIT);
                    }
                    announced = Some(self.announce(memory));
                }
                Err(error) => {
                    self.finish(memory);
                    return Err(error);
                }
            }
        }
    }
}

fn never_durable() -> Error {
    Error::Io {
        operation: Operation::Flush,
        name: "the log".to_owned(),
        source: std::io::Error::other("a commit was in none of the flushes that were to have it"),
    }
}
