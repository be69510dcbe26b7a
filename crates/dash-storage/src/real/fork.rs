//! What a forked child keeps of this process's files: nothing.
//!
//! A child shares its parent's open file descriptions, and with them the open-file-description
//! locks: while the child lives they outlive the parent, and a killed writer would leave its
//! database locked. So a `pthread_atfork` handler closes every descriptor of ours in the child,
//! puts private zeros in the place of every mapping (a mapping holds its description too), and
//! starts a new generation, which makes every inherited handle fail with EBADF.
//!
//! The handler runs where other threads may have stopped anywhere, so it only walks atomics and
//! makes system calls. A descriptor is never open but unlisted at a fork: whoever opens or closes
//! one is [`inside`], and the handler before the fork waits for that to end (not for ever: an open
//! that hangs must not hang the fork).

#![expect(unsafe_code, reason = "registers fork handlers; closes and maps by number in the child")]

use std::cell::Cell;
use std::io;
use std::marker::PhantomData;
use std::os::fd::RawFd;
use std::sync::Once;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use super::table::Table;

/// All descriptors of this process's handles, and the parked ones.
pub(super) static OWN: Table<Number> = Table::new();

/// All mappings of this process's handles.
pub(super) static MAPPINGS: Table<Extent> = Table::new();

static REGISTERED: Once = Once::new();
static GENERATION: AtomicU64 = AtomicU64::new(0);
static FORKING: AtomicU32 = AtomicU32::new(0);
static INSIDE: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// Whether this thread is between the handlers before and after its fork.
    static FORKS: Cell<bool> = const { Cell::new(false) };
    /// How many [`Inside`] this thread has: it must not wait for a fork that waits for it.
    static HERE: Cell<u32> = const { Cell::new(0) };
}

/// How often the parent looks whether openers are done before it forks anyway, and the pause
/// between two looks: a second in all.
const LOOKS: u32 = 20_000;
const PAUSE: Duration = Duration::from_micros(50);

/// How many forks this process is away from the first one that had files open here. Whoever
/// remembers the number can tell that a handle came over `fork()`: nothing is wrong with the file
/// then, but the handle is good no more. Costs a load.
#[inline]
#[must_use]
pub fn forks() -> u64 {
    GENERATION.load(Ordering::Relaxed)
}

/// Does something that no fork comes into, such as to hold a lock that a child would find held for
/// ever. Not for long: a fork waits for it, though not for more than a second.
pub fn without_fork<R>(work: impl FnOnce() -> R) -> R {
    let _inside = inside();
    work()
}

/// Proof that no fork happens between opening and listing, or closing and unlisting. It stays with
/// its thread.
pub(super) struct Inside(PhantomData<*const ()>);

/// Waits for a fork under way, and holds back the next one until the result is dropped. A thread
/// does not wait for its own fork: another library's handler may open a database before it, and is
/// done with that by then.
pub(super) fn inside() -> Inside {
    REGISTERED.call_once(register);
    loop {
        INSIDE.fetch_add(1, Ordering::SeqCst);
        if FORKING.load(Ordering::SeqCst) == 0 || HERE.get() > 0 || FORKS.get() {
            HERE.set(HERE.get() + 1);
            return Inside(PhantomData);
        }
        INSIDE.fetch_sub(1, Ordering::SeqCst);
        std::thread::yield_now();
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        HERE.set(HERE.get() - 1);
        INSIDE.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A descriptor as the child handler sees it; -1 for none.
pub(super) struct Number(AtomicI32);

impl Default for Number {
    fn default() -> Self {
        Self(AtomicI32::new(-1))
    }
}

impl Number {
    pub(super) fn set(&self, fd: RawFd) {
        self.0.store(fd, Ordering::Release);
    }

    pub(super) fn take(&self) -> Option<RawFd> {
        let fd = self.0.swap(-1, Ordering::AcqRel);
        (fd >= 0).then_some(fd)
    }
}

/// A mapping as the child handler sees it; address zero for none.
#[derive(Default)]
pub(super) struct Extent {
    address: AtomicUsize,
    len: AtomicUsize,
}

impl Extent {
    pub(super) fn set(&self, address: usize, len: usize) {
        self.len.store(len, Ordering::Relaxed);
        self.address.store(address, Ordering::Release);
    }

    pub(super) fn take(&self) -> Option<(usize, usize)> {
        let address = self.address.swap(0, Ordering::AcqRel);
        (address != 0).then(|| (address, self.len.load(Ordering::Relaxed)))
    }
}

fn register() {
    // SAFETY: the handlers are functions of this library, which is never unloaded while it has
    // handles (SQLite loads it permanently); they neither unwind nor touch anything but statics.
    let result = unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
    // Out of memory: forks then behave as if nobody had asked, like any other library's files.
    debug_assert_eq!(result, 0, "{}", io::Error::from_raw_os_error(result));
}

extern "C" fn before() {
    FORKS.set(true);
    FORKING.fetch_add(1, Ordering::SeqCst);
    for _ in 0..LOOKS {
        if INSIDE.load(Ordering::SeqCst) == 0 {
            return;
        }
        std::thread::sleep(PAUSE);
    }
}

extern "C" fn in_parent() {
    FORKS.set(false);
    FORKING.fetch_sub(1, Ordering::SeqCst);
}

extern "C" fn in_child() {
    FORKS.set(false);
    FORKING.store(0, Ordering::SeqCst);
    INSIDE.store(0, Ordering::SeqCst);
    GENERATION.fetch_add(1, Ordering::SeqCst);
    for entry in OWN.iter() {
        if let Some(fd) = entry.value.take() {
            // SAFETY: the number was listed by the handle that owns it, which the new generation
            // keeps from ever using or closing it again.
            unsafe { libc::close(fd) };
        }
        entry.release();
    }
    for entry in MAPPINGS.iter() {
        if let Some((address, len)) = entry.value.take() {
            const PROTECTION: i32 = libc::PROT_READ | libc::PROT_WRITE;
            const FLAGS: i32 = libc::MAP_FIXED | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let place = std::ptr::without_provenance_mut(address);
            // SAFETY: the extent is exactly one live mapping of ours, listed by its owner; private
            // zeros in its place keep every pointer into it valid and the owner's munmap right.
            unsafe { libc::mmap(place, len, PROTECTION, FLAGS, -1, 0) };
        }
        entry.release();
    }
}
