//! What a connection is told that got `SQLITE_BUSY`: who was in the way, since when, what to do.
//!
//! SQLite's busy handler asks for a lock again every few milliseconds, and most refusals are over
//! by then. So an attempt that fails is only noted here, with what the engine knows without a
//! system call. Who it was is looked for when `dash_last_error()` asks, and for the error log when
//! SQLite has given up:
//!
//! - after the busy handler's last sleep, which is shorter than it would be otherwise;
//! - when the next call of this thread is no sleep: there is no busy handler, or none that sleeps
//!   through the VFS (a program's own), or SQLite asked none (a transaction that has read before);
//! - and once a second meanwhile.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError, Weak};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use dash_engine::open::shell_word;
use dash_ffi::{Code, HostVfs, explain, in_folder_of, last_error_at};
use dash_storage::real;

use crate::errors_to;
use crate::holders::{InTheWay, Wanted, in_the_way, seconds};

/// How often the log hears of one that still waits, or asks by itself again and again.
const TOLD_AGAIN: Duration = Duration::from_secs(1);

/// An attempt that failed.
pub struct Refusal {
    /// The database's path.
    pub path: PathBuf,
    /// Where the log is.
    pub host: HostVfs,
    /// What for.
    pub wanted: Wanted,
    /// What the database knows of who is in the way.
    pub by: InTheWay,
}

/// It, and what became of it.
struct Noted {
    refusal: Refusal,
    thread: ThreadId,
    /// The first attempt in a row.
    since: Instant,
    /// The last one.
    at: Instant,
    /// Whether the thread has slept since the last one.
    slept: bool,
    /// Whether it did before.
    waited: bool,
    /// Whether who asked has heard of it.
    is_told: bool,
    /// Whether the log has heard of it.
    is_logged: bool,
    /// How often the process had come out of a fork.
    forks: u64,
}

/// What a connection was refused last, and has not got since.
#[derive(Default)]
pub struct Refused {
    noted: Option<Arc<Mutex<Noted>>>,
    logged_at: Option<Instant>,
}

thread_local! {
    /// What was refused last in this thread.
    static LAST: RefCell<Weak<Mutex<Noted>>> = const { RefCell::new(Weak::new()) };
    static IS_NOTED: Cell<bool> = const { Cell::new(false) };
    /// The last sleep was the busy handler's last one.
    static GIVES_UP: Cell<bool> = const { Cell::new(false) };
    /// It was one of the busy handler's, which went on.
    static WENT_ON: Cell<bool> = const { Cell::new(false) };
}

/// In any thread: hosts change threads between two calls (Go).
static LAST_OF_PROCESS: Mutex<Weak<Mutex<Noted>>> = Mutex::new(Weak::new());

impl Refused {
    /// Notes an attempt that failed.
    pub fn note(&mut self, refusal: Refusal) {
        let now = Instant::now();
        let gives_up = GIVES_UP.replace(false);
        let wanted = refusal.wanted;
        let before = self.noted.take().map(|before| {
            let before = lock(&before);
            (before.slept && before.refusal.wanted == wanted).then_some(before.since)
        });
        let before = before.flatten();
        let (waited, since, at) = (before.is_some(), before.unwrap_or(now), now);
        WENT_ON.set(waited && WENT_ON.get());
        let (slept, is_told, is_logged) = (false, false, false);
        let thread = std::thread::current().id();
        let forks = real::forks();
        let mut noted =
            Noted { refusal, thread, since, at, slept, waited, is_told, is_logged, forks };
        static AT_EXIT: Once = Once::new();
        AT_EXIT.call_once(|| drop(dash_ffi::at_exit(at_exit)));
        if waited && (gives_up || (noted.waited_for() >= TOLD_AGAIN && self.is_time())) {
            noted.tell();
            self.logged_at = Some(now);
        }
        let noted = Arc::new(Mutex::new(noted));
        IS_NOTED.set(true);
        drop(LAST.try_with(|last| last.replace(Arc::downgrade(&noted))));
        // Whoever holds it notes something just now, too; in a forked child that may be nobody.
        if let Ok(mut last) = LAST_OF_PROCESS.try_lock() {
            *last = Arc::downgrade(&noted);
        }
        self.noted = Some(noted);
    }

    /// SQLite asks for a lock, or closes. `keeps`: what failed before is still the last error. That
    /// of other connections is in any case: Python's collector closes some at any moment.
    #[inline]
    pub fn goes_on(&mut self, keeps: bool) {
        if self.noted.is_some() {
            self.gave_up(keeps);
        }
    }

    #[inline(never)]
    fn gave_up(&mut self, keeps: bool) {
        let Some(kept) = self.noted.clone() else { return };
        let mut noted = lock(&kept);
        if noted.slept || !(noted.is_quiet() || noted.is_logged || self.is_time()) {
            return;
        }
        self.noted = None;
        if noted.is_quiet() || noted.is_logged {
            return;
        }
        match keeps {
            true => noted.tell(),
            false => noted.log(),
        }
        self.logged_at = Some(Instant::now());
    }

    /// It got the lock that it had been refused, or it closes.
    #[inline]
    pub fn is_over(&mut self, got: Wanted) {
        let is_it = |noted: &mut Arc<Mutex<Noted>>| {
            let wanted = lock(noted).refusal.wanted;
            wanted == got || (got == Wanted::Write && wanted == Wanted::Newest)
        };
        if self.noted.is_some() {
            self.noted.take_if(is_it);
        }
    }

    /// Whether the log has heard nothing of this connection for a while.
    fn is_time(&self) -> bool {
        self.logged_at.is_none_or(|at| at.elapsed() >= TOLD_AGAIN)
    }
}

fn lock(noted: &Mutex<Noted>) -> MutexGuard<'_, Noted> {
    noted.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What this thread was refused last, if its connection has not got it since.
fn of_thread() -> Option<Arc<Mutex<Noted>>> {
    IS_NOTED.get().then(|| LAST.try_with(|last| last.borrow().upgrade()).ok()?)?
}

/// SQLite's busy handler sleeps, in this thread, or somebody else. `goes_on`: as long as the busy
/// handler does that is not at its end. A program's own never sleeps so.
pub fn sleeps(goes_on: bool) {
    let Some(noted) = of_thread() else { return };
    // Not for a second time: SQLite sleeps between attempts to read, too.
    if !std::mem::replace(&mut lock(&noted).slept, true) {
        GIVES_UP.set(WENT_ON.replace(goes_on) && !goes_on);
    }
}

/// This thread opens a database: what failed before is history.
#[inline]
pub fn forget() {
    IS_NOTED.set(false);
}

/// `dash_last_error()` is asked, in this thread: what was refused is what it answers, unless it has
/// something newer to say.
pub fn tell() {
    if let Some(noted) = of_thread() {
        let mut noted = lock(&noted);
        if last_error_at().is_none_or(|at| at <= noted.at) {
            tell_of(&mut noted);
        }
    }
}

/// The same of another thread, where this one has nothing to say.
pub fn tell_of_others() {
    let last = LAST_OF_PROCESS.try_lock().ok().and_then(|last| last.upgrade());
    if let Some(noted) = last
        && let Ok(mut noted) = noted.try_lock()
        && !noted.slept
        && noted.thread != std::thread::current().id()
    {
        tell_of(&mut noted);
    }
}

/// Programs end without closing what they were refused (sqlite3). The host's log may be gone by
/// then.
extern "C" fn at_exit() {
    let last = LAST_OF_PROCESS.try_lock().ok().and_then(|last| last.upgrade());
    if let Some(noted) = last
        && let Ok(noted) = noted.try_lock()
        && !(noted.slept || noted.is_logged || noted.is_quiet())
        && noted.forks == real::forks()
    {
        errors_to::hear(noted.code(), &noted.text());
    }
}

fn tell_of(noted: &mut Noted) {
    if noted.is_told {
        return;
    }
    noted.is_told = true;
    if noted.is_logged || noted.is_quiet() {
        return explain(&noted.text());
    }
    noted.tell();
}

impl Noted {
    fn waited_for(&self) -> Duration {
        self.at.saturating_duration_since(self.since)
    }

    /// SQLite makes such attempts by itself, and tells nobody that they failed, or in a row of its
    /// own.
    fn is_quiet(&self) -> bool {
        matches!(self.refusal.wanted, Wanted::Checkpoint | Wanted::NoReaderOfWal)
    }

    fn code(&self) -> Code {
        match self.refusal.wanted {
            Wanted::Newest => Code::BUSY_SNAPSHOT,
            _ => Code::BUSY,
        }
    }

    /// To the log, and to whoever asks.
    fn tell(&mut self) {
        self.refusal.host.fail(self.code(), &self.text());
        self.is_logged = true;
    }

    /// To the log alone.
    fn log(&mut self) {
        self.refusal.host.log(self.code(), &self.text());
        self.is_logged = true;
    }

    fn text(&self) -> String {
        let Refusal { path, wanted, by: InTheWay { told, why }, .. } = &self.refusal;
        if let Some(why) = why {
            // The engine knows who reads, and not what that process is called, nor whether it runs.
            let readers = (*wanted == Wanted::NoReader)
                .then(|| in_the_way(path, *wanted, told, Duration::ZERO))
                .flatten();
            let why = readers.map_or_else(|| why.clone(), |who| format!("{why} ({who})"));
            return in_folder_of(path, &why);
        }
        let shown = shell_word(path);
        let waited = self.waited_for();
        if *wanted == Wanted::Newest {
            return format!(
                "{shown}: this transaction has read, and another one has committed since, so it can't write any more. \
                 No timeout helps: roll it back, and begin with BEGIN IMMEDIATE what is going to write"
            );
        }
        let who = in_the_way(path, *wanted, told, waited);
        let who = who.unwrap_or_else(|| match told.first() {
            Some((process, ..)) => {
                format!("process {process} held the lock and has released it since")
            }
            None => format!(
                "whoever was in the way is gone by now, or can't be seen from here, as it is another user's or in another container \
                 (as root, on the host, `sqlite-dash inspect {shown}` names it)"
            ),
        });
        let asked = match self.waited {
            true => format!(" This connection has asked for {} (busy_timeout).", seconds(waited)),
            false => String::new(),
        };
        format!("{shown} is locked: {who}.{asked} {}", self.advice())
    }

    /// What to do.
    fn advice(&self) -> &'static str {
        match (self.refusal.wanted, self.waited) {
            (Wanted::Write | Wanted::WriteAsStock, false) => {
                "SQLite did not wait for it: set busy_timeout, or, where it is set and this transaction has read before, begin it with \
                 BEGIN IMMEDIATE"
            }
            (Wanted::Write | Wanted::WriteAsStock, true) => {
                "End that transaction or process, or wait longer; keep write transactions short"
            }
            (Wanted::Alone, _) => "Close it there first",
            (Wanted::NoReaderOfWal, _) => {
                "The checkpoint could not be completed: end that transaction (reset or finalize its statements) or process"
            }
            (Wanted::NoReader, _) => {
                "End that transaction (reset or finalize its statements) or process"
            }
            _ => "Try again, or end that transaction or process",
        }
    }
}
