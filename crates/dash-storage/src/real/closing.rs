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
use std::io::ErrorKind;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit};
use nix::time::ClockId;

use super::retry::retry;
use super::{ending, files, lease};

/// Does something while others in this process open nothing, and take no lock through what they
/// have just opened; `false`: that could not be had within the time that is given, if one is, and
/// nothing was done.
pub type WhileNobodyOpens = fn(&mut dyn FnMut(), Option<Duration>) -> bool;

static OTHERS: OnceLock<WhileNobodyOpens> = OnceLock::new();

/// Says how others in this process, who take POSIX locks, are kept from opening files for a moment.
/// It is called where no fork comes into it, and must not close files of this home.
pub fn keep_out(others: WhileNobodyOpens) {
    let _ = most_descriptors();
    // Once for all.
    let _ = OTHERS.set(others);
}

/// How many threads are closing files, or wait for that.
static CLOSING: AtomicUsize = AtomicUsize::new(0);

/// When the descriptors of the process may be looked through again: where that takes long it has a
/// small part of the time.
#[derive(Default)]
pub(super) struct Looks {
    next: Option<Instant>,
}

/// A look that is short enough for any time, the part of the time that longer ones get, and the
/// longest pause.
const SHORT: Duration = Duration::from_millis(1);
const PART: u32 = 20;
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

impl Looks {
    pub(super) fn are_due(&self) -> bool {
        self.next.is_none_or(|next| Instant::now() >= next)
    }

    /// One took so much of a processor: what it had to wait for says nothing of the next one.
    fn have_had(&mut self, time: Duration) {
        let pause = time.saturating_sub(SHORT).saturating_mul(PART);
        self.next = Some(Instant::now() + pause.min(LONGEST_PAUSE));
    }
}

/// What this thread has had of the processors; zero where the system does not tell.
#[must_use]
pub fn processor_time() -> Duration {
    ClockId::CLOCK_THREAD_CPUTIME_ID.now().map(Duration::from).unwrap_or_default()
}

/// Does something while nobody opens files, as far as that can be had. One does so at a time. At
/// the end of the process it may not be done.
pub(super) fn while_nobody_opens(mut work: impl FnMut(&mut Looks)) {
    static ONE_BY_ONE: Mutex<Looks> = Mutex::new(Looks { next: None });
    CLOSING.fetch_add(1, Ordering::SeqCst);
    if let Some(mut looks) = ending::lock(&ONE_BY_ONE) {
        let mut work = || work(&mut looks);
        match OTHERS.get() {
            Some(others) if !others(&mut work, ending::patience()) => ending::gave_up(),
            Some(_) => {}
            None => work(),
        }
    }
    CLOSING.fetch_sub(1, Ordering::SeqCst);
}

/// Whether a thread is closing files: it may have some in hand that are parked no more.
pub(super) fn is_under_way() -> bool {
    CLOSING.load(Ordering::SeqCst) != 0
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
///
/// That may be put off for a file that somebody else has open for certain, here or in another
/// process: no file system is kept busy then that would not be, and no space taken. `must`: not for
/// others, which are left behind by the last one in use.
pub(super) fn not_open_otherwise(files: &[&fs::File], looks: &mut Looks, must: bool) -> Vec<bool> {
    // Not as it was when the file was opened: of a stacked file system both are asked alike.
    let ids: Vec<_> = files.iter().map(|file| id_of(file.as_raw_fd())).collect();
    let mut of_file: HashMap<_, Vec<_>> = HashMap::new();
    for (file, id) in files.iter().zip(&ids) {
        if let Seen::File(id) = id {
            of_file.entry(*id).or_default().push(*file);
        }
    }
    let (mut rest, mut now) = (HashSet::new(), looks.are_due());
    for (id, files) in of_file {
        // Of several that are one description, any may be asked.
        if !matches!(lease::open_elsewhere(files[0]), Ok(false)) {
            rest.insert(id);
            now |= must && files.len() > 1;
        }
    }
    let open = match rest.is_empty() {
        true => rest,
        false if now => {
            let begun = processor_time();
            let open = open_otherwise(&rest);
            looks.have_had(processor_time().saturating_sub(begun));
            open.unwrap_or(rest)
        }
        false => rest,
    };
    let is_free = |seen: &Seen| match seen {
        Seen::File(id) => !open.contains(id),
        // Nobody goes on on a file system that was shut down.
        Seen::Gone => true,
        Seen::Unknown => false,
    };
    ids.iter().map(is_free).collect()
}

/// Which of some files this process has open by a descriptor that is not of this home; `None`: that
/// can't be told.
fn open_otherwise(wanted: &HashSet<Id>) -> Option<HashSet<Id>> {
    let mut found = HashSet::new();
    // `None`: what it is can't be told.
    let mut look = |number| {
        match id_of(number) {
            Seen::File(id) if wanted.contains(&id) => {
                if !files::ours().is_some_and(|ours| ours.is_ours(number)) {
                    found.insert(id);
                }
            }
            Seen::File(_) | Seen::Gone => {}
            Seen::Unknown => return None,
        }
        Some(())
    };
    // The kernel says since 6.2 how many there are; before that it is 0.
    let is_few = fs::metadata(DESCRIPTORS).is_ok_and(|found| (1..=FEW).contains(&found.len()));
    if is_few {
        for entry in fs::read_dir(DESCRIPTORS).ok()? {
            look(entry.ok()?.file_name().to_str()?.parse().ok()?)?;
        }
    } else {
        (0..table_len()?).try_for_each(look)?;
    }
    Some(found)
}

/// Descriptors have lower numbers than this. Without `/proc`, lower ones than the most that the
/// process may ever have had.
fn table_len() -> Option<RawFd> {
    let most = most_descriptors();
    let len = match fs::read_to_string(STATUS) {
        Ok(status) => {
            let line = status.lines().find_map(|line| line.strip_prefix("FDSize:"))?;
            line.trim().parse().ok()?
        }
        // Not where no descriptor is left to read it by.
        Err(error) if error.kind() == ErrorKind::NotFound => most.filter(|len| *len <= LONGEST)?,
        Err(_) => return None,
    };
    RawFd::try_from(len).ok()
}

/// The highest limit on descriptors that was seen: some open all that they need, and lower it then.
fn most_descriptors() -> Option<u64> {
    static MOST: AtomicU64 = AtomicU64::new(0);
    let now = getrlimit(Resource::RLIMIT_NOFILE).ok()?.0;
    Some(MOST.fetch_max(now, Ordering::Relaxed).max(now))
}

/// What a number of a descriptor stands for.
enum Seen {
    File(Id),
    /// Nothing, or a file of a file system that is out of order.
    Gone,
    /// A sandbox lets nobody ask.
    Unknown,
}

/// What is gone says so by one of these.
const GONE: [Errno; 5] =
    [Errno::EBADF, Errno::EIO, Errno::ESHUTDOWN, Errno::ENOTCONN, Errno::ESTALE];

/// Of which file a descriptor is. One of another machine is not asked, which could take for ever.
fn id_of(number: RawFd) -> Seen {
    let mut found = MaybeUninit::<libc::statx>::uninit();
    let flags = libc::AT_EMPTY_PATH | libc::AT_STATX_DONT_SYNC | libc::AT_NO_AUTOMOUNT;
    let (path, mask, place) = (c"".as_ptr(), libc::STATX_INO, found.as_mut_ptr());
    let asked = retry(|| {
        // SAFETY: the kernel knows which numbers are open, and fills in the place if this one is.
        Errno::result(unsafe { libc::syscall(libc::SYS_statx, number, path, flags, mask, place) })
    });
    match asked.err() {
        None => {}
        Some(errno) if GONE.contains(&errno) => return Seen::Gone,
        // Linux before 4.11, or a sandbox, which answers what it likes.
        Some(_) => return id_by_fstat(number),
    }
    // SAFETY: it was filled in.
    let found = unsafe { found.assume_init() };
    Seen::File((libc::makedev(found.stx_dev_major, found.stx_dev_minor), found.stx_ino))
}

fn id_by_fstat(number: RawFd) -> Seen {
    let mut found = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: as above.
    match retry(|| Errno::result(unsafe { libc::fstat(number, found.as_mut_ptr()) })) {
        Ok(_) => {}
        Err(errno) if GONE.contains(&errno) => return Seen::Gone,
        Err(_) => return Seen::Unknown,
    }
    // SAFETY: it was filled in.
    let found = unsafe { found.assume_init() };
    Seen::File((found.st_dev, found.st_ino))
}
