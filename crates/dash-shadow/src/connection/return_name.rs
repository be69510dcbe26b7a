//! Stock processes that have a former copy open (SHADOW-16).
//!
//! Stock SQLite finds a rollback journal and a log by name, and asks its own file whether somebody
//! is writing. A stock process that has the database open since before an odd number of commits has
//! the file that is called `app.db-shadow` by now. As long as a dash connection is alive it holds
//! RESERVED of both files. At rest nobody does: when another stock process writes `app.db` then,
//! the first one takes its journal for a hot one, rolls it back into the shadow and removes it
//! (A17); a log it would write back into the shadow, and remove.
//!
//! So no stock process may write `app.db` while another one has the shadow open and no dash
//! connection lives:
//!
//! - Who closes last asks who has the shadow open, and commits once more, without a change: that
//!   exchanges the names, by the steps that are proved already. Where that can't be (both are open,
//!   or the shadow is being read) it protects `app.db` until a dash connection closes that finds
//!   the shadow free: stock SQLite may read it, and "attempt to write a readonly database" is what
//!   writers are told. A stock connection that is reading it already does not look at its header
//!   again (under locking_mode=EXCLUSIVE never): then the name fence stays, which leaves it no
//!   journal to write.
//! - A process may be killed instead of closing. From the second commit of a session on the name
//!   fence stands then, which keeps stock processes out. Where the first one replaces a copy that
//!   is open elsewhere, the fence is put up before it, without a flush: after a power loss there
//!   are no such processes.

use crate::connection::state::Connection;
use crate::format::header::{FENCE_OFFSET, Marks};
use crate::mutation::{Mutation, broken};
use crate::shared::life::open_elsewhere;
use crate::shared::locks::{self, LockLevel};
use crate::shared::state::ShadowCondition;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_engine::fence::raise_passing;
use dash_engine::io::read_header;
use dash_storage::{File, LockKind, Storage};
use std::time::Duration;

/// For how long a child may take from `fork` to `exec`: a tenth of a second.
const EXEC_ATTEMPTS: usize = 100;

/// How often is looked whether it has got there.
const EXEC_PAUSE: Duration = Duration::from_millis(1);

/// What a clean close leaves where others have the shadow open.
pub(crate) struct StillHeld {
    /// For the user.
    pub(crate) message: String,
    /// The name fence has to stand, too.
    pub(crate) fenced: bool,
}

impl<S: Storage> Connection<S> {
    /// SHADOW-16, for the last connection. Answers what the user should know where the name can't
    /// go to the program that has the shadow open. Nothing of it keeps the database from being
    /// closed.
    pub(crate) fn return_name(&mut self) -> Option<StillHeld> {
        let kept = self.offer_name();
        // What was committed in this session is not protected.
        let changes = kept.is_some() || self.pair.coordination.commits() == 0;
        let failed = if changes { self.set_protected(kept.is_some()).err() } else { None };
        let why = kept?;
        // After the mark: whoever begins to read from here on sees it.
        let read = self.is_read_by_stock();
        let may =
            if read { "can't open the database" } else { "can read the database but not write it" };
        let failed = failed.map(|error| format!("; {error}")).unwrap_or_default();
        let message = format!(
            "another program has {} open as it was called before, and that name can't be given back ({why}): programs \
             without dash {may} until that one has closed it, and dash has opened and closed the database once more{failed}",
            self.pair.names.shown_shadow()
        );
        Some(StillHeld { message, fenced: read })
    }

    /// Whether stock SQLite reads the current copy: a reader has looked at its header, and may go
    /// on to write.
    fn is_read_by_stock(&self) -> bool {
        let asked = self.current_file().and_then(|file| {
            let name = self.pair.names.shown();
            file.lock_conflict(locks::SHARED, LockKind::Exclusive).during(Operation::Lock, name)
        });
        asked.is_ok_and(|holder| holder.is_some()) && !broken(Mutation::ReaderMayWrite)
    }

    /// Offers the name to the program that has the shadow open. Why somebody has it open still;
    /// `None`: nobody has.
    fn offer_name(&mut self) -> Option<String> {
        if !self.is_open_elsewhere(self.shadow_slot()) {
            return None;
        }
        let both = [self.shadow_slot(), self.view.current.slot];
        if self.stay_open_elsewhere(&both) {
            return Some("so does another one, with the file that is called so now".into());
        }
        if !self.is_open_elsewhere(self.shadow_slot()) {
            return None;
        }
        match self.commit_unchanged() {
            Err(error) => Some(error.to_string()),
            // It had the name until now.
            Ok(()) => {
                let stays = self.stay_open_elsewhere(&[self.shadow_slot()]);
                stays.then(|| "it was just opened".into())
            }
        }
    }

    /// Protects the current copy, or no longer. In the page cache only: a power loss ends those
    /// processes, too.
    fn set_protected(&self, protected: bool) -> Result<()> {
        let (file, name) = (self.current_file()?, self.pair.names.shown());
        let Some(header) = read_header(&*file, name)?.filter(|header| header.is_sqlite()) else {
            return Ok(());
        };
        if header.is_protected() == protected || broken(Mutation::NotProtected) {
            return Ok(());
        }
        let bytes = if protected { header.protection() } else { header.promotion() };
        file.write_at(&bytes, FENCE_OFFSET).during(Operation::Write, name)
    }

    /// Before, and after, the names are exchanged: if somebody else has the copy open that is
    /// replaced, the name fence stands, whoever is killed from then on.
    pub(crate) fn fence_off_replaced(&self, slot: usize) -> Result<()> {
        let stands = self.pair.coordination.fence() || self.pair.coordination.fence_found();
        if stands || broken(Mutation::ReplacedNotFenced) || !self.is_open_elsewhere(slot) {
            return Ok(());
        }
        // Whoever closes last looks for it, also if this process dies in the next step.
        self.pair.coordination.set_fence_found(true);
        raise_passing(&*self.pair.directory, &self.pair.names, &*self.current_file()?)
    }

    fn is_open_elsewhere(&self, slot: usize) -> bool {
        open_elsewhere(self.pair.files[slot].as_deref())
    }

    /// Whether somebody else has them all open, and not just a child on its way from fork to exec:
    /// until then it has whatever this process had open, and has closed meanwhile.
    fn stay_open_elsewhere(&self, slots: &[usize]) -> bool {
        let are_open = || slots.iter().all(|slot| self.is_open_elsewhere(*slot));
        for _ in 0..EXEC_ATTEMPTS {
            if !are_open() {
                return false;
            }
            self.pair.storage.sleep(EXEC_PAUSE);
        }
        are_open()
    }

    /// A commit that changes nothing but SQLite's change counter.
    pub(crate) fn commit_unchanged(&mut self) -> Result<()> {
        let committed = self.commit_first_page();
        let ended = self.unlock(LockLevel::None);
        committed.and(ended)
    }

    fn commit_first_page(&mut self) -> Result<()> {
        if let Some(reason) = &self.debts.poisoned {
            return Err(Error::Poisoned(reason.clone()));
        }
        if self.view.level != LockLevel::None {
            return Err(Error::Refused("its last transaction could not be ended".into()));
        }
        self.lock(LockLevel::Reserved)?;
        let anew = self.pair.coordination.condition() == ShadowCondition::Rebuild;
        if self.view.snapshot.size == 0 || anew && !self.must_keep_shadow()? {
            // The commit would go to a new file, which nobody has open.
            return Err(Error::Refused("it is no copy any more".into()));
        }
        self.lock(LockLevel::Exclusive)?;
        let mut first = dash_engine::memory::zeros(self.first_page_len()?)?;
        self.read(&mut first, 0)?;
        self.write(&first, 0)?;
        if let Some(transaction) = &mut self.transaction {
            transaction.unchanged = !broken(Mutation::UnchangedTakenForChange);
        }
        self.prepare(None)?;
        self.flush()?;
        self.publish()
    }
}
