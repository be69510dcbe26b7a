//! `Window`: pages of a file in memory that SQLite gets without a call of the file.
//!
//! A scan of a mapped database asks for a page and gives it back, 25,000 times for 100 MB; what the
//! door (`FileCell`) and the file's own look at its locks cost would be a multiple of what SQLite
//! does with the page. So a file says once from where on its pages lie in memory, and the
//! trampolines answer until it is called for anything else.
//!
//! Invariants: any pass through the door of the file closes its window first; only a call of the
//! file opens it. It holds numbers only, so nothing in it aliases the file. SQLite calls the
//! methods of one file one after the other; a visit (`with_file`) from another thread at worst
//! closes it.

use core::ffi::c_int;
use core::ops::Range;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Where a file's pages lie in memory, and how many of them SQLite has.
#[derive(Debug, Default)]
pub struct Window {
    /// Where the first byte of the file is.
    base: AtomicPtr<u8>,
    start: AtomicU64,
    /// 0: closed.
    end: AtomicU64,
    /// Pages that SQLite has, also from before the window was opened.
    out: AtomicUsize,
}

impl Window {
    /// Opens it: from now on SQLite may have `range` of the file, whose first byte lies at `base`.
    ///
    /// # Safety
    ///
    /// Until the file is called for anything but `fetch` and `unfetch`, these bytes are what `read`
    /// would give; and they stay mapped and readable until [`Window::pages_out`] is 0 and the
    /// window closed, or the file is closed.
    pub unsafe fn open(&self, base: NonNull<u8>, range: Range<u64>) {
        self.end.store(0, Relaxed);
        self.base.store(base.as_ptr(), Relaxed);
        self.start.store(range.start, Relaxed);
        self.end.store(range.end, Relaxed);
    }

    /// Closes it. SQLite keeps the pages it has.
    #[inline]
    pub fn close(&self) {
        self.end.store(0, Relaxed);
    }

    /// Closes it and forgets the pages given out: the file they were of is closed.
    pub fn reset(&self) {
        self.close();
        self.base.store(null_mut(), Relaxed);
        self.out.store(0, Relaxed);
    }

    /// Pages that SQLite has.
    pub fn pages_out(&self) -> usize {
        self.out.load(Relaxed)
    }

    /// Counts a page that the file itself gives out.
    #[inline]
    pub fn give_out(&self) {
        // Not one step, for which there is no need: see the invariants.
        self.out.store(self.out.load(Relaxed) + 1, Relaxed);
    }

    /// Counts a page that SQLite gives back; `false` if none is out.
    #[inline]
    pub fn take_back(&self) -> bool {
        let out = self.out.load(Relaxed);
        if let Some(left) = out.checked_sub(1) {
            self.out.store(left, Relaxed);
        }
        out > 0
    }

    /// Gives a page out, if it is in the window.
    #[inline]
    pub(crate) fn page(&self, offset: i64, amount: c_int) -> Option<NonNull<u8>> {
        let (start, amount) = (u64::try_from(offset).ok()?, u64::try_from(amount).ok()?);
        let end = start.checked_add(amount)?;
        if end > self.end.load(Relaxed) || start < self.start.load(Relaxed) {
            return None;
        }
        let offset = usize::try_from(start).ok()?;
        let page = NonNull::new(self.base.load(Relaxed).wrapping_add(offset))?;
        self.give_out();
        Some(page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_come_from_the_open_part_only() {
        let bytes = [0_u8; 64];
        let base = NonNull::from(&bytes).cast();
        let window = Window::default();
        assert_eq!(window.page(8, 8), None);
        // SAFETY: the array outlives the window's use.
        unsafe { window.open(base, 1..48) };
        assert_eq!(window.page(0, 8), None);
        assert_eq!(window.page(44, 8), None);
        assert_eq!(window.page(-8, 8), None);
        assert_eq!(window.page(8, -8), None);
        assert_eq!(window.page(i64::MAX, c_int::MAX), None);
        assert_eq!(window.page(40, 8).map(NonNull::addr), base.addr().checked_add(40));
        assert_eq!(window.pages_out(), 1);
        window.close();
        assert_eq!(window.page(40, 8), None);
        assert!(window.take_back());
        assert!(!window.take_back());
    }
}
