//! Whether closing a descriptor could drop locks that this process still needs.
//!
//! `close(2)` of *any* descriptor of an inode drops all POSIX locks that the process has on it,
//! through whatever descriptor they were taken. A stock SQLite connection in the same process has
//! just such locks. So ours are parked while anybody else in the process has the inode open.
//! Whether he has locks is not asked, as he may take some at any moment. Whoever opens it just then
//! is kept out, as far as he is known ([`keep_out`]).

#![expect(unsafe_code, reason = "looks at descriptors that are not ours")]

use std::fs;
use std::mem::MaybeUninit;
use std::os::fd::RawFd;
use std::sync::{Mutex, OnceLock, PoisonError};

use super::descriptor;

/// Does something while others in this process open nothing, and take no lock through what they
/// have just opened.
pub type WhileNobodyOpens = fn(&mut dyn FnMut());

static OTHERS: OnceLock<WhileNobodyOpens> = OnceLock::new();

/// Says how others in this process, who take POSIX locks, are kept from opening files for a moment.
/// It is called where no fork comes into it, and must not close files of this home.
pub fn keep_out(others: WhileNobodyOpens) {
    // Once for all.
    let _ = OTHERS.set(others);
}

/// Does something while nobody opens files, as far as that can be had. One does so at a time.
pub(super) fn while_nobody_opens(mut work: impl FnMut()) {
    static ONE_BY_ONE: Mutex<()> = Mutex::new(());
    let _one = ONE_BY_ONE.lock().unwrap_or_else(PoisonError::into_inner);
    match OTHERS.get() {
        Some(others) => others(&mut work),
        None => work(),
    }
}

/// The descriptors of this thread's process. Those of `/proc/self` are gone once its first thread
/// has ended.
const DESCRIPTORS: &str = "/proc/thread-self/fd";

/// Whether this process has an inode of that number open (on any device: stacked file systems show
/// several) by a descriptor that is not of this home; when in doubt, yes.
pub(super) fn is_open_otherwise(inode: u64) -> bool {
    looked_for(inode).unwrap_or(true)
}

fn looked_for(inode: u64) -> Option<bool> {
    for entry in fs::read_dir(DESCRIPTORS).ok()? {
        let number = entry.ok()?.file_name().to_str()?.parse().ok()?;
        if inode_of(number) == Some(inode) && !descriptor::is_own(number) {
            return Some(true);
        }
    }
    Some(false)
}

/// Which inode a descriptor is of; `None`: it was just closed.
fn inode_of(number: RawFd) -> Option<u64> {
    let mut found = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the kernel knows which numbers are open, and fills in the place if this one is.
    let found =
        unsafe { (libc::fstat(number, found.as_mut_ptr()) == 0).then(|| found.assume_init()) };
    found.map(|found| found.st_ino)
}
