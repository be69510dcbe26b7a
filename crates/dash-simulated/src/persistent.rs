//! A mapping of byte-addressable memory. Upholds rule 12.

use std::io;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::thread::{self, ThreadId};

use dash_storage::{Persistence, PersistentMemory, WORD};

use crate::data::Begun;
use crate::errno;
use crate::fault::Effect;
use crate::journal::{Operation, OperationKind};
use crate::key::Key;
use crate::process::Simulated;
use crate::state::State;

/// A mapping of a file's beginning.
pub struct Persistent {
    process: Simulated,
    key: Key,
    inode: u64,
    len: u64,
    /// What is being written back, and the thread that asked for it.
    begun: Mutex<Vec<(ThreadId, Vec<Begun>)>>,
}

impl Persistent {
    /// Part of an operation.
    pub(crate) fn map(
        state: &State,
        process: Simulated,
        (key, inode): (Key, u64),
        len: u64,
    ) -> io::Result<Self> {
        if len == 0 || !len.is_multiple_of(WORD) {
            return Err(errno(libc::EINVAL));
        }
        check_length(state, key, len)?;
        if state.data(key)?.unit() != WORD {
            return Err(errno(libc::EOPNOTSUPP));
        }
        Ok(Self { process, key, inode, len, begun: Mutex::default() })
    }

    /// One operation on words that are there.
    fn operate<T>(
        &self,
        kind: OperationKind,
        range: Range<u64>,
        act: impl FnOnce(&mut State, Option<Effect>) -> io::Result<T>,
    ) -> io::Result<T> {
        let whole = range.start.is_multiple_of(WORD) && range.end.is_multiple_of(WORD);
        if !whole || range.start > range.end || range.end > self.len {
            return Err(errno(libc::EINVAL));
        }
        let operation = Operation::new(kind, self.inode).range(range.clone());
        self.process.machine.operate(self.process.process, operation, |state, effect| {
            check_length(state, self.key, range.end)?;
            act(state, effect)
        })
    }
}

impl PersistentMemory for Persistent {
    fn persistence(&self) -> Persistence {
        Persistence::Synchronous
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn store(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.operate(OperationKind::Store, range(offset, bytes)?, |state, effect| {
            let (done, result) = match effect {
                Some(Effect::LeftOut) => (0, Ok(())),
                Some(Effect::ShortWrite(len, number)) => {
                    (len.min(bytes.len()) / 8 * 8, Err(errno(number)))
                }
                _ => (bytes.len(), Ok(())),
            };
            if done > 0 {
                state.write(self.key, &bytes[..done], offset)?;
            }
            result
        })
    }

    fn load(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.operate(OperationKind::Load, range(offset, buffer)?, |state, _| {
            state.data(self.key)?.read(buffer, offset);
            Ok(())
        })
    }

    fn write_back(&self, range: Range<u64>) -> io::Result<()> {
        self.operate(OperationKind::WriteBack, range.clone(), |state, effect| {
            if effect != Some(Effect::LeftOut) {
                let words = state.data(self.key)?.write_back(&range);
                let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
                begun.push((thread::current().id(), words));
            }
            Ok(())
        })
    }

    fn fence(&self) -> io::Result<()> {
        self.operate(OperationKind::Fence, 0..0, |state, effect| {
            if effect == Some(Effect::LeftOut) {
                return Ok(());
            }
            let own = thread::current().id();
            let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
            for (_, words) in begun.extract_if(.., |(thread, _)| *thread == own) {
                state.data_mut(self.key)?.fence(&words);
            }
            Ok(())
        })
    }
}

/// ENXIO if the file ends before `end`.
fn check_length(state: &State, key: Key, end: u64) -> io::Result<()> {
    if state.data(key)?.len() < end { Err(errno(libc::ENXIO)) } else { Ok(()) }
}

fn range(offset: u64, bytes: &[u8]) -> io::Result<Range<u64>> {
    let end = offset.checked_add(bytes.len() as u64).ok_or_else(|| errno(libc::EINVAL))?;
    Ok(offset..end)
}
