//! Whether closing a descriptor could drop locks that this process still needs.
//!
//! `close(2)` of *any* descriptor of an inode drops all POSIX locks that the process has on it,
//! through whatever descriptor they were taken. A stock SQLite connection in the same process has
//! just such locks. So ours are parked while anybody else in the process has the inode open.
//! Whether he has locks is not asked, as he may take some at any moment. Whoever opens it just then
//! is kept out, as far as he is known ([`keep_out`]).

#![expect(unsafe_code, reason = "looks at descriptors that are not ours")]

use std::collections::{HashMap, HashSet};
use std::fs;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit};

use super::{ending, files, lease};

/// Does something while others in this process open nothing, and take no lock through what they
/// have just opened; `false`: that could not be had within the time that is given, if one is, and
/// nothing was done.
pub type WhileNobodyOpens = fn(&mut dyn FnMut(), Option<Duration>) -> bool;

static OTHERS: OnceLock<WhileNobodyOpens> = OnceLock::new();

/// Says how others in this process, who take POSIX locks, are kept from opening files for a moment.
/// It is called where no fork comes into it, and must not close files of this home.
pub fn keep_out(others: WhileNobodyOpens) {
    // Once for all.
    let _ = OTHERS.set(others);
}

/// Does something while nobody opens files, as far as that can be had. One does so at a time. At
/// the end of the process it may not be done.
pub(super) fn while_nobody_opens(mut work: impl FnMut()) {
    static ONE_BY_ONE: Mutex<()> = Mutex::new(());
    let Some(_one) = ending::lock(&ONE_BY_ONE) else { return };
    match OTHERS.get() {
        Some(others) if !others(&mut work, ending::patience()) => ending::gave_up(),
        Some(_) => {}
        None => work(),
    }
}

/// The descriptors of this thread's process, and what the kernel says of it. Those of `/proc/self`
/// are gone once its first thread has ended.
const DESCRIPTORS: &str = "/proc/thread-self/fd";
const STATUS: &str = "/proc/thread-self/status";

/// So many descriptors are looked up in the folder: it costs some microseconds for each of them, a
/// number that may be open or not a tenth of one.
const FEW: u64 = 128;

/// The longest table of descriptors that is gone through without being told how long it is.
const LONGEST: u64 = 1 << 20;

/// A file as the kernel names it to this process: device and inode number.
type Id = (u64, u64);

/// Of some descriptors of this home, those whose file nobody else in this process has open; when
/// in doubt, somebody has. A file that has no other descriptor in any process is found at the cost
/// of a lease, and all others together by one look at the descriptors of the process.
pub(super) fn not_open_otherwise(files: &[&fs::File]) -> Vec<bool> {
    // Not as it was when the file was opened: of a stacked file system both are asked alike.
    let ids: Vec<_> = files.iter().map(|file| id_of(file.as_raw_fd())).collect();
    let mut asked = HashMap::new();
    for (file, id) in files.iter().zip(&ids) {
        // Of several of a file that are one description, any may be asked.
        let is_alone = || matches!(lease::open_elsewhere(file), Ok(false));
        // A file system that was shut down answers nothing, and nobody goes on there.
        asked.entry(*id).or_insert_with(|| id.is_none() || is_alone());
    }
    let rest: HashSet<_> =
        asked.iter().filter_map(|(id, is_alone)| id.filter(|_| !is_alone)).collect();
    let open = if rest.is_empty() { Some(rest) } else { open_otherwise(&rest) };
    let is_free = |id: &Option<Id>| {
        asked[id] || open.as_ref().is_some_and(|open| !id.is_some_and(|id| open.contains(&id)))
    };
    ids.iter().map(is_free).collect()
}

/// Which of some files this process has open by a descriptor that is not of this home; `None`: that
/// can't be told.
fn open_otherwise(wanted: &HashSet<Id>) -> Option<HashSet<Id>> {
    let mut found = HashSet::new();
    let mut look = |number| {
        if let Some(id) = id_of(number).filter(|id| wanted.contains(id))
            && !files::ours().is_some_and(|ours| ours.is_ours(number))
        {
            found.insert(id);
        }
    };
    // The kernel says since 6.2 how many there are; before that it is 0.
    let is_few = fs::metadata(DESCRIPTORS).is_ok_and(|found| (1..=FEW).contains(&found.len()));
    if is_few {
        for entry in fs::read_dir(DESCRIPTORS).ok()? {
            look(entry.ok()?.file_name().to_str()?.parse().ok()?);
        }
    } else {
        (0..table_len()?).for_each(look);
    }
    Some(found)
}

/// Descriptors have lower numbers than this. Without `/proc`, lower ones than the most that the
/// process may have, unless that was lowered since.
fn table_len() -> Option<RawFd> {
    let told = fs::read_to_string(STATUS).ok().and_then(|status| {
        let line = status.lines().find_map(|line| line.strip_prefix("FDSize:"))?;
        line.trim().parse::<u64>().ok()
    });
    let len = match told {
        Some(len) => len,
        None => getrlimit(Resource::RLIMIT_NOFILE).ok()?.0,
    };
    (told.is_some() || len <= LONGEST).then(|| RawFd::try_from(len).ok()).flatten()
}

/// Of which file a descriptor is; `None`: it is not open.
fn id_of(number: RawFd) -> Option<Id> {
    let mut found = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the kernel knows which numbers are open, and fills in the place if this one is.
    let found =
        unsafe { (libc::fstat(number, found.as_mut_ptr()) == 0).then(|| found.assume_init()) };
    found.map(|found| (found.st_dev, found.st_ino))
}
