//! Waiting until another process changes a shared word: `futex(2)`, keyed by the file and the place
//! in it, so that neither addresses nor process ids matter.

#![expect(unsafe_code, reason = "futex(2)")]

use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nix::sys::time::TimeSpec;

/// The half of a word that the kernel looks at: the lower one.
fn lower_half(word: &AtomicU64) -> *mut u32 {
    let first = word.as_ptr().cast::<u32>();
    if cfg!(target_endian = "big") { first.wrapping_add(1) } else { first }
}

/// Waits while the word's lower half is that of `while_is`, for `time` at the most.
pub(super) fn wait(word: &AtomicU64, while_is: u64, time: Duration) {
    let begun = Instant::now();
    while word.load(Ordering::SeqCst) == while_is {
        let Some(left) = time.checked_sub(begun.elapsed()).filter(|left| !left.is_zero()) else {
            return;
        };
        let left_of_it = TimeSpec::from_duration(left);
        let expected = u32::try_from(while_is & u64::from(u32::MAX)).unwrap_or(0);
        let (place, timeout) = (lower_half(word), ptr::from_ref(left_of_it.as_ref()));
        // SAFETY: the word and the time live until the call returns; the kernel reads both.
        let result =
            unsafe { libc::syscall(libc::SYS_futex, place, libc::FUTEX_WAIT, expected, timeout) };
        if result != 0 {
            let error = nix::errno::Errno::last();
            let known = [libc::EAGAIN, libc::EINTR, libc::ETIMEDOUT];
            if !known.contains(&(error as i32)) {
                // A thread that can't wait for the word can still sleep.
                std::thread::sleep(left);
            }
        }
    }
}

/// Wakes everybody who waits for the word.
pub(super) fn wake(word: &AtomicU64) {
    // SAFETY: waking reads no memory; the address only names the place.
    unsafe {
        let none = ptr::null::<libc::timespec>();
        libc::syscall(libc::SYS_futex, lower_half(word), libc::FUTEX_WAKE, i32::MAX, none);
    }
}
