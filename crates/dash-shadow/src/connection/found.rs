//! What the first opener found, kept for the first commit and the close.

use crate::connection::state::Connection;
use crate::file::tail::Tail;
use crate::recovery::first_opener::Recovered;
use crate::shared::state::Current;
use dash_storage::{File, Storage};

impl<S: Storage> Connection<S> {
    /// Keeps what was found, so that the first commit and the close need not look again. Each piece
    /// counts as long as nobody else can have changed it.
    pub(crate) fn remember_found(&mut self, found: Recovered<S::File>) {
        let (sequence, slot) = (self.view.current.sequence, self.view.current.slot);
        self.memo.header = found.header.map(|header| (sequence, header));
        self.memo.page_list = found.page_list.map(|list| (sequence, list));
        let id = self.pair.files[slot].as_ref().map(|file| file.id());
        let len = found.current.len;
        let epochs = [0, 1].map(|slot| self.pair.coordination.tail_epoch(slot));
        if let Some(intent) = id.and_then(|id| found.current.bound_intent(id)) {
            self.know_tail(slot, epochs[slot], len, intent.clone());
        }
        self.target.shadow_at_open =
            found.shadow.map(|tail| (self.view.current, epochs[1 - slot], tail));
        self.debts.cut_off = found.cut_off;
        self.target.current_at_open = Some((self.view.current, epochs[slot], found.current));
    }

    /// The shadow's tail, if the shadow is what the first opener found to be the current copy and
    /// one commit of this connection is all that came since: until that it was not written
    /// (SHADOW-7).
    pub(crate) fn take_current_at_open(&mut self) -> Option<Tail> {
        let (was, epoch, tail) = self.target.current_at_open.take()?;
        let next = Current { sequence: was.sequence + 1, slot: 1 - was.slot };
        let same = self.statistics.commits == 1
            && next == self.pair.coordination.current()
            && epoch == self.pair.coordination.tail_epoch(was.slot);
        same.then_some(tail)
    }

    /// The shadow's tail as it was found when the database was opened, if it still is.
    pub(crate) fn take_shadow_at_open(&mut self) -> Option<Tail> {
        let (current, epoch, tail) = self.target.shadow_at_open.take()?;
        let same = current == self.pair.coordination.current()
            && epoch == self.pair.coordination.tail_epoch(1 - current.slot);
        same.then_some(tail)
    }
}
