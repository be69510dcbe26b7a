//! Who reads without a reader entry, and who keeps the next commit waiting: processes with stock
//! SQLite lock its SHARED range of the copy that they read, and so do connections of dash that may
//! only read. Nobody puts anything aside for them.

use crate::connection::state::Connection;
use crate::shared::locks;
use crate::shared::readers::Reader;
use dash_engine::error::{Context, Operation, Result};
use dash_storage::{File, LockKind, Storage};
use std::time::Duration;

/// Who has SQLite's SHARED range of a file locked.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Holders {
    /// The processes with stock SQLite; `None`: of another pid namespace.
    pub stock: Vec<Option<u32>>,
    /// Somebody has it whose locks have no owner, as those of dash.
    pub ours: bool,
}

impl Holders {
    /// Those of a file. Of processes of other pid namespaces one is known at most, and only where
    /// nobody came before it.
    pub fn of<F: File>(file: &F, name: &str) -> Result<Self> {
        let owners = file.lock_owners(locks::SHARED).during(Operation::Lock, name)?;
        let mut stock: Vec<_> =
            owners.into_iter().filter_map(|it| u32::try_from(it).ok()).collect();
        let first = file.lock_conflict(locks::SHARED, LockKind::Exclusive);
        let first = first.during(Operation::Lock, name)?;
        let (ours, elsewhere) = (first == Some(0), first.is_some_and(|first| first < 0));
        // Where `/proc` is not mounted.
        let named = first.and_then(|first| u32::try_from(first).ok()).filter(|first| *first != 0);
        stock.extend(named.filter(|first| !stock.contains(first)));
        let mut stock: Vec<_> = stock.into_iter().map(Some).collect();
        if elsewhere {
            stock.push(None);
        }
        Ok(Self { stock, ours })
    }
}

/// As many are named.
const NAMED: usize = 4;

/// Words for those in the way; of many the first ones.
fn named(mut who: Vec<String>) -> String {
    let more = who.len().saturating_sub(NAMED);
    if more > 0 {
        who.truncate(NAMED);
        who.push(format!("{more} more"));
    }
    who.join("; ")
}

/// A process, in words.
pub(crate) fn process(number: Option<u64>) -> String {
    match number {
        None => "process 0 (of another pid namespace)".to_owned(),
        Some(own) if own == u64::from(std::process::id()) => format!("in this process, {own}"),
        Some(number) => format!("process {number}"),
    }
}

impl<S: Storage> Connection<S> {
    /// The processes that read with stock SQLite, once for each copy; `None`: of another pid
    /// namespace. It reads the locks of the whole machine.
    ///
    /// # Errors
    ///
    /// Those of looking at locks.
    pub fn stock_readers(&self) -> Result<Vec<Option<u32>>> {
        let mut all = Vec::new();
        for slot in [0, 1] {
            if let Some(file) = &self.pair.files[slot] {
                all.extend(Holders::of(&**file, &self.role(slot))?.stock);
            }
        }
        Ok(all)
    }

    /// Who reads the copy that the next commit goes to and keeps it waiting, in words, with what to
    /// do; `since`: for how long it has been waiting. `None`: nobody is left, or known.
    ///
    /// # Errors
    ///
    /// Those of looking at locks.
    pub fn waits_for(&self, since: Duration) -> Result<Option<String>> {
        let slot = self.shadow_slot();
        let Some(file) = &self.pair.files[slot] else { return Ok(None) };
        let holders = Holders::of(&**file, &self.role(slot))?;
        let stock = holders
            .stock
            .iter()
            .map(|number| format!("stock SQLite, {}", process(number.map(u64::from))));
        let maps = self.pair.coordination.others_that_map(slot)?.into_iter().map(|reader| {
            format!("dash with mapped pages (mmap_size), {}", self.process_of(&reader))
        });
        let mut who: Vec<_> = stock.chain(maps).collect();
        if holders.ours {
            who.push("dash on a connection that may only read".to_owned());
        }
        if who.is_empty() {
            return Ok(None);
        }
        Ok(Some(format!(
            "{} can't be committed to: for {} s the commit has waited for readers of the state before the newest one \
             ({}). In mode shadow such a reader keeps all commits but the next one waiting: end its transaction (reset or \
             finalize its statements), or end the process. In mode wal readers keep no commit waiting",
            self.pair.names.shown(),
            since.as_secs(),
            named(who),
        )))
    }

    /// The processes that say to have the write lock, for how long, and the byte of the
    /// coordination file that the connection has locked; but for this one. It makes no system call,
    /// and so whoever was killed may be among them.
    #[must_use]
    pub fn writers(&self) -> Vec<(u32, Duration, u64)> {
        let now = self.pair.storage.monotonic_nanos();
        let age = |since| Duration::from_nanos(now.saturating_sub(since));
        let writers = self.pair.coordination.writers().into_iter();
        writers.map(|(process, since, byte)| (process, age(since), byte)).collect()
    }

    /// The process of a reader, in words.
    pub(crate) fn process_of(&self, reader: &Reader) -> String {
        let is_here = reader.namespace == self.pair.storage.pid_namespace();
        process(is_here.then_some(reader.process))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_the_first_ones_are_named() {
        let who = |count: u32| named((1..=count).map(|number| number.to_string()).collect());
        assert_eq!(who(1), "1");
        assert_eq!(who(4), "1; 2; 3; 4");
        assert_eq!(who(1000), "1; 2; 3; 4; 996 more");
    }
}
