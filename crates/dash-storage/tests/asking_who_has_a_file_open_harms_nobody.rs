//! Asking whether a file is open elsewhere takes a lease, and the kernel sends a signal to its
//! holder when somebody opens the file in that instant: by default SIGIO, which ends the process.

#![expect(unsafe_code, reason = "looks for the signal")]

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use dash_storage::real::Real;
use dash_storage::{Directory, File, OpenMode, Storage};

/// Questions asked while the process does with signals what it does by default.
const QUESTIONS: u64 = 20_000;
/// And at most until one is seen.
const MOST: u64 = 50_000_000;

static SIGNALS: AtomicU64 = AtomicU64::new(0);

extern "C" fn count(_: libc::c_int) {
    SIGNALS.fetch_add(1, Relaxed);
}

#[test]
fn not_even_while_others_open_it_all_the_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let directory = Real.open_directory(folder.path()).unwrap();
    let file = directory.open("db".as_ref(), OpenMode::Create { permissions: 0o644 }).unwrap();
    assert!(!file.open_elsewhere().unwrap());
    let mut opener = Command::new("sh")
        .args(["-c", "while kill -0 $PPID; do : <\"$0\"; : >>\"$0\"; done"])
        .arg(&path)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut answers = [0_u64; 2];
    let mut asked = 0;
    let mut ask = || {
        asked += 1;
        answers[usize::from(file.open_elsewhere().unwrap())] += 1;
        asked
    };
    while ask() < QUESTIONS {}
    // SAFETY: the handler does nothing but add to an atomic.
    unsafe { libc::signal(libc::SIGURG, count as *const () as libc::sighandler_t) };
    while SIGNALS.load(Relaxed) == 0 && ask() < MOST {}
    opener.kill().unwrap();
    opener.wait().unwrap();
    // SAFETY: back to what it was.
    unsafe { libc::signal(libc::SIGURG, libc::SIG_DFL) };
    println!("{answers:?}: not open, open; signals: {SIGNALS:?}");
    assert!(SIGNALS.load(Relaxed) > 0, "nobody opened it in such an instant: nothing is shown");
    assert!(answers.iter().all(|&count| count > 0), "{answers:?}");
    assert!(!file.open_elsewhere().unwrap());
}
