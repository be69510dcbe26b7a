//! Memory that may run out. What Rust's collections allocate by themselves ends the process where
//! there is none, and the process is the host's. So whatever is sized by data (by what a host
//! writes, by what a file or a page list holds) is asked for here, or by `try_reserve`, and refused
//! as [`Error::OutOfMemory`], which a host of SQLite sees as `SQLITE_NOMEM`.
//!
//! What stays are small things of fixed size: a name, a message, the node of a tree, a block of 4
//! KiB. They can't be refused one by one. [`headroom`] asks for as much as the next ones may take,
//! and gives it back at once: where an operation begins that can still be refused without harm
//! (opening, locking, the first write, preparing). What an operation needs that can't, undoing a
//! transaction, is kept from before the transaction's first byte reaches a file ([`Reserve`]).

use crate::error::{Error, Result};

/// What an operation may take in small things, of which none is sized by data.
pub const SMALL_THINGS: usize = 16 << 10;

/// What opening takes of them: names, files, shared memory's handles, two tails.
pub const OPENING: usize = 48 << 10;

/// What a node of a tree of ranges or blocks takes for each of its entries, at most.
pub const ENTRY: usize = 64;

/// `len` zeros.
pub fn zeros(len: u64) -> Result<Vec<u8>> {
    let len = usize::try_from(len).map_err(|_| Error::OutOfMemory)?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(len).map_err(|_| Error::OutOfMemory)?;
    bytes.resize(len, 0);
    Ok(bytes)
}

/// Whether so many bytes could be had right now.
pub fn headroom(bytes: usize) -> Result<()> {
    let mut tried: Vec<u8> = Vec::new();
    tried.try_reserve_exact(bytes).map_err(|_| Error::OutOfMemory)?;
    // An allocation that nobody uses need not be made.
    drop(std::hint::black_box(tried));
    Ok(())
}

/// Whether there is memory for as many entries in trees, and for small things.
pub fn headroom_for(entries: usize) -> Result<()> {
    headroom(entries.saturating_mul(ENTRY).saturating_add(SMALL_THINGS))
}

/// Memory that is kept to be given back when it is needed; the system gives no pages for it before.
#[derive(Debug, Default)]
pub struct Reserve(Vec<u8>);

/// What undoing takes: two buffers, blocks, the list of what is to be undone.
const RESERVED: usize = 96 << 10;

impl Reserve {
    /// Has it, from here on.
    pub fn keep(&mut self) -> Result<()> {
        self.0.try_reserve_exact(RESERVED).map_err(|_| Error::OutOfMemory)
    }

    /// Gives it back to whoever needs it now.
    pub fn give_up(&mut self) {
        self.0 = Vec::new();
    }
}
