//! Publishing: the atomic exchange, and what readers are told.

use crate::connection::last_commit::LastCommit;
use crate::connection::state::Connection;
use crate::connection::transaction::Transaction;
use crate::connection::transaction::stage::Stage;
use crate::format::Protocol;
use crate::format::header::{FENCE_OFFSET, Header, Marks};
use crate::mutation::{Mutation, broken};
use crate::names::exchange;
use crate::shared::locks::LockLevel;
use crate::shared::state::{Current, ShadowCondition, Snapshot};
use dash_engine::error::{Context, Operation, Result};
use dash_engine::io::read_header;
use dash_engine::ranges::RangeSet;
use dash_storage::{Directory, File, Storage};

impl<S: Storage> Connection<S> {
    /// Undoes the transaction now, and starts it over empty: SQLite will roll back.
    pub(crate) fn abandon(&mut self) {
        // A failure here has poisoned the connection; the first error is the one to report.
        drop(self.discard());
        if self.view.level >= LockLevel::Reserved {
            self.transaction = Some(Transaction::new(self.view.snapshot.size));
        }
    }

    /// Atomic exchange: makes the prepared state the current one, for dash at once, for stock
    /// readers by name. Without something prepared it does nothing. Under synchronous=OFF no flush
    /// came before: the commit then survives a crash of the process, not of the machine.
    pub fn publish(&mut self) -> Result<()> {
        let stage = match &self.transaction {
            Some(transaction) if !transaction.is_clean() => transaction.stage,
            _ => return Ok(()),
        };
        if !stage.is_prepared() {
            // SQLite never writes between FCNTL_SYNC and COMMIT_PHASETWO without another
            // FCNTL_SYNC; if a host does, its pages are not lost.
            self.prepare(None)?;
            self.flush()?;
        }
        let stage = self.transaction.as_ref().map_or(stage, |transaction| transaction.stage);
        if !stage.is_prepared() {
            return Ok(());
        }
        let of_several = stage.is_of_several();
        let exchanged = broken(Mutation::ExchangeBeforeFlush);
        if let Err(error) = if exchanged { Ok(()) } else { self.exchange_names() } {
            if of_several {
                self.leave_unpublished();
            } else {
                self.abandon();
            }
            return Err(error);
        }
        if let Err(error) = self.flush_first_name(stage) {
            if of_several {
                // Decided, and rolled forward later.
                self.leave_unpublished();
                return Err(error);
            }
            if self.take_names_back() {
                self.abandon();
                return Err(error);
            }
            // Neither durable nor taken back: nothing can be written here any more. The commit
            // can't be undone, and is durable, if not under its name: it stands, and what is
            // written next says what failed.
            self.debts.poisoned = Some(error.to_string());
        }
        let Some(transaction) = self.transaction.take() else {
            return Ok(());
        };
        self.pair.coordination.set_flushed(self.shadow_slot(), stage.is_durable());
        self.take_over(transaction.snapshot, transaction.page_list, transaction.header);
        self.memo.last_commit = LastCommit::keep(self.view.snapshot.id, transaction.buffer);
        if self.protocol != Protocol::Single {
            // The paper's version reset: the copy that was replaced is marked, durably. The commit
            // stands in any case; a copy that could not be marked is made anew before it is used.
            let reset = self.flush_file(self.shadow_slot());
            if reset.is_err() {
                self.pair.coordination.set_condition(ShadowCondition::Rebuild);
            }
        }
        self.pair.coordination.set_in_flight(0);
        self.statistics.commits += 1;
        self.punch_behind_the_end();
        self.tell_totals();
        Ok(())
    }

    /// Tells every reader that the shadow is the current copy now, and marks the copy it replaces.
    fn take_over(&mut self, snapshot: Snapshot, page_list: RangeSet, header: Option<Header>) {
        self.note_deleted(snapshot.size);
        let old = self.view.current;
        let new = Current { sequence: old.sequence + 1, slot: 1 - old.slot };
        let first = self.view.snapshot.size == 0 && self.debts.poisoned.is_none();
        if first && self.pair.coordination.is_flushed(new.slot) {
            self.pair.coordination.set_name_on_disk(new.slot);
        } else {
            self.pair.coordination.add_name_on_disk(new.slot);
        }
        self.pair.coordination.set_snapshot(new.slot, &snapshot);
        self.pair.coordination.set_current(new);
        self.pair.coordination.count_commit();
        self.pair.coordination.set_condition(ShadowCondition::Known);
        self.demote_replaced(old);
        self.memo.header = header.map(|header| (new.sequence, header));
        self.view.current = new;
        self.view.snapshot = snapshot;
        self.memo.page_list = Some((new.sequence, page_list));
        self.saw_current();
    }

    /// Marks the copy that was replaced, which was not written while it was current (SHADOW-7), in
    /// the page cache only: superseded for a recovery, read-only for stock descriptors opened long
    /// ago. If that fails, the next commit overwrites the place in any case.
    fn demote_replaced(&self, old: Current) {
        let Some(file) = self.pair.files[old.slot].as_ref().filter(|_| self.view.snapshot.size > 0)
        else {
            return;
        };
        let header = match &self.memo.header {
            Some((sequence, header)) if *sequence == old.sequence => Some(*header),
            _ => read_header(&**file, self.pair.names.shown()).ok().flatten(),
        };
        if let Some(header) = header.filter(|_| !broken(Mutation::NotDemoted)) {
            drop(file.write_at(&header.demotion(), FENCE_OFFSET));
        }
    }

    /// SHADOW-20: what the first commit of a database replaces is a file without a byte, which
    /// stock SQLite would read, and write, as an empty database. So the exchange is durable before
    /// it is acknowledged.
    fn flush_first_name(&mut self, stage: Stage) -> Result<()> {
        let first = self.view.snapshot.size == 0 && stage.is_durable();
        if !first || broken(Mutation::FirstNameNotFlushed) {
            return Ok(());
        }
        self.flush_directory()
    }

    /// Exchanges the names back after a failed [`Self::flush_first_name`], durably: what it failed
    /// to flush may be on the device all the same, and a file whose commit is undone must not have
    /// the database's name there, with nothing but an empty one beside it. If that fails, the names
    /// stay exchanged.
    fn take_names_back(&mut self) -> bool {
        let (directory, names) = (&self.pair.directory, &self.pair.names);
        if exchange::exchange::<S>(directory, names).is_err() {
            return false;
        }
        if broken(Mutation::NamesTakenBackNotFlushed) || self.flush_directory().is_ok() {
            return true;
        }
        drop(exchange::exchange::<S>(&self.pair.directory, &self.pair.names));
        false
    }

    /// Exchanges the names.
    pub(crate) fn exchange_names(&mut self) -> Result<()> {
        self.pair.coordination.set_names_changed();
        let replaced = self.view.current.slot;
        self.fence_off_replaced(replaced)?;
        let exchanged = exchange::exchange::<S>(&self.pair.directory, &self.pair.names);
        if exchanged.is_err() {
            // F15: an error does not say whether it happened.
            let named = self
                .pair
                .directory
                .metadata(&self.pair.names.db)
                .ok()
                .flatten()
                .map(|found| found.id);
            let wanted = self.pair.files[self.shadow_slot()].as_ref().map(|file| file.id());
            if named.is_none() || named != wanted {
                let exchanged = exchanged.map_err(exchange::advised);
                return exchanged.during(Operation::Exchange, self.pair.names.shown());
            }
        }
        self.statistics.exchanges += 1;
        // Who opened it meanwhile. That this failed is no reason to undo the commit.
        drop(self.fence_off_replaced(replaced));
        Ok(())
    }

    /// The flush that is the commit point. After a failure the shadow is undone at once: nothing
    /// of it may ever be taken for durable (constraint 6).
    pub fn flush(&mut self) -> Result<()> {
        let stage = self.transaction.as_ref().map(|transaction| transaction.stage);
        let Some(Stage::Prepared { of_several }) = stage else {
            return Ok(());
        };
        if broken(Mutation::ExchangeBeforeFlush) {
            self.exchange_names()?;
        }
        let flushed = if broken(Mutation::CommitNotFlushed) {
            Ok(())
        } else {
            self.flush_current().and_then(|()| self.flush_file(self.shadow_slot()))
        };
        match flushed {
            Ok(()) => {
                if let Some(transaction) = &mut self.transaction {
                    transaction.stage.become_(Stage::Durable { of_several });
                }
                Ok(())
            }
            Err(error) => {
                if broken(Mutation::FailedFlushNotUndone) {
                    self.transaction = None;
                    self.pair.coordination.set_in_flight(0);
                }
                self.abandon();
                Err(error)
            }
        }
    }
}
