//! The write transaction's beginning: one writer, on the newest state, of the two files that the
//! names stand for; and its turn for the write lock (see [`dash_engine::handover`]).
//!
//! Housekeeping (see [`crate::shared::housekeeping`]) is waited for. A stopped process keeps its
//! locks: after [`PATIENCE`] the answer is `Busy`, and for [`GRUDGE`] it is given at once.

use crate::connection::state::Connection;
use crate::connection::transaction::Transaction;
use crate::format::SEQUENCE_MAX;
use crate::mutation::{Mutation, broken};
use crate::names::access::give_access;
use crate::names::exchange::finish_renames;
use crate::shared::locks::{self, LockLevel};
use crate::shared::state::ShadowCondition;
use dash_engine::error::{Context, Error, Operation, Result, scribbled};
use dash_engine::handover::{Handed, Turn};
use dash_storage::{File, LockKind, Metadata, Storage};
use std::ops::Range;
use std::time::Duration;

/// How long housekeeping is waited for: longer than any one write takes on a slow device.
const PATIENCE: Duration = Duration::from_secs(10);

/// For how long it is not waited for again when that was in vain.
const GRUDGE: Duration = Duration::from_secs(60);

/// How often a waiting connection looks again.
const PAUSE: Duration = Duration::from_micros(100);

impl<S: Storage> Connection<S> {
    /// Whether some connection, dash or stock, is in a write transaction.
    pub fn is_reserved(&self) -> Result<bool> {
        Ok(self.view.level >= LockLevel::Reserved
            || self
                .pair
                .coordination
                .file()
                .lock_conflict(locks::WRITER, LockKind::Shared)
                .during(Operation::Lock, self.pair.names.shown_coordination())?
                .is_some())
    }

    /// The one write transaction. SHADOW-1: under the WRITER lock, the snapshot is the newest, no
    /// dead writer's work is left, and the two names stand for the two inodes.
    pub(crate) fn begin_write(&mut self) -> Result<()> {
        if let Some(reason) = &self.debts.poisoned {
            return Err(Error::Poisoned(reason.clone()));
        }
        let got = self.writer_past_housekeeping()?;
        if !got && !broken(Mutation::WriterLockLost) {
            return Err(Error::Busy);
        }
        let begun = self.check_begin();
        match begun {
            Ok(()) => {
                self.pair.coordination.acknowledge_handover();
                self.pair.coordination.tell_writing(self.pair.storage.monotonic_nanos());
                self.transaction = Some(Transaction::new(self.view.snapshot.size));
                Ok(())
            }
            Err(error) => {
                self.release_exclusion()?;
                self.pair.coordination.release_writer()?;
                Err(error)
            }
        }
    }

    pub(crate) fn check_begin(&mut self) -> Result<()> {
        let stale = self.pair.coordination.current() != self.view.current;
        if stale && !broken(Mutation::StaleSnapshotMayWrite) {
            return Err(Error::BusySnapshot);
        }
        if self.pair.coordination.in_flight() != 0 && !broken(Mutation::DeadWriterIgnored) {
            // It looks at the newest state; this connection's snapshot stays what it is.
            let mine = (self.view.current, self.view.snapshot);
            let finished = self.finish_dead_writer();
            (self.view.current, self.view.snapshot) = mine;
            finished?;
        }
        let stale = self.pair.coordination.current() != self.view.current;
        if stale && !broken(Mutation::StaleSnapshotMayWrite) {
            return Err(Error::BusySnapshot);
        }
        self.check_kept_limit()?;
        // A new shadow is no newer state: what was read so far is still the newest.
        self.reload_if_pair_changed()?;
        if self.view.current.sequence >= SEQUENCE_MAX {
            return Err(scribbled(
                self.pair.names.shown_coordination(),
                "it counts more commits than can have been made",
            ));
        }
        self.check_names()
    }

    /// Before the other copy is made as large as the current one, which needs a look at that: the
    /// size comes from shared memory.
    pub(crate) fn check_size(&self) -> Result<()> {
        let (db, size) = (self.pair.names.shown(), self.view.snapshot.size);
        if size == 0 {
            return Ok(());
        }
        let len = self.current_file()?.metadata().during(Operation::Stat, db)?.len;
        if size <= len {
            return Ok(());
        }
        let what = format!("it says that {db} holds {size} bytes, but that ends at {len}");
        Err(scribbled(self.pair.names.shown_coordination(), &what))
    }

    /// SHADOW-2: both names still stand for the two inodes.
    pub(crate) fn check_names(&mut self) -> Result<()> {
        let id = |slot: usize| self.pair.files[slot].as_ref().map(|file| file.id());
        let (current, other) = (id(self.view.current.slot), id(1 - self.view.current.slot));
        let ids = |named: &[Option<Metadata>; 2]| named.map(|found| found.map(|found| found.id));
        let mut named = self.pair.named()?;
        if ids(&named) != [current, other]
            && finish_renames::<S>(&self.pair.directory, &self.pair.names)?
        {
            named = self.pair.named()?;
        }
        let [db, shadow] = ids(&named);
        if db != current {
            return Err(Error::Moved(format!(
                "{} is not the file that was opened: it was renamed, removed or replaced; close all connections and open it again",
                self.pair.names.shown()
            )));
        }
        if shadow != other || other.is_none() {
            if shadow.is_some() && other.is_some() {
                return Err(Error::Moved(format!(
                    "{} is not the file that was opened; remove it, or close all connections and open the database again",
                    self.pair.names.shadow.to_string_lossy()
                )));
            }
            self.pair.coordination.set_condition(ShadowCondition::Rebuild);
        }
        match named {
            [Some(db), Some(shadow)] => self.keep_access(&db, &shadow),
            _ => Ok(()),
        }
    }

    /// Both copies take turns at being `app.db`: whoever may use the one, also after a chmod or
    /// chown, may use the other. Where this process can't see to that, or the shadow is a
    /// stranger's by now, there is another one.
    fn keep_access(&mut self, db: &Metadata, shadow: &Metadata) -> Result<()> {
        let seen = Some([db, shadow].map(|file| (file.permissions, file.owner, file.group)));
        // At each begin: once the copies have changed places, nobody can tell which list is new.
        let is_alike = db.has_access_of(shadow) && self.has_one_list()?;
        if is_alike || self.memo.access_seen == seen {
            return Ok(());
        }
        if self.give_access()? {
            self.memo.access_seen = seen;
        } else {
            self.pair.coordination.set_condition(ShadowCondition::Rebuild);
        }
        Ok(())
    }

    /// Whether both copies have the same access control list, which may change where the permission
    /// bits stay.
    fn has_one_list(&self) -> Result<bool> {
        match self.pair.files.each_ref().map(Option::as_deref) {
            [Some(one), Some(other)] => {
                one.has_list_of(other).during(Operation::Stat, self.pair.names.shown())
            }
            _ => Ok(true),
        }
    }

    /// Gives the shadow the rights of `app.db`; whether that can be.
    fn give_access(&self) -> Result<bool> {
        let copies = [self.shadow_slot(), self.view.current.slot];
        match copies.map(|slot| self.pair.files[slot].as_deref()) {
            [Some(shadow), Some(current)] => {
                let given = give_access(shadow, current);
                given.during(Operation::Open, self.pair.names.shown_shadow())
            }
            _ => Ok(true),
        }
    }

    /// Takes WRITER, past housekeeping; `false` if somebody writes.
    pub(crate) fn writer_past_housekeeping(&self) -> Result<bool> {
        let given_back = self.pair.coordination.given_back();
        let attempt = || self.pair.coordination.try_writer();
        Ok(attempt()? || self.past_housekeeping(&locks::KEEPS_WRITER, given_back, attempt)?)
    }

    /// An attempt has failed: makes it again until it is not housekeeping that is in the way.
    /// `given_back` is what was read before it.
    pub(crate) fn past_housekeeping(
        &self,
        kept: &Range<u64>,
        mut given_back: u64,
        attempt: impl Fn() -> Result<bool>,
    ) -> Result<bool> {
        let begun = self.pair.storage.monotonic_nanos();
        let since = |at| Duration::from_nanos(self.pair.storage.monotonic_nanos().wrapping_sub(at));
        let grudge = self.gave_up_at.get().is_some_and(|at| since(at) < GRUDGE);
        while self.pair.coordination.met_housekeeping(kept, given_back)? {
            if self.pair.coordination.given_back() == given_back {
                if grudge {
                    return Ok(false);
                }
                if since(begun) > PATIENCE {
                    self.gave_up_at.set(Some(self.pair.storage.monotonic_nanos()));
                    return Ok(false);
                }
                if *kept == locks::KEEPS_SHADOW {
                    self.pair.coordination.want_shadow(true);
                }
                self.pair.storage.sleep(PAUSE);
            }
            given_back = self.pair.coordination.given_back();
            if attempt()? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Where this connection can wait for its turn. `None`: it has no reader entry, and polls.
    pub fn turn(&self) -> Option<Turn<<S::File as File>::Memory>> {
        self.pair.coordination.turn()
    }

    /// After WRITER was given up: if somebody waits for it, lets the first in line out and returns
    /// when WRITER has been taken, at the latest after two milliseconds.
    pub fn hand_over(&mut self) {
        match self.pair.coordination.hand_over() {
            Ok(Handed::Taken) => self.statistics.handovers += 1,
            Ok(Handed::Missed) => self.statistics.missed_handovers += 1,
            // A waiter that nobody wakes comes back by itself.
            Ok(Handed::NobodyWaits) | Err(_) => {}
        }
    }
}
