//! Which slots a connection takes and gives up: in the bytes of two files, or among the threads of
//! one process.

use super::guard::WORK;
use super::slots::{BASE, CKPT, GUARDED, Piece, READ, RECOVER, SLOTS, WRITE, mask, pieces};
use super::{Home, Index};
use crate::options::Stock;
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
        self.begin_restart(&slots, kind)?;
        let taken = self.lock_slots(&slots, kind, coordination);
        if taken.is_err() {
            self.end_restart()?;
        }
        taken
    }

    fn lock_slots(
        &mut self,
        slots: &Range<usize>,
        kind: LockKind,
        coordination: &S::File,
    ) -> Result<()> {
        let mut wanted = mask(slots);
        if kind == LockKind::Exclusive && self.stock == Stock::Write {
            let last = mask(&(GUARDED..GUARDED + 1));
            // Only a checkpoint, which has to know that nobody reads by it.
            if wanted == last && self.held(CKPT).is_none() {
                return Err(Error::Busy);
            }
            if self.guards {
                wanted &= !last;
            }
        }
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
        if let Err(error) = self.take_stocks(piece, kind) {
            self.give_up_stocks(piece)?;
            if let Home::File(shm, _) = &self.home {
                let (file, name) = keeper(shm, piece, coordination, &self.shown);
                file.unlock(piece.bytes.clone()).during(Operation::Lock, name)?;
            }
            return Err(error);
        }
        match kind {
            LockKind::Shared => self.shared |= piece.slots,
            LockKind::Exclusive => self.exclusive |= piece.slots,
        }
        Ok(())
    }

    /// SQLite's own bytes of slots that have others: of WRITE as it is held, of CKPT and RECOVER
    /// shared, as connections of dash are apart by the others.
    fn take_stocks(&self, piece: &Piece, kind: LockKind) -> Result<()> {
        let Some(shm) = self.file().filter(|_| self.lets_writers()) else { return Ok(()) };
        for slot in stocks(piece) {
            let kind = if slot == WRITE { kind } else { LockKind::Shared };
            let byte = BASE + slot as u64;
            if !shm.try_lock(byte..byte + 1, kind).during(Operation::Lock, &self.shown)? {
                return Err(Error::Busy);
            }
        }
        Ok(())
    }

    fn give_up_stocks(&self, piece: &Piece) -> Result<()> {
        let Some(shm) = self.file().filter(|_| self.lets_writers()) else { return Ok(()) };
        for slot in stocks(piece) {
            let byte = BASE + slot as u64;
            if !(self.guards && WORK.contains(&byte)) {
                shm.unlock(byte..byte + 1).during(Operation::Lock, &self.shown)?;
            }
        }
        Ok(())
    }

    /// Gives slots up, however they are held.
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
                Home::File(..) => self.give_up_stocks(&piece).and_then(|()| {
                    let Home::File(shm, _) = &self.home else { return Ok(()) };
                    if piece.slots & mask(&(GUARDED..GUARDED + 1)) != 0 && self.guards {
                        return Ok(());
                    }
                    let (file, name) = keeper(shm, &piece, coordination, &self.shown);
                    file.unlock(piece.bytes.clone()).during(Operation::Lock, name)
                }),
            };
            if unlocked.is_err() {
                self.given_up |= slots & (self.shared | self.exclusive);
            }
            unlocked?;
            self.shared &= !piece.slots;
            self.exclusive &= !piece.slots;
            self.given_up &= !piece.slots;
        }
        match self.exclusive & mask(&(READ + 1..SLOTS)) {
            0 => self.end_restart(),
            _ => Ok(()),
        }
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

    /// Whether a stock program checkpoints. What can't be told is not.
    pub(crate) fn is_stock_checkpointing(&self) -> bool {
        let byte = BASE + CKPT as u64;
        let shm = self.file().filter(|_| self.lets_writers());
        let holder = shm.map(|shm| shm.lock_conflict(byte..byte + 1, LockKind::Shared));
        matches!(holder, Some(Ok(Some(_))))
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
        let Some(shm) = self.file().filter(|_| self.lets_writers()) else { return Ok(false) };
        let bytes = BASE + slots.start as u64..BASE + slots.end as u64;
        // Connections of dash hold others than WRITE shared.
        let stock =
            shm.lock_conflict(bytes, LockKind::Shared).during(Operation::Lock, &self.shown)?;
        Ok(stock.is_some())
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

/// The slots of a piece that SQLite has bytes of its own for.
fn stocks(piece: &Piece) -> impl Iterator<Item = usize> {
    let slots = if piece.private { piece.slots } else { 0 };
    (WRITE..=RECOVER).filter(move |slot| slots & 1 << slot != 0)
}
