//! What a machine knows: inodes, open descriptions, processes, and what is set to go wrong.
//!
//! Everything here runs under the machine's lock, one operation at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io;
use std::path::{Component, Path};

use dash_storage::{FileId, FileKind};

use crate::data::Data;
use crate::errno;
use crate::fault::Faults;
use crate::inode::{Body, Inode};
use crate::journal::{Entry, Operation};
use crate::key::{Key, ROOT};
use crate::locks::{Locks, Owner};
use crate::names::Names;
use crate::page::PAGE;
use crate::settings::{Metadata, Settings};

pub(crate) struct State {
    pub(crate) settings: Settings,
    pub(crate) inodes: BTreeMap<Key, Inode>,
    pub(crate) faults: Faults,
    pub(crate) journal: Vec<Entry>,
    pub(crate) crash_points: Vec<u64>,
    pub(crate) steps: u64,
    pub(crate) cut: Option<u64>,
    next: u64,
    descriptions: BTreeMap<u64, (Key, u32)>,
    processes: u32,
    dead: BTreeSet<u32>,
    changed: bool,
}

impl State {
    pub(crate) fn new(settings: Settings) -> Self {
        let root = Inode::durable(ROOT.0, 0o755, Body::Directory(Names::default()));
        Self::restart(settings, BTreeMap::from([(ROOT, root)]), ROOT.0)
    }

    /// A machine that has these inodes, and never had a key above `last`.
    fn restart(settings: Settings, inodes: BTreeMap<Key, Inode>, last: u64) -> Self {
        Self {
            settings,
            inodes,
            faults: Faults::default(),
            journal: Vec::new(),
            crash_points: Vec::new(),
            steps: 0,
            cut: None,
            next: last,
            descriptions: BTreeMap::new(),
            processes: 0,
            dead: BTreeSet::new(),
            changed: false,
        }
    }

    /// The state of a new machine that has what is left of this one.
    pub(crate) fn successor(&self, inodes: BTreeMap<Key, Inode>) -> Self {
        Self::restart(self.settings, inodes, self.next)
    }

    /// The state of the same machine with all processes gone, and what only they had.
    pub(crate) fn killed(&self) -> Self {
        let left = |inode: &Inode| Inode {
            body: inode.body.clone(),
            locks: Locks::default(),
            words: inode.words.copy(),
            opens: 0,
            ..*inode
        };
        let inodes = self.inodes.iter().map(|(&key, inode)| (key, left(inode))).collect();
        let mut state = self.successor(inodes);
        state.collect();
        state
    }

    fn next(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Whether the power is on.
    pub(crate) fn is_on(&self) -> bool {
        self.cut.is_none_or(|cut| self.steps < cut)
    }

    /// Counts an operation; fails if the machine or the process can't do any.
    pub(crate) fn begin(&mut self, process: u32) -> io::Result<u64> {
        if !self.is_on() || self.dead.contains(&process) {
            return Err(errno(libc::EIO));
        }
        self.changed = false;
        self.steps += 1;
        Ok(self.steps - 1)
    }

    pub(crate) fn end(
        &mut self,
        step: u64,
        process: u32,
        operation: Operation,
        error: Option<i32>,
    ) {
        if self.changed {
            self.crash_points.push(step);
        }
        self.journal.push(Entry { step, process, operation, error });
    }

    pub(crate) fn new_process(&mut self) -> u32 {
        self.processes += 1;
        self.processes
    }

    pub(crate) fn kill(&mut self, process: u32) {
        self.dead.insert(process);
        let held = self.descriptions.iter().filter(|(_, (_, owner))| *owner == process);
        for description in held.map(|(&description, _)| description).collect::<Vec<_>>() {
            self.close(description);
        }
    }

    /// Opens a description of an inode.
    pub(crate) fn open(&mut self, key: Key, process: u32) -> io::Result<u64> {
        self.inode_mut(key)?.opens += 1;
        let description = self.next();
        self.descriptions.insert(description, (key, process));
        Ok(description)
    }

    /// Closes a description, if it is still there, and forgets its locks.
    pub(crate) fn close(&mut self, description: u64) {
        let Some((key, _)) = self.descriptions.remove(&description) else {
            return;
        };
        if let Some(inode) = self.inodes.get_mut(&key) {
            inode.locks.forget(Owner::Description(description));
        }
        self.release(key);
    }

    /// One open less.
    pub(crate) fn release(&mut self, key: Key) {
        if let Some(inode) = self.inodes.get_mut(&key) {
            inode.opens = inode.opens.saturating_sub(1);
            if inode.opens == 0 && !self.references().contains(&key) {
                self.inodes.remove(&key);
            }
        }
    }

    /// One open more, for stock descriptors.
    pub(crate) fn retain(&mut self, key: Key) {
        if let Some(inode) = self.inodes.get_mut(&key) {
            inode.opens += 1;
        }
    }

    /// All that is there is durable.
    pub(crate) fn write_back(&mut self) {
        for inode in self.inodes.values_mut() {
            inode.durable = true;
            match &mut inode.body {
                Body::File(data) => data.flush(),
                Body::Directory(names) => names.flush(),
            }
        }
        self.collect();
    }

    /// Forgets inodes that nobody can reach any more, not even after a power loss.
    pub(crate) fn collect(&mut self) {
        let references = self.references();
        self.inodes.retain(|key, inode| inode.opens > 0 || references.contains(key));
    }

    /// Inodes that a name stands for, or may stand for after a power loss.
    pub(crate) fn references(&self) -> BTreeSet<Key> {
        let directories = self.inodes.values().filter_map(|inode| match &inode.body {
            Body::Directory(names) => Some(names),
            Body::File(_) => None,
        });
        directories.flat_map(Names::references).chain([ROOT]).collect()
    }

    /// Makes an inode that no name stands for yet.
    pub(crate) fn create(&mut self, permissions: u32, body: Body) -> Key {
        let key = Key(self.next());
        let number = if self.settings.reuse_numbers { self.lowest_free_number() } else { key.0 };
        self.inodes.insert(key, Inode::new(number, permissions, body));
        key
    }

    fn lowest_free_number(&self) -> u64 {
        let live =
            self.inodes.iter().filter(|(key, inode)| inode.opens > 0 || self.links(**key) > 0);
        let used: BTreeSet<u64> = live.map(|(_, inode)| inode.number).chain([ROOT.0]).collect();
        (ROOT.0..).find(|number| !used.contains(number)).unwrap_or(self.next)
    }

    /// Makes an inode durable: by a flush of the file, or directory, that it is.
    pub(crate) fn keep(&mut self, key: Key) -> io::Result<()> {
        if !self.inode(key)?.durable {
            self.changed = true;
            self.inode_mut(key)?.durable = true;
        }
        Ok(())
    }

    /// Whether the device may have the inode and may not have it: it is new, or nothing names it
    /// any more.
    pub(crate) fn is_uncertain(&self, key: Key) -> bool {
        let unnamed = || key != ROOT && self.links(key) == 0;
        self.settings.metadata != Metadata::Journaled
            && self.inodes.get(&key).is_some_and(|inode| !inode.durable || unnamed())
    }

    pub(crate) fn links(&self, key: Key) -> u64 {
        let directories = self.inodes.values().map(|inode| match &inode.body {
            Body::Directory(names) => names.iter().filter(|(_, named)| *named == key).count(),
            Body::File(_) => 0,
        });
        directories.sum::<usize>() as u64
    }

    pub(crate) fn inode(&self, key: Key) -> io::Result<&Inode> {
        self.inodes.get(&key).ok_or_else(|| errno(libc::ENOENT))
    }

    pub(crate) fn inode_mut(&mut self, key: Key) -> io::Result<&mut Inode> {
        self.inodes.get_mut(&key).ok_or_else(|| errno(libc::ENOENT))
    }

    pub(crate) fn data(&self, key: Key) -> io::Result<&Data> {
        match &self.inode(key)?.body {
            Body::File(data) => Ok(data),
            Body::Directory(_) => Err(errno(libc::EISDIR)),
        }
    }

    /// A file's data, to change it or what a power loss would leave of it.
    pub(crate) fn data_mut(&mut self, key: Key) -> io::Result<&mut Data> {
        self.changed = true;
        self.touch(key);
        let inode = self.inode_mut(key)?;
        inode.written = inode.changed;
        match &mut inode.body {
            Body::File(data) => Ok(data),
            Body::Directory(_) => Err(errno(libc::EISDIR)),
        }
    }

    /// Writes into the cache.
    pub(crate) fn write(&mut self, key: Key, data: &[u8], offset: u64) -> io::Result<()> {
        self.check_space(key, offset, data.len() as u64)?;
        self.data_mut(key)?.write(data, offset);
        self.inode(key)?.words.write(data, offset);
        Ok(())
    }

    /// Its content or one of its names changes now.
    pub(crate) fn touch(&mut self, key: Key) {
        let now = self.next();
        if let Some(inode) = self.inodes.get_mut(&key) {
            inode.changed = now;
        }
    }

    pub(crate) fn names(&self, key: Key) -> io::Result<&Names> {
        match &self.inode(key)?.body {
            Body::Directory(names) => Ok(names),
            Body::File(_) => Err(errno(libc::ENOTDIR)),
        }
    }

    /// A directory's names, to change them or what a power loss would leave of them.
    pub(crate) fn names_mut(&mut self, key: Key) -> io::Result<&mut Names> {
        self.changed = true;
        match &mut self.inode_mut(key)?.body {
            Body::Directory(names) => Ok(names),
            Body::File(_) => Err(errno(libc::ENOTDIR)),
        }
    }

    /// What a name stands for; ENOENT if it stands for nothing.
    pub(crate) fn look_up(&self, directory: Key, name: &OsStr) -> io::Result<Key> {
        self.names(directory)?.get(name).ok_or_else(|| errno(libc::ENOENT))
    }

    /// What a path stands for, from the root.
    pub(crate) fn resolve(&self, path: &Path) -> io::Result<Key> {
        let names = path.components().filter_map(|component| match component {
            Component::Normal(name) => Some(name),
            _ => None,
        });
        names.into_iter().try_fold(ROOT, |key, name| self.look_up(key, name))
    }

    pub(crate) fn metadata(&self, key: Key) -> io::Result<dash_storage::Metadata> {
        let inode = self.inode(key)?;
        let (kind, len) = match &inode.body {
            Body::File(data) => (FileKind::Regular, data.len()),
            Body::Directory(_) => (FileKind::Directory, 0),
        };
        let id = FileId { device: 1, inode: inode.number };
        let permissions = inode.permissions;
        let links = self.links(key);
        let (changed, written) = inode.times();
        let (owner, group) = (0, 0);
        Ok(dash_storage::Metadata {
            id,
            kind,
            len,
            links,
            permissions,
            owner,
            group,
            changed,
            written,
        })
    }

    /// EROFS on a machine that is set so.
    pub(crate) fn check_writable(&self) -> io::Result<()> {
        if self.settings.read_only { Err(errno(libc::EROFS)) } else { Ok(()) }
    }

    /// ENOSPC if the device has no room for `len` more bytes at `offset` of a file.
    pub(crate) fn check_space(&self, key: Key, offset: u64, len: u64) -> io::Result<()> {
        let Some(capacity) = self.settings.capacity else {
            return Ok(());
        };
        let used = self.inodes.iter().map(|(&other, inode)| match &inode.body {
            Body::File(data) => data.used((other == key).then_some((offset, len))),
            Body::Directory(_) => 0,
        });
        if used.sum::<u64>() * PAGE > capacity { Err(errno(libc::ENOSPC)) } else { Ok(()) }
    }
}
