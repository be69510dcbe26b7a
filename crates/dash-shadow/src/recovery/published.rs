//! Blocks of one copy that speak of the other one: that its commit was published, or that a newer
//! one was cut off and never will be.

use crate::file::tail::Tail;
use crate::file::void_commit::void_commit;
use crate::format::header::{Header, Marks};
use crate::format::{
    BLOCK, BLOCK_LEN, CommitBlock, IntentBlock, Place, Protocol, SECTOR_BYTES, State, Unit,
    Vouched, first_page,
};
use crate::mutation::{Mutation, broken};
use crate::shared::state::{Current, Snapshot};
use dash_engine::error::{Context, Operation, Result};
use dash_storage::{File, FileId};

/// The commit that is vouched for, and the copy it is in.
pub(crate) struct Published {
    pub pair: u64,
    pub current: Current,
    pub snapshot: Snapshot,
    /// Both files have their names on the disk, too.
    pub names_durable: bool,
    /// Another program has the other copy open.
    pub held: bool,
    /// When its file last changed; 0: not known.
    pub changed: u64,
}

impl Published {
    /// The block for the other copy, which is `file`. `counter`: the change counter of the state
    /// that is there. `proof`: what tells a later session whether the intent it finds is the
    /// durable one (F4). `units`: the page list that stays in place.
    pub(crate) fn block(
        &self,
        file: FileId,
        state: State,
        counter: u32,
        proof: u32,
        units: Option<(u32, Vec<Unit>)>,
    ) -> CommitBlock {
        let (unit_count, units) = units.unwrap_or_default();
        CommitBlock {
            place: Place::Tail,
            pair: self.pair,
            inode: file.inode,
            slot: u8::from(self.current.slot == 0),
            state,
            protocol: Protocol::Single,
            sequence: self.current.sequence,
            id: 0,
            parent: 0,
            counter,
            page_size: 0,
            size: 0,
            vouched: Some(Vouched {
                sequence: self.current.sequence,
                id: self.snapshot.id,
                counter: self.snapshot.counter,
                names_durable: self.names_durable,
                held: self.held,
                changed: self.changed,
            }),
            super_journal: Vec::new(),
            unit_count,
            list_checksum: proof,
            units,
        }
    }

    /// The block for page 1 of the other copy, which is `file`: it has no proof of an intent.
    pub fn mark(&self, file: FileId, state: State, counter: u32) -> CommitBlock {
        self.block(file, state, counter, 0, None)
    }

    /// SHADOW-12: what was decided against must not win after a power loss: whoever has read the
    /// current copy since would see it come back from the dead. A commit whose undo was cut off may
    /// be whole on the disk and not in the cache, so both places of a block that may hide one are
    /// written, and flushed. Returns whether they were.
    ///
    /// Does not say that the shadow is whole: a proof that fits no intent, or the state *settled*,
    /// has it mended before its next use.
    pub fn bury<F: File>(&self, file: &F, tail: &Tail, name: &str) -> Result<bool> {
        if broken(Mutation::CutOffCommitNotForgotten) {
            return Ok(false);
        }
        let counted = tail.bound(file.id());
        let ours = counted.is_some() || tail.bound_intent(file.id()).is_some();
        let Some(place) = tail.len.checked_sub(BLOCK_LEN).filter(|_| ours) else {
            return Ok(false);
        };
        let proof = tail.intent.as_ref().map_or(0, |intent| !proof(intent));
        let mut sector = tail.sector;
        if counted.is_some_and(|block| self.is_older(block, &sector, proof)) {
            return Ok(false);
        }
        if self.snapshot.size == 0 {
            void_commit(file, tail.len, name)?;
        } else {
            let (state, counter) = match counted {
                Some(newer) if newer.state != State::Settled => (State::Superseded, newer.counter),
                // Restored in part: what is equal in the cache may differ on the disk.
                _ => (State::Settled, self.snapshot.counter),
            };
            first_page::blank(&mut sector);
            if first_page::room(&sector).is_some() {
                first_page::insert(&self.mark(file.id(), state, counter), &mut sector);
            }
            // The whole sector: on the disk there may be another one.
            file.write_at(&sector, 0).during(Operation::Write, name)?;
            // Its first sector only: after a power loss it is this block or the old one.
            let part = if state == State::Superseded && tail.list.is_some() {
                SECTOR_BYTES
            } else {
                BLOCK
            };
            let block = self.block(file.id(), state, counter, proof, tail.list.clone());
            file.write_at(&block.encode()[..part], place).during(Operation::Write, name)?;
        }
        if !broken(Mutation::BuriedNotFlushed) {
            file.flush().during(Operation::Flush, name)?;
        }
        Ok(true)
    }

    /// Whether a shadow's block tells that no newer commit was written into it since.
    fn is_older(&self, block: &CommitBlock, sector: &[u8], to_be_mended: u32) -> bool {
        if self.snapshot.size == 0 {
            return false;
        }
        // Page 1 is written first: it may have had a newer block that the cache has no more.
        let begun = Header::of(sector)
            .is_none_or(|header| header.is_fenced() || header.counter() != block.counter);
        match (block.place, block.state) {
            (Place::Tail, State::Superseded) => !begun && block.list_checksum != to_be_mended,
            (Place::Tail, State::Whole | State::Prepared) => {
                !begun && block.sequence <= self.current.sequence
            }
            (_, State::Whole | State::Prepared) => block.sequence <= self.current.sequence,
            (_, State::Settled | State::Superseded) => false,
        }
    }
}

/// What a vouching block says of the durable intent.
pub(crate) fn proof(intent: &IntentBlock) -> u32 {
    crc32fast::hash(&*intent.encode())
}
