//! Another process, stopped before and after each of its system calls, so that a test sees what
//! anybody could see at any instant.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use nix::sys::ptrace::{self, Options};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

/// Looks on.
pub struct Steps {
    thread: JoinHandle<(usize, Vec<String>)>,
    over: Arc<AtomicBool>,
}

impl Steps {
    /// Looks on from here on, as `look` says, which answers what must not be.
    pub fn of(process: u32, look: impl FnMut() -> Vec<String> + Send + 'static) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let (ends, (begun, begins)) = (Arc::clone(&over), channel());
        // Only the thread that has begun may go on.
        let thread = std::thread::spawn(move || follow(process, &begun, look, &ends));
        begins.recv().expect("it is followed");
        Self { thread, over }
    }

    /// Ends, once `nudge` has had the process make a call. How often it was looked at, and what
    /// `look` has answered, each once.
    pub fn end(self, nudge: impl FnOnce()) -> (usize, Vec<String>) {
        self.over.store(true, SeqCst);
        nudge();
        self.thread.join().expect("it was followed to its end")
    }
}

fn follow(
    process: u32,
    begun: &Sender<()>,
    mut look: impl FnMut() -> Vec<String>,
    over: &AtomicBool,
) -> (usize, Vec<String>) {
    let options = Options::PTRACE_O_TRACESYSGOOD | Options::PTRACE_O_TRACECLONE;
    let mut threads = BTreeSet::new();
    for thread in std::fs::read_dir(format!("/proc/{process}/task")).expect("it lives") {
        let number = thread.expect("readable").file_name();
        let thread = Pid::from_raw(number.to_str().and_then(|it| it.parse().ok()).expect("one"));
        ptrace::seize(thread, options).expect("root may");
        ptrace::interrupt(thread).expect("it is ours");
        threads.insert(thread);
    }
    begun.send(()).expect("it is waited for");
    let (mut seen, mut found, mut ends) = (0, Vec::new(), false);
    // Only what this thread follows.
    let how = WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD;
    while !threads.is_empty() {
        let Ok(status) = waitpid(None, Some(how)) else { break };
        let (thread, signal) = match status {
            WaitStatus::Exited(thread, _) | WaitStatus::Signaled(thread, ..) => {
                threads.remove(&thread);
                continue;
            }
            WaitStatus::Stopped(thread, signal) if signal != Signal::SIGTRAP => {
                (thread, Some(signal))
            }
            other => (other.pid().expect("somebody's"), None),
        };
        threads.insert(thread);
        if matches!(status, WaitStatus::PtraceSyscall(_)) {
            seen += 1;
            for what in look() {
                if !found.contains(&what) {
                    found.push(what);
                }
            }
        }
        if over.load(SeqCst) {
            threads.remove(&thread);
            // It may have been killed meanwhile.
            let _ = ptrace::detach(thread, signal);
            if !std::mem::replace(&mut ends, true) {
                threads.retain(|other| ptrace::interrupt(*other).is_ok());
            }
        } else {
            let _ = ptrace::syscall(thread, signal);
        }
    }
    (seen, found)
}
