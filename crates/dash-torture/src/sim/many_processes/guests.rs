//! Onlookers while many processes work: snapshots held for long, and stock SQLite.

use super::{ATTEMPTS, ManyProcesses, READERS, Reader};
use crate::random::Dice;
use crate::sim::content::{Stock, as_stock, read_here};
use crate::sim::explore::{Checked, check_bytes, wrong};
use crate::sim::model::short;
use crate::sim::next::unexpected;
use crate::sim::subject::{DB, Trouble};

impl ManyProcesses {
    /// Every snapshot is what it was.
    pub(super) fn check_readers(&mut self) -> Checked<()> {
        let size = self.size();
        for reader in &mut self.readers {
            match read_here(&mut *reader.session, size) {
                Ok(seen) if seen == reader.content => {}
                Ok(seen) => {
                    let (seen, was) = (short(&seen), short(&reader.content));
                    return wrong!("a snapshot of {was} became {seen}");
                }
                Err(error) => return wrong!("reading a snapshot: {error}"),
            }
        }
        Ok(())
    }

    /// A new writer sees the newest state, and decides what it is.
    pub(super) fn ask_a_writer(&mut self, i: usize) -> Checked<()> {
        let size = self.size();
        for _ in 0..ATTEMPTS {
            let session = self.session(i)?;
            let begun = session.begin_read().and_then(|()| session.begin_write());
            let content = begun.and_then(|()| read_here(session, size));
            session.end().map_err(|error| unexpected("ending", &error))?;
            match content {
                Ok(content) => {
                    self.allows(&format!("writer {i}"), &content)?;
                    self.model.seen(&content);
                    return Ok(());
                }
                Err(Trouble::Busy) => {}
                Err(error) => return wrong!("process {i} begins to write: {error}"),
            }
        }
        Ok(())
    }

    /// A snapshot is taken; one is given up, dies, or becomes a writer.
    pub(super) fn readers_come_and_go(&mut self, dice: &mut Dice) -> Checked<()> {
        let size = self.size();
        if dice.one_in(4)
            && self.readers.len() < READERS
            && let Ok((process, mut session)) = self.open()
            && session.begin_read().is_ok()
        {
            let content = read_here(&mut *session, size);
            let content = content.map_err(|error| unexpected("a new reader", &error))?;
            self.allows("a new reader", &content)?;
            self.readers.push(Reader { process, session, content });
        }
        if !dice.one_in(5) || self.readers.is_empty() {
            return Ok(());
        }
        let Reader { process, mut session, content } =
            self.readers.remove(dice.index(self.readers.len()));
        match dice.below(3) {
            0 => match session.close() {
                Err(error) if !self.faulty => wrong!("a reader closes: {error}"),
                _ => Ok(()),
            },
            1 => {
                self.machine.kill(&process);
                Ok(())
            }
            _ => {
                let upgraded = session.begin_write().is_ok();
                let now = read_here(&mut *session, size);
                let now =
                    now.map_err(|error| unexpected("a reader that becomes a writer", &error))?;
                if now != content {
                    let (was, now) = (short(&content), short(&now));
                    return wrong!("a reader of {was} became a writer of {now}");
                }
                if upgraded {
                    self.allows("a reader that became a writer", &content)?;
                    if !self.faulty {
                        self.model.seen(&content);
                    }
                }
                drop(session.end());
                Ok(())
            }
        }
    }

    /// Stock SQLite, with a descriptor opened long ago, and with a lock that it holds.
    pub(super) fn stock_looks_on(&mut self, dice: &mut Dice) -> Checked<()> {
        for descriptor in &self.descriptors {
            check_bytes(&descriptor.read_all(), &self.model, "an old stock descriptor")?;
        }
        if let Some((descriptor, content)) = &self.stock {
            let now = as_stock(&descriptor.read_all());
            if now != Stock::Content(content.clone()) {
                return wrong!("a stock reader of {} sees {now:?}", short(content));
            }
            if dice.one_in(3) {
                self.stock = None;
            }
        }
        let Ok(descriptor) = self.machine.open_stock(DB) else {
            return Ok(());
        };
        if self.stock.is_none() && dice.one_in(6) && descriptor.try_lock_shared() {
            let bytes = descriptor.read_all();
            check_bytes(&bytes, &self.model, "a stock reader")?;
            if let Stock::Content(content) = as_stock(&bytes) {
                self.stock = Some((descriptor, content));
            }
        } else if dice.one_in(4) {
            self.descriptors.truncate(READERS - 1);
            self.descriptors.insert(dice.index(self.descriptors.len()), descriptor);
        }
        Ok(())
    }
}
