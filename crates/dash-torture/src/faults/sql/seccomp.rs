//! The kernel asks before a thread makes a system call: seccomp's user notification. It needs no
//! root, works on any file system, and sees the calls of the real `libdash.so` and of SQLite alike.
//!
//! The asking thread and the answering one are threads of one process, so the answering one may
//! look at the arguments, and may make part of a call on its own.

#![expect(unsafe_code, reason = "seccomp has no safe interface")]

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::call::{self, Call};

/// Where a classic BPF program finds the number of a call in `struct seccomp_data`.
const NUMBER: u32 = 0;
/// Where it finds the lower half of the fifth argument, of `mmap` the descriptor (little-endian).
const FIFTH: u32 = 16 + 4 * 8;

fn step(code: u32, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter { code: u16::try_from(code).unwrap_or_default(), jt, jf, k }
}

/// Asks for the calls of storage, lets all else pass. Memory that is no file's passes here and not
/// only later: an allocator may hold a lock meanwhile that the answering thread needs.
fn program() -> Vec<libc::sock_filter> {
    let (load, equal, answer) = (
        libc::BPF_LD | libc::BPF_W | libc::BPF_ABS,
        libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
        libc::BPF_RET | libc::BPF_K,
    );
    let map = u32::try_from(libc::SYS_mmap).unwrap_or_default();
    let mut program = vec![
        step(load, 0, 0, NUMBER),
        step(equal, 0, 4, map),
        step(load, 0, 0, FIFTH),
        step(equal, 0, 1, u32::MAX),
        step(answer, 0, 0, libc::SECCOMP_RET_ALLOW),
        step(answer, 0, 0, libc::SECCOMP_RET_USER_NOTIF),
    ];
    for number in call::numbers().filter(|&number| number != map) {
        program.push(step(equal, 0, 1, number));
        program.push(step(answer, 0, 0, libc::SECCOMP_RET_USER_NOTIF));
    }
    program.push(step(answer, 0, 0, libc::SECCOMP_RET_ALLOW));
    program
}

/// From now on this thread, and threads that it starts, ask before each call of storage. There is
/// no way back: the thread has to end.
///
/// # Errors
///
/// Where the kernel has no such thing, or does not let this process have it.
pub fn ask_from_now_on() -> io::Result<Listener> {
    let mut program = program();
    let len = u16::try_from(program.len()).map_err(|_| Errno::EINVAL)?;
    let filter = libc::sock_fprog { len, filter: program.as_mut_ptr() };
    // SAFETY: takes no pointers; the thread gives up a right that it does not use.
    Errno::result(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) })?;
    // SAFETY: `filter` points to a program of `len` steps; both live until the call returns.
    let listener = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
            ptr::from_ref(&filter),
        )
    };
    let listener = i32::try_from(Errno::result(listener)?).map_err(|_| Errno::EBADF)?;
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(Listener(unsafe { OwnedFd::from_raw_fd(listener) }))
}

/// Where the questions arrive.
pub struct Listener(OwnedFd);

/// What a thread is told instead of, or before, its call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The kernel carries it out.
    GoOn,
    /// It failed with this errno.
    Fail(i32),
    /// It returned this.
    Return(i64),
}

impl Listener {
    /// Answers questions until nobody is left who could ask one. Calls that are not of storage go
    /// on without a word.
    ///
    /// # Errors
    ///
    /// If the kernel stops talking.
    pub fn answer(&self, mut decide: impl FnMut(&Call) -> Answer) -> io::Result<()> {
        loop {
            let mut ready = [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)];
            match poll(&mut ready, PollTimeout::NONE) {
                Err(Errno::EINTR) => continue,
                other => other?,
            };
            let events = ready[0].revents().unwrap_or(PollFlags::empty());
            if !events.contains(PollFlags::POLLIN) {
                return Ok(()); // the last one has hung up
            }
            let Some(question) = self.receive()? else { continue };
            let call = Call::of(question.pid, question.data.nr, question.data.args);
            let answer = call.map_or(Answer::GoOn, |call| decide(&call));
            self.send(question.id, answer)?;
        }
    }

    fn receive(&self) -> io::Result<Option<libc::seccomp_notif>> {
        // SAFETY: all zeros is what the kernel wants to find in this plain structure.
        let mut question: libc::seccomp_notif = unsafe { std::mem::zeroed() };
        // SAFETY: the descriptor is a seccomp listener, the structure the one it fills.
        let received = unsafe {
            libc::ioctl(self.0.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut question)
        };
        match Errno::result(received) {
            Ok(_) => Ok(Some(question)),
            // The thread that asked was killed, or a signal came.
            Err(Errno::ENOENT | Errno::EINTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn send(&self, id: u64, answer: Answer) -> io::Result<()> {
        // SAFETY: a plain structure of numbers.
        let mut response: libc::seccomp_notif_resp = unsafe { std::mem::zeroed() };
        response.id = id;
        match answer {
            Answer::GoOn => {
                response.flags = u32::try_from(libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE).unwrap_or(1);
            }
            Answer::Fail(errno) => response.error = -errno,
            Answer::Return(value) => response.val = value,
        }
        // SAFETY: as in `receive`; the structure is only read.
        let sent = unsafe {
            libc::ioctl(self.0.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut response)
        };
        match Errno::result(sent) {
            Ok(_) | Err(Errno::ENOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Makes the first half of a read or write, and answers how much it was; `None` if there is no
/// half.
pub fn half(call: &Call) -> Option<i64> {
    let descriptor = call.descriptor(0);
    let size = |bytes: u64| usize::try_from(bytes).ok();
    let place = libc::off_t::try_from(call.arguments[3]).ok()?;
    let address = |at: u64| size(at).map(ptr::with_exposed_provenance_mut::<libc::c_void>);
    let number = libc::c_long::from(call.number);
    let (start, len) = if number == libc::SYS_pwritev {
        let first = ptr::with_exposed_provenance::<libc::iovec>(size(call.arguments[1])?);
        // SAFETY: the second argument of a `pwritev` that a thread of this process is blocked in;
        // SQLite and dash never pass none.
        let first = unsafe { first.read() };
        (first.iov_base, first.iov_len / 2)
    } else {
        (address(call.arguments[1])?, size(call.arguments[2])? / 2)
    };
    if len == 0 {
        return None;
    }
    // SAFETY: the buffer is the caller's, who waits for the answer; this is less than it asked for.
    let done = unsafe {
        match number {
            libc::SYS_pread64 => libc::pread(descriptor, start, len, place),
            libc::SYS_pwrite64 | libc::SYS_pwritev => libc::pwrite(descriptor, start, len, place),
            _ => return None,
        }
    };
    i64::try_from(done).ok().filter(|&done| done > 0)
}
