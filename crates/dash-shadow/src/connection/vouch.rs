//! The shadow's block that speaks of the current copy: that its commit was published
//! ([`vouch`](Connection::vouch)), or that a newer one was cut off and never will be
//! ([`bury`](Connection::bury)).

use crate::connection::state::Connection;
use crate::file::tail::Tail;
use crate::format::{BLOCK, BLOCK_LEN, CommitBlock, IntentBlock, SECTOR_BYTES, State, Unit};
use crate::recovery::published::{Published, proof};
use dash_engine::error::{Context, Operation, Result};
use dash_engine::io::read_padded;
use dash_storage::{File, Storage};

impl<S: Storage> Connection<S> {
    pub(crate) fn published(&self) -> Published {
        Published {
            pair: self.pair.coordination.pair(),
            current: self.view.current,
            snapshot: self.view.snapshot,
            names_durable: false,
            held: false,
            changed: 0,
        }
    }

    /// A block that says: the other copy's commit was published, and the shadow holds the same
    /// state. Page cache only.
    ///
    /// A settled block is followed by a flush. A superseded one is not, and may be torn by a power
    /// loss while the names on disk are behind and it lies in `app.db`: so it takes the place of a
    /// good block by changing its first sector only.
    pub(crate) fn vouch(&self, state: State, intent: &IntentBlock, len: u64) -> Result<()> {
        let slot = self.shadow_slot();
        let (shadow, name) = (self.pair.file(slot)?, self.role(slot));
        let mut old = [0; BLOCK];
        read_padded(&*shadow, &mut old, len - BLOCK_LEN).during(Operation::Read, &name)?;
        let list = CommitBlock::decode(&old).ok().map(|old| (old.unit_count, old.units));
        self.vouch_over(&self.published(), list, state, self.view.snapshot.counter, intent, len)
    }

    /// The same, over a block in the tail that has been read: its list, if it was whole. `counter`:
    /// the change counter of the state that is in the shadow.
    pub(crate) fn vouch_over(
        &self,
        published: &Published,
        list: Option<(u32, Vec<Unit>)>,
        state: State,
        counter: u32,
        intent: &IntentBlock,
        len: u64,
    ) -> Result<()> {
        let slot = self.shadow_slot();
        let (shadow, name) = (self.pair.file(slot)?, self.role(slot));
        let in_place = state == State::Superseded && list.is_some();
        let block = published.block(shadow.id(), state, counter, proof(intent), list);
        let bytes = block.encode();
        let part = if in_place { &bytes[..SECTOR_BYTES] } else { &bytes[..] };
        shadow.write_at(part, len - BLOCK_LEN).during(Operation::Write, &name)
    }

    /// [`Published::bury`] for the shadow. Its flush makes no promise for pages.
    pub(crate) fn bury(&mut self, tail: &Tail) -> Result<()> {
        let slot = self.shadow_slot();
        let (shadow, name) = (self.pair.file(slot)?, self.role(slot));
        if self.published().bury(&*shadow, tail, &name)? {
            self.statistics.flushes += 1;
        }
        Ok(())
    }
}
