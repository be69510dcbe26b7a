//! Which slots a connection takes and gives up: in the bytes of two files, or among the threads of
//! one process.

use super::slots::{Piece, mask, pieces};
use super::{Home, Index};
use dash_engine::error::{Context, Error, Operation, Result};
use dash_storage::{File, LockKind, Storage};
use std::ops::Range;

/// What messages call the coordination file.
const COORDINATION: &str = "the coordination file";

impl<S: Storage> Index<S> {
    /// Takes slots, as `xShmLock` does: all of them or none. What is held already in that way is
    /// nothing to do. `coordination` is this connection's description of the coordination file.
    ///
    /// # Errors
    ///
    /// `Busy` where another connection's lock is in the way, or this one holds one of them in the
    /// other way: a slot is given up before it changes its kind.
    pub(crate) fn lock(
        &mut self,
        slots: Range<usize>,
        kind: LockKind,
        coordination: &S::File,
    ) -> Result<()> {
        let wanted = mask(&slots);
        if self.given_up & wanted != 0 {
            self.release(self.given_up & wanted, coordination)?;
        }
        let (held, other) = match kind {
            LockKind::Shared => (self.shared, self.exclusive),
            LockKind::Exclusive => (self.exclusive, self.shared),
        };
        if other & wanted != 0 {
            return Err(Error::Busy);
        }
        let mut taken = 0;
        for piece in pieces(wanted & !held) {
            match self.take(&piece, kind, coordination) {
                Ok(()) => taken |= piece.slots,
                Err(error) => {
                    self.release(taken, coordination)?;
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn take(&mut self, piece: &Piece, kind: LockKind, coordination: &S::File) -> Result<()> {
        let got = match &mut self.home {
            Home::Memory(seat) => seat.take(piece.slots, kind),
            Home::File(shm, _) => {
                let (file, name) = keeper(shm, piece, coordination, &self.shown);
                file.try_lock(piece.bytes.clone(), kind).during(Operation::Lock, name)?
            }
        };
        if !got {
            return Err(Error::Busy);
        }
        match kind {
            LockKind::Shared => self.shared |= piece.slots,
            LockKind::Exclusive => self.exclusive |= piece.slots,
        }
        Ok(())
    }

    /// Gives slots up, however they are held. SQLite's own bytes of WRITE, CKPT and RECOVER stay
    /// with this connection, shared.
    pub(crate) fn unlock(&mut self, slots: Range<usize>, coordination: &S::File) -> Result<()> {
        self.release(mask(&slots), coordination)
    }

    pub(super) fn release(&mut self, slots: u16, coordination: &S::File) -> Result<()> {
        for piece in pieces(slots & (self.shared | self.exclusive)) {
            let unlocked = match &mut self.home {
                Home::Memory(seat) => {
                    seat.give_up(piece.slots);
                    Ok(())
                }
                Home::File(shm, _) => {
                    let (file, name) = keeper(shm, &piece, coordination, &self.shown);
                    file.unlock(piece.bytes.clone()).during(Operation::Lock, name)
                }
            };
            if unlocked.is_err() {
                self.given_up |= slots & (self.shared | self.exclusive);
            }
            unlocked?;
            self.shared &= !piece.slots;
            self.exclusive &= !piece.slots;
            self.given_up &= !piece.slots;
        }
        Ok(())
    }

    /// Gives up what should have been before.
    pub(crate) fn unlock_left(&mut self, coordination: &S::File) -> Result<()> {
        self.release(self.given_up, coordination)
    }

    /// How this connection holds a slot.
    pub(crate) fn held(&self, slot: usize) -> Option<LockKind> {
        let slot = mask(&(slot..slot + 1));
        match (self.shared & slot != 0, self.exclusive & slot != 0) {
            (true, _) => Some(LockKind::Shared),
            (_, true) => Some(LockKind::Exclusive),
            _ => None,
        }
    }

    /// Whether another connection holds slots of [`WRITE`], [`CKPT`].
    pub(crate) fn is_taken(&self, slots: Range<usize>, coordination: &S::File) -> Result<bool> {
        if let Home::Memory(seat) = &self.home {
            return Ok(seat.is_taken(mask(&slots)));
        }
        for piece in pieces(mask(&slots)) {
            let holder = coordination.lock_conflict(piece.bytes, LockKind::Exclusive);
            if holder.during(Operation::Lock, COORDINATION)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The file that has a piece's bytes, and what messages call it.
fn keeper<'a, F>(
    shm: &'a F,
    piece: &Piece,
    coordination: &'a F,
    shown: &'a str,
) -> (&'a F, &'a str) {
    match piece.private {
        false => (shm, shown),
        true => (coordination, COORDINATION),
    }
}
