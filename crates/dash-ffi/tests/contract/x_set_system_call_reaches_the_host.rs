//! The table of system calls, randomness and the clock are the host's own.

use crate::common::Database;
use core::ffi::CStr;
use rusqlite::ffi;

#[test]
fn x_set_system_call_reaches_the_host() {
    Database::new();
    // SAFETY: registered VFSes, called as sqlite3.h describes.
    unsafe {
        let (pass, unix) =
            (ffi::sqlite3_vfs_find(c"pass".as_ptr()), ffi::sqlite3_vfs_find(c"unix".as_ptr()));
        assert_eq!((*pass).iVersion, 3);
        let first = (*pass).xNextSystemCall.unwrap()(pass, core::ptr::null());
        assert_eq!(CStr::from_ptr(first), c"open");
        let (ours, theirs) = (
            (*pass).xGetSystemCall.unwrap()(pass, c"open".as_ptr()),
            (*unix).xGetSystemCall.unwrap()(unix, c"open".as_ptr()),
        );
        assert!(ours.is_some() && ours.map(|f| f as usize) == theirs.map(|f| f as usize));
        assert_eq!((*pass).xSetSystemCall.unwrap()(pass, c"no such call".as_ptr(), None), 12);
        assert_eq!((*pass).xSetSystemCall.unwrap()(pass, c"open".as_ptr(), None), 0);

        let mut bytes = [0_u8; 32];
        let filled = (*pass).xRandomness.unwrap()(pass, 32, bytes.as_mut_ptr().cast());
        assert_eq!(filled, 32);
        assert_ne!(bytes, [0; 32]);

        let (mut a, mut b, mut days) = (0_i64, 0_i64, 0.0_f64);
        assert_eq!((*pass).xCurrentTimeInt64.unwrap()(pass, &raw mut a), 0);
        assert_eq!((*unix).xCurrentTimeInt64.unwrap()(unix, &raw mut b), 0);
        assert_eq!((*pass).xCurrentTime.unwrap()(pass, &raw mut days), 0);
        assert!((b - a).abs() < 60_000 && (days - a as f64 / 86_400_000.0).abs() < 0.01);
        assert!((*pass).xSleep.unwrap()(pass, 1000) >= 1000);
        assert_eq!((*pass).mxPathname, (*unix).mxPathname);
    }
}

#[test]
fn loadable_libraries_open_through_the_host() {
    Database::new();
    // SAFETY: a registered VFS, called as sqlite3.h describes; an empty name is the program itself.
    unsafe {
        let pass = ffi::sqlite3_vfs_find(c"pass".as_ptr());
        let none = (*pass).xDlOpen.unwrap()(pass, c"/no/such/library.so".as_ptr());
        assert!(none.is_null());
        let mut message = [0_u8; 200];
        (*pass).xDlError.unwrap()(pass, 200, message.as_mut_ptr().cast());
        let text = CStr::from_bytes_until_nul(&message).unwrap().to_str().unwrap();
        assert!(text.contains("library.so"), "{text}");
        let libc = (*pass).xDlOpen.unwrap()(pass, c"libc.so.6".as_ptr());
        if !libc.is_null() {
            assert!((*pass).xDlSym.unwrap()(pass, libc, c"getpid".as_ptr()).is_some());
            (*pass).xDlClose.unwrap()(pass, libc);
        }
    }
}
