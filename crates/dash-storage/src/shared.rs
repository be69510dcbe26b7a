//! A shared handle is a file too: connections keep theirs in an [`Arc`].

use std::io::{self, IoSlice};
use std::ops::Range;
use std::sync::Arc;

use crate::{File, FileId, LockKind, Metadata};

impl<F: File> File for Arc<F> {
    type Map = F::Map;
    type Memory = F::Memory;
    type Persistent = F::Persistent;

    fn id(&self) -> FileId {
        F::id(self)
    }

    fn metadata(&self) -> io::Result<Metadata> {
        F::metadata(self)
    }

    fn cache_life(&self) -> Option<u64> {
        F::cache_life(self)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        F::read_at(self, buffer, offset)
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        F::write_at(self, data, offset)
    }

    fn write_vectored_at(&self, data: &[IoSlice<'_>], offset: u64) -> io::Result<()> {
        F::write_vectored_at(self, data, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        F::set_len(self, len)
    }

    fn punch(&self, range: Range<u64>) -> io::Result<()> {
        F::punch(self, range)
    }

    fn length_limit(&self) -> io::Result<u64> {
        F::length_limit(self)
    }

    fn free_space(&self) -> io::Result<u64> {
        F::free_space(self)
    }

    fn data_from(&self, offset: u64) -> io::Result<Option<Range<u64>>> {
        F::data_from(self, offset)
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        F::allocate(self, len)
    }

    fn make_room(&self, range: Range<u64>) -> io::Result<()> {
        F::make_room(self, range)
    }

    fn initialize(&self, range: Range<u64>) -> io::Result<()> {
        F::initialize(self, range)
    }

    fn make_direct(&self) -> io::Result<Option<u32>> {
        F::make_direct(self)
    }

    fn write_durable_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        F::write_durable_at(self, data, offset)
    }

    fn flush(&self) -> io::Result<()> {
        F::flush(self)
    }

    fn try_lock(&self, range: Range<u64>, kind: LockKind) -> io::Result<bool> {
        F::try_lock(self, range, kind)
    }

    fn unlock(&self, range: Range<u64>) -> io::Result<()> {
        F::unlock(self, range)
    }

    fn lock_conflict(&self, range: Range<u64>, kind: LockKind) -> io::Result<Option<i32>> {
        F::lock_conflict(self, range, kind)
    }

    fn lock_owners(&self, range: Range<u64>) -> io::Result<Vec<i32>> {
        F::lock_owners(self, range)
    }

    fn open_elsewhere(&self) -> io::Result<bool> {
        F::open_elsewhere(self)
    }

    fn clone_range(&self, source: &Self, range: Range<u64>) -> io::Result<()> {
        F::clone_range(self, source, range)
    }

    fn copy_access(&self, other: &Self) -> io::Result<bool> {
        F::copy_access(self, other)
    }

    fn has_access_of(&self, other: &Self) -> io::Result<bool> {
        F::has_access_of(self, other)
    }

    fn has_copied_access_of(&self, other: &Self) -> io::Result<bool> {
        F::has_copied_access_of(self, other)
    }

    fn has_users_of(&self, other: &Self) -> io::Result<bool> {
        F::has_users_of(self, other)
    }

    fn has_list_of(&self, other: &Self) -> io::Result<bool> {
        F::has_list_of(self, other)
    }

    fn mark_unlocked(&self) {
        F::mark_unlocked(self);
    }

    fn lets_write(&self, user: u32, group: u32) -> io::Result<bool> {
        F::lets_write(self, user, group)
    }

    fn lets_all_write(&self) -> io::Result<bool> {
        F::lets_all_write(self)
    }

    fn map(&self, len: u64) -> io::Result<Self::Map> {
        F::map(self, len)
    }

    fn map_persistent(&self, len: u64) -> io::Result<Self::Persistent> {
        F::map_persistent(self, len)
    }

    fn shared_memory(&self, words: usize) -> io::Result<Self::Memory> {
        F::shared_memory(self, words)
    }

    fn shared_region(&self, offset: u64, words: usize) -> io::Result<Self::Memory> {
        F::shared_region(self, offset, words)
    }
}
