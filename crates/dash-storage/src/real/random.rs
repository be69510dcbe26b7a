//! Numbers nobody else draws, also not a forked child: straight from the kernel.

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io::Read;
use std::time::SystemTime;

use rustix::rand::{GetRandomFlags, getrandom};

/// A random number that is not zero.
pub(super) fn draw() -> u64 {
    loop {
        let number = kernel().or_else(device).unwrap_or_else(improvised);
        if number != 0 {
            return number;
        }
    }
}

fn kernel() -> Option<u64> {
    let mut bytes = [0; 8];
    // The system call itself: glibc has a function for it from 2.25 on.
    let got = getrandom(&mut bytes, GetRandomFlags::empty()).ok()?;
    (got == 8).then(|| u64::from_le_bytes(bytes))
}

/// For sandboxes that forbid the system call.
fn device() -> Option<u64> {
    let mut bytes = [0; 8];
    fs::File::open("/dev/urandom").ok()?.read_exact(&mut bytes).ok()?;
    Some(u64::from_le_bytes(bytes))
}

/// For sandboxes that forbid everything: the standard library's keys, which a fork would share,
/// mixed with what it does not share.
fn improvised() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    RandomState::new().hash_one((std::process::id(), now.map(|now| now.as_nanos()).ok()))
}
