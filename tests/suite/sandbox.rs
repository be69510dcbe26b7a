//! What a test takes away from a process of its own, to see how dash does without.

#![expect(unsafe_code, reason = "a filter of system calls is installed by prctl")]

use nix::unistd::{Gid, Uid, setgid, setgroups, setuid};

/// Becomes another user for good.
pub fn become_user(user: u32, group: Option<u32>) {
    let groups: Vec<_> = group.into_iter().map(Gid::from_raw).collect();
    setgroups(&groups).expect("root may");
    setgid(Gid::from_raw(user)).expect("root may");
    setuid(Uid::from_raw(user)).expect("root may");
}

/// Sets the umask.
pub fn keep_from_new_files(bits: u32) {
    nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(bits));
}

const NUMBER: u32 = 0; // of struct seccomp_data

/// From here on `renameat2` with any flag answers EINVAL in this process, as on a file system that
/// can't exchange two names.
pub fn forbid_exchange() {
    const FLAGS: u32 = 16 + 4 * 8;
    filter(&mut [
        load(NUMBER),
        equal(libc::SYS_renameat2, 0, 3),
        load(FLAGS),
        equal(0, 1, 0),
        answer(libc::SECCOMP_RET_ERRNO, libc::EINVAL),
        answer(libc::SECCOMP_RET_ALLOW, 0),
    ]);
}

/// From here on `linkat` answers EPERM in this process, as on a file system without hard links.
pub fn forbid_links() {
    filter(&mut [
        load(NUMBER),
        equal(libc::SYS_linkat, 0, 1),
        answer(libc::SECCOMP_RET_ERRNO, libc::EPERM),
        answer(libc::SECCOMP_RET_ALLOW, 0),
    ]);
}

/// Has the kernel ask a program at every system call from here on, beside those it asks already.
fn filter(program: &mut [libc::sock_filter]) {
    let len = u16::try_from(program.len()).expect("small");
    let program = libc::sock_fprog { len, filter: program.as_mut_ptr() };
    let address: *const libc::sock_fprog = &raw const program;
    // SAFETY: plain numbers.
    let promised = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    assert_eq!(promised, 0, "{}", std::io::Error::last_os_error());
    // SAFETY: the kernel copies the program, which lives until the call returns. All threads: the
    // test harness runs a test on a thread of its own.
    let installed = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_TSYNC,
            address,
        )
    };
    assert_eq!(installed, 0, "{}", std::io::Error::last_os_error());
}

fn load(field: u32) -> libc::sock_filter {
    instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, field)
}

fn equal(number: libc::c_long, yes: u8, no: u8) -> libc::sock_filter {
    let number = u32::try_from(number).expect("small");
    instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, yes, no, number)
}

fn answer(action: u32, errno: i32) -> libc::sock_filter {
    instruction(libc::BPF_RET | libc::BPF_K, 0, 0, action | u32::try_from(errno).expect("small"))
}

fn instruction(code: u32, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter { code: u16::try_from(code).expect("small"), jt, jf, k }
}
