//! Write transactions of many processes that begin in one action and end in a later one.

use super::{ManyProcesses, Open};
use crate::sim::content::{self, Content, read_here};
use crate::sim::explore::{Checked, wrong};
use crate::sim::model::short;
use crate::sim::subject::{Session, Trouble};

impl ManyProcesses {
    /// Begins a write transaction, perhaps writes it, and leaves it there for a while.
    pub(super) fn leave_open(
        &mut self,
        process: usize,
        new: Content,
        written: bool,
    ) -> Checked<()> {
        let (size, floor) = (self.size(), self.model.floor());
        self.model.tried(&new);
        let session = self.session(process)?;
        let begun = session.begin_read().and_then(|()| {
            let old = read_here(session, size)?;
            session.reserve()?;
            if written {
                session.exclude()?;
                content::write_over(session, size, &old, &new)?;
            }
            Ok(old)
        });
        match begun {
            Ok(old) => self.open = Some(Open { process, old, new, written, floor }),
            Err(Trouble::Busy) => drop(session.end()),
            Err(_) if self.faulty => self.live[process] = None,
            Err(error) => return wrong!("process {process} writes: {error}"),
        }
        Ok(())
    }

    /// The transaction that was left open is committed, or rolled back.
    pub(super) fn finish_open(&mut self, roll_back: bool) -> Checked<()> {
        let Some(Open { process, old, new, written, floor }) = self.open.take() else {
            return Ok(());
        };
        let (size, alone) = (self.size(), self.model.floor() == floor);
        let number = self.model.tried(&new);
        let session = self.session(process)?;
        let write = |session: &mut dyn Session| {
            if !written {
                session.exclude()?;
                content::write_over(session, size, &old, &new)?;
            }
            content::finish(session)
        };
        let done = if roll_back { Err(Trouble::Busy) } else { write(session) };
        let ended = session.end();
        match done.and(ended) {
            Ok(()) if !alone => {
                return wrong!("process {process} wrote on top of {}, now old", short(&old));
            }
            Ok(()) => self.model.acknowledged(number),
            Err(Trouble::Busy) => {}
            Err(_) if self.faulty => self.live[process] = None,
            Err(error) => return wrong!("process {process} finishes: {error}"),
        }
        Ok(())
    }
}
