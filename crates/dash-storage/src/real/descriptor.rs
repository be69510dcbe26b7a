//! Who owns an open descriptor: a handle, the list of parked ones, or (after a fork) nobody.
//!
//! Every descriptor of this home is opened, parked and closed here, so that the list the fork
//! handler walks is complete.

#![expect(unsafe_code, reason = "takes parked descriptors back by their number")]

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};

use nix::errno::Errno;

use super::closing;
use super::fork::{self, Number};
use super::table::{Entry, Table};
use crate::FileId;

/// All descriptors of this process's handles, and the parked ones.
pub(super) static OWN: Table<Own> = Table::new();

static PARKED: AtomicUsize = AtomicUsize::new(0);

/// What the list knows of a descriptor: of which file it is, once that is known, and its mode while
/// it is parked.
#[derive(Default)]
pub(super) struct Own {
    pub(super) number: Number,
    device: AtomicU64,
    inode: AtomicU64,
    writable: AtomicBool,
}

impl Own {
    fn id(&self) -> FileId {
        let [device, inode] = [&self.device, &self.inode].map(|it| it.load(Ordering::Relaxed));
        FileId { device, inode }
    }

    fn is_of(&self, id: FileId) {
        self.device.store(id.device, Ordering::Relaxed);
        self.inode.store(id.inode, Ordering::Relaxed);
    }
}

/// An open descriptor that fails with EBADF in a forked child.
pub(super) struct Descriptor {
    file: Option<fs::File>,
    entry: &'static Entry<Own>,
    generation: u64,
}

impl Descriptor {
    /// Lists what `open` opens, with no fork in between.
    pub(super) fn open(open: impl FnOnce() -> io::Result<OwnedFd>) -> io::Result<Self> {
        let _inside = fork::inside();
        let file = fs::File::from(open()?);
        Ok(Self::list(file, OWN.claim()))
    }

    fn list(file: fs::File, entry: &'static Entry<Own>) -> Self {
        entry.value.is_of(FileId { device: 0, inode: 0 });
        entry.value.number.set(file.as_raw_fd());
        Self { file: Some(file), entry, generation: fork::generation() }
    }

    /// The open file, in the process that opened it.
    #[inline]
    pub(super) fn file(&self) -> io::Result<&fs::File> {
        match &self.file {
            Some(file) if self.generation == fork::generation() => Ok(file),
            _ => Err(Errno::EBADF.into()),
        }
    }

    /// Says of which file it is.
    pub(super) fn is_of(&self, id: FileId) {
        self.entry.value.is_of(id);
    }

    /// Closes it, unless somebody else in this process has the file open.
    pub(super) fn close_unless_shared(&mut self, id: FileId) -> bool {
        let _inside = fork::inside();
        closing::while_nobody_opens(|| {
            if !closing::is_open_otherwise(id.inode) {
                self.close();
            }
        });
        self.file.is_none()
    }

    fn close(&mut self) {
        let Some(file) = self.file.take() else { return };
        let _inside = fork::inside();
        if self.generation == fork::generation() {
            // In this order: the number may be somebody else's at once.
            self.entry.value.number.take();
            drop(file);
            self.entry.release();
        } else {
            // Closed already by the fork handler; the number may be somebody else's by now.
            let _ = file.into_raw_fd();
        }
    }

    /// Leaves the descriptor open and listed, to be closed or taken over later.
    pub(super) fn park(&mut self, id: FileId, writable: bool) {
        if self.generation != fork::generation() {
            return;
        }
        if let Some(file) = self.file.take() {
            let own = &self.entry.value;
            own.is_of(id);
            own.writable.store(writable, Ordering::Relaxed);
            own.number.set(file.into_raw_fd());
            PARKED.fetch_add(1, Ordering::Relaxed);
            self.entry.park();
        }
    }

    /// A parked descriptor of the same file and mode, if there is one.
    pub(super) fn unpark(id: FileId, writable: bool) -> Option<Self> {
        let _inside = fork::inside();
        parked().find_map(|entry| {
            let own = &entry.value;
            let same = own.id() == id && own.writable.load(Ordering::Relaxed) == writable;
            same.then(|| adopt(entry)).flatten()
        })
    }
}

/// Whether a number is that of a descriptor of this home, right now.
pub(super) fn is_own(fd: RawFd) -> bool {
    OWN.iter().any(|entry| entry.value.number.is(fd))
}

/// Whether anything is parked: a relaxed load, so that opening costs nothing when nothing is.
pub(super) fn any_parked() -> bool {
    PARKED.load(Ordering::Relaxed) != 0
}

/// In a forked child: its parked descriptors were closed by number.
pub(super) fn forget_parked() {
    PARKED.store(0, Ordering::Relaxed);
}

/// Closes the parked descriptors of files that nobody else in this process has open any more.
/// `leaves`: a handle of this file is about to go, or needs to be alone.
pub(super) fn close_parked(leaves: Option<FileId>) {
    // Again: who parks meanwhile takes those that are being closed for some that are in use.
    while close_some(leaves) {}
}

/// Whether any was closed.
fn close_some(leaves: Option<FileId>) -> bool {
    // Of many of one file it is asked once.
    let (mut wait, mut closed) = (HashMap::new(), false);
    for entry in parked().filter(|entry| entry.is_parked()) {
        let id = entry.value.id();
        if *wait.entry(id).or_insert_with(|| may_wait(id, u32::from(Some(id) == leaves))) {
            continue;
        }
        let writable = entry.value.writable.load(Ordering::Relaxed);
        let adopted = {
            let _inside = fork::inside();
            adopt(entry)
        };
        let Some(mut descriptor) = adopted else { continue };
        if descriptor.close_unless_shared(id) {
            closed = true;
        } else {
            descriptor.park(id, writable);
            wait.insert(id, true);
        }
    }
    closed
}

/// Whether a descriptor of a file may be parked without asking who has it open, which takes long
/// where a process has many: not more than others are in use, of which the last one asks. The next
/// one who opens the file takes it over. `besides`: so many more are about to be parked, or not in
/// use any more.
pub(super) fn may_wait(id: FileId, besides: u32) -> bool {
    // Of those who park the last two, one sees both.
    fence(Ordering::SeqCst);
    let (mut used, mut parked) = (0, 0);
    for entry in OWN.iter().filter(|entry| entry.value.id() == id) {
        used += u32::from(entry.is_owned());
        parked += u32::from(entry.is_parked());
    }
    parked + besides <= used
}

fn parked() -> impl Iterator<Item = &'static Entry<Own>> {
    OWN.iter().take(if any_parked() { usize::MAX } else { 0 })
}

/// Takes a parked entry's descriptor over. The caller holds back forks.
fn adopt(entry: &'static Entry<Own>) -> Option<Descriptor> {
    if !entry.unpark() {
        return None;
    }
    PARKED.fetch_sub(1, Ordering::Relaxed);
    let fd = entry.value.number.take()?;
    // SAFETY: parking gave up ownership of an open descriptor by `into_raw_fd` and listed its
    // number; unparking succeeds for one caller only, and `take` yields the number only once.
    let file = unsafe { fs::File::from_raw_fd(fd) };
    Some(Descriptor::list(file, entry))
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        self.close();
    }
}
