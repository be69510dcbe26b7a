//! Who owns an open descriptor: a handle, the list of parked ones, or (after a fork) nobody.
//!
//! Every descriptor of this home is opened, parked and closed here, so that the list the fork
//! handler walks is complete.

#![expect(unsafe_code, reason = "takes parked descriptors back by their number")]

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};

use nix::errno::Errno;

use super::closing;
use super::files::{self, Parked};
use super::fork::{self, Number, OWN};
use super::standard;
use super::table::Entry;
use crate::FileId;

/// An open descriptor that fails with EBADF in a forked child.
pub(super) struct Descriptor {
    file: Option<fs::File>,
    /// Of which file it is, where that counts.
    id: Option<FileId>,
    entry: &'static Entry<Number>,
    generation: u64,
}

impl Descriptor {
    /// Lists what `open` opens, with no fork in between.
    pub(super) fn open(open: impl FnOnce() -> io::Result<OwnedFd>) -> io::Result<Self> {
        let _inside = fork::inside();
        let file = fs::File::from(standard::kept_off(open()?)?);
        if let Some(mut ours) = files::ours() {
            ours.number_is_ours(file.as_raw_fd());
        }
        let entry = OWN.claim();
        entry.value.set(file.as_raw_fd());
        Ok(Self { file: Some(file), id: None, entry, generation: fork::forks() })
    }

    /// The open file, in the process that opened it.
    #[inline]
    pub(super) fn file(&self) -> io::Result<&fs::File> {
        match &self.file {
            Some(file) if self.generation == fork::forks() => Ok(file),
            _ => Err(Errno::EBADF.into()),
        }
    }

    /// Says of which file it is: it is in use.
    pub(super) fn is_of(&mut self, id: FileId) {
        if self.id.is_none()
            && self.generation == fork::forks()
            && let Some(mut ours) = files::ours()
        {
            ours.begins(id);
            self.id = Some(id);
        }
    }

    /// Closes it, if nobody else in this process has the file open, or parks it; some that are
    /// parked are closed with it. `as_usual`: as whoever takes it over wants it.
    pub(super) fn close_or_park(&mut self, writable: bool, as_usual: impl FnOnce(&fs::File)) {
        let (Some(id), Ok(_)) = (self.id, self.file()) else {
            // Of which file it is was not said: the process ends.
            return self.leave();
        };
        let Some(waits) = files::ours().map(|ours| ours.may_wait(id, 2)) else {
            return self.leave();
        };
        let own = Some((self.take(), writable));
        let left = if waits { own } else { close_due(own, Some(id)) };
        if let Some((own, writable)) = left
            && let Ok(file) = own.file()
        {
            as_usual(file);
            own.park(writable);
        }
        // Another thread may have parked one meanwhile, and taken this one for one in use.
        close_parked(None);
    }

    /// Itself, and nothing in its place.
    fn take(&mut self) -> Self {
        let (entry, generation) = (self.entry, self.generation);
        Self { file: self.file.take(), id: self.id.take(), entry, generation }
    }

    /// Leaves it to the end of the process.
    fn leave(&mut self) {
        self.file.take().map(IntoRawFd::into_raw_fd);
    }

    /// Closes it, whoever has the file open.
    pub(super) fn close(&mut self) {
        let Some(file) = self.file.take() else { return };
        let _inside = fork::inside();
        if self.generation == fork::forks() {
            // In this order: the number may be somebody else's at once.
            if let Some(mut ours) = files::ours() {
                ours.number_is_free(file.as_raw_fd(), self.id);
            }
            self.entry.value.take();
            drop(file);
            self.entry.release();
        } else {
            // Closed already by the fork handler; the number may be somebody else's by now.
            let _ = file.into_raw_fd();
        }
    }

    /// Leaves the descriptor open and listed, to be closed or taken over later.
    fn park(mut self, writable: bool) {
        if self.generation != fork::forks() {
            return;
        }
        let Some(mut ours) = files::ours() else { return self.leave() };
        if let (Some(id), Some(file)) = (self.id, self.file.take()) {
            ours.park(id, Parked { number: file.into_raw_fd(), entry: self.entry, writable });
        }
    }

    /// A parked descriptor of the same file and mode, if there is one.
    pub(super) fn unpark(id: FileId, writable: bool) -> Option<Self> {
        let parked = files::ours()?.unpark(id, writable)?;
        Some(adopt(id, &parked))
    }
}

/// Closes the parked descriptors of files that nobody else in this process has open any more.
/// `leaves`: a handle of this file needs to be alone.
pub(super) fn close_parked(leaves: Option<FileId>) {
    // Again: who parks meanwhile takes those that are being closed for some that are in use.
    let is_due = || files::ours().is_some_and(|ours| ours.are_due(leaves));
    // In this order: what another thread has taken to close it is not parked, and not closed yet.
    while files::any_parked() && is_due() || closing::is_under_way() {
        let before = files::parked();
        close_due(None, leaves);
        if files::parked() >= before {
            break;
        }
    }
}

/// Closes what must not wait any longer, by one look for all of them, and parks what somebody else
/// in this process has open; `own` is closed with them, or returned. `leaves`: of this file in any
/// case.
fn close_due(
    own: Option<(Descriptor, bool)>,
    leaves: Option<FileId>,
) -> Option<(Descriptor, bool)> {
    let _inside = fork::inside();
    let mut own = own;
    closing::while_nobody_opens(|looks| {
        let all = looks.are_due();
        let (due, is_last) = files::ours().map_or_else(Default::default, |mut ours| {
            let is_last = leaves.is_some_and(|id| ours.used(id) <= 1);
            (ours.take_due(leaves, all), is_last)
        });
        let mut closing: Vec<_> =
            due.iter().map(|(id, parked)| (adopt(*id, parked), parked.writable)).collect();
        let is_own = own.is_some();
        closing.extend(own.take());
        let files: Vec<_> = closing.iter().filter_map(|(it, _)| it.file().ok()).collect();
        let answers = closing::not_open_otherwise(&files, looks, is_last);
        let open = closing.iter_mut().filter(|(it, _)| it.file().is_ok());
        for ((descriptor, _), _) in open.zip(answers).filter(|(_, is_free)| *is_free) {
            descriptor.close();
        }
        own = if is_own { closing.pop() } else { None };
        for (descriptor, writable) in closing {
            descriptor.park(writable);
        }
    });
    own.filter(|(descriptor, _)| descriptor.file.is_some())
}

/// Takes a descriptor over that is parked no more, and counts as one in use. It was opened in this
/// process: what another one had parked is in another list.
fn adopt(id: FileId, parked: &Parked) -> Descriptor {
    // SAFETY: parking gave up ownership of an open descriptor by `into_raw_fd`, and one caller only
    // is given it back.
    let file = unsafe { fs::File::from_raw_fd(parked.number) };
    let (entry, generation) = (parked.entry, fork::forks());
    Descriptor { file: Some(file), id: Some(id), entry, generation }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        self.close();
    }
}
