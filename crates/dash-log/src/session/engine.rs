//! What a session asks of its engine: what only that knows of its commits.

use super::{Leader, Session};
use dash_engine::error::{Error, Result};
use dash_storage::{File, Storage};

/// What the leader has that an engine's connections share.
pub type LeaderOf<E> = Leader<<<E as Engine>::Storage as Storage>::File, <E as Engine>::Kept>;

/// What the engine's connections share with other processes.
pub type MemoryOf<E> = <<<E as Engine>::Storage as Storage>::File as File>::Memory;

/// What becomes durable at once, by the engine's own count: empty if it is all in the log, and was
/// not flushed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batch {
    /// Bytes of a page.
    pub page: u32,
    /// The first that is in no record.
    pub first: u32,
    /// The last one.
    pub last: u32,
}

/// An engine whose commits go to the log.
pub trait Engine: Sized {
    /// Where its files are.
    type Storage: Storage;

    /// What it makes differences against.
    type Kept: Default;

    /// Its session.
    fn session(&mut self) -> &mut Session<Self::Storage, Self::Kept>;

    /// Takes the lock of the log, if it is free; one that is killed loses it.
    fn lock(&self) -> Result<bool>;

    /// Gives it up.
    fn unlock(&self) -> Result<()>;

    /// Fails if a flush failed that nothing could make good.
    fn check_sound(&self) -> Result<()>;

    /// Takes the name fence away, durably, if it stands: what the log says counts no more.
    fn end_fence(&mut self) -> Result<()>;

    /// Makes durable what has to be so before the first record, and keeps out whoever does not know
    /// the log.
    fn guard(&mut self) -> Result<()>;

    /// A session could not be begun: `Poisoned` where a flush has failed that nothing else makes
    /// good.
    fn check_begun(&self, error: &Error) -> Result<()>;

    /// The log was removed while the database is open.
    fn lost(&self) -> Error;

    /// Whether everything up to `upto` is in the log, or durable without it.
    fn is_written(&self, upto: u32) -> bool;

    /// It is so up to `last`, at least.
    fn note_written(&self, last: u32);

    /// What is to be made durable now: all that is visible and is not, `upto` among it.
    fn batch(&mut self, upto: u32) -> Result<Batch>;

    /// Whether it becomes durable without the log, for there is none, there need be none yet, or it
    /// is too much for a record.
    fn goes_without_log(&mut self, batch: Batch) -> bool;

    /// Makes a record of it; answers how many commits end in it. `None`: it is not to be in the
    /// log.
    fn build(&mut self, leader: &mut LeaderOf<Self>, batch: Batch) -> Result<Option<u32>>;

    /// The log is about to have a commit that the engine's own files may lack.
    fn seal(&mut self) -> Result<()>;

    /// Says of a record what is the engine's, before the log's own words do.
    fn publish(memory: &MemoryOf<Self>, kept: &Self::Kept);

    /// The batch became durable by a record of so many bytes, padding included; 0: by those before.
    fn note_record(&mut self, batch: Batch, commits: u32, bytes: u64);

    /// Makes everything up to `last` durable without the log.
    fn flush_elsewhere(&mut self, leader: &mut LeaderOf<Self>, last: u32) -> Result<()>;

    /// Makes what this connection has written durable without the log, while another one has the
    /// log's lock, and perhaps for ever. Nobody is told of it.
    fn flush_beside_leader(&mut self) -> Result<()>;
}
