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
use std::time::{Duration, Instant};

use dash_ffi::{Code, HostVfs, explain};

use crate::holders::{InTheWay, Wanted, in_the_way, seconds};
use crate::mode::caller::Caller;

/// How often the log hears of one that still waits, or asks by itself again and again.
const TOLD_AGAIN: Duration = Duration::from_secs(1);

/// An attempt that failed.
pub struct Refusal {
    /// Whose.
    pub caller: Caller,
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
    /// The first attempt in a row.
    since: Instant,
    /// The last one.
    at: Instant,
    /// Whether the thread has slept since the last one.
    slept: bool,
    /// Whether it did before.
    waited: bool,
    /// Whether the log has heard of it.
    is_logged: bool,
}

thread_local! {
    static NOTED: RefCell<Option<Noted>> = const { RefCell::new(None) };
    static IS_NOTED: Cell<bool> = const { Cell::new(false) };
    /// The last sleep was the busy handler's last one.
    static GIVES_UP: Cell<bool> = const { Cell::new(false) };
    static LOGGED: Cell<Option<(Caller, Instant)>> = const { Cell::new(None) };
}

/// What this thread has noted, if it is not being torn down.
fn with<R>(act: impl FnOnce(&mut Option<Noted>) -> R) -> Option<R> {
    NOTED.try_with(|noted| noted.try_borrow_mut().ok().map(|mut noted| act(&mut noted))).ok()?
}

/// Notes an attempt that failed.
pub fn note(refusal: Refusal) {
    let now = Instant::now();
    let gives_up = GIVES_UP.replace(false);
    let before = with(Option::take).flatten().filter(|before| {
        before.slept
            && before.refusal.caller == refusal.caller
            && before.refusal.wanted == refusal.wanted
    });
    let waited = before.is_some();
    let since = before.map_or(now, |before| before.since);
    let mut noted = Noted { refusal, since, at: now, slept: false, waited, is_logged: false };
    if waited && (gives_up || (noted.waited_for() >= TOLD_AGAIN && noted.is_time())) {
        noted.log();
    }
    IS_NOTED.set(true);
    with(|place| *place = Some(noted));
}

/// SQLite's busy handler sleeps, in this thread, or somebody else. `is_last`: not so long as the
/// busy handler does that goes on.
pub fn sleeps(is_last: bool) {
    if IS_NOTED.get() {
        GIVES_UP.set(is_last);
        with(|place| place.iter_mut().for_each(|noted| noted.slept = true));
    }
}

/// SQLite asks for a lock, or opens a file, in this thread. `keeps`: what failed before is still
/// the last error.
#[inline]
pub fn goes_on(keeps: bool) {
    if IS_NOTED.get() {
        gave_up(keeps);
    }
}

#[inline(never)]
fn gave_up(keeps: bool) {
    let is_over = |noted: &mut Noted| {
        !noted.slept && (noted.is_quiet() || noted.is_logged || noted.is_time())
    };
    let Some(mut noted) = with(|place| place.take_if(is_over)).flatten() else { return };
    IS_NOTED.set(false);
    if noted.is_quiet() || noted.is_logged {
        return;
    }
    match keeps {
        true => noted.log(),
        false => noted.refusal.host.log(noted.code(), &noted.text()),
    }
    noted.is_told();
}

/// It got the lock that it had been refused, or closes.
#[inline]
pub fn is_over(caller: Caller, wanted: Option<Wanted>) {
    if IS_NOTED.get() {
        let is_it = |noted: &mut Noted| {
            let Refusal { caller: of, wanted: refused, .. } = noted.refusal;
            let writes = wanted == Some(Wanted::Write) && refused == Wanted::Newest;
            of == caller && (writes || wanted.is_none_or(|wanted| wanted == refused))
        };
        if with(|place| place.take_if(is_it)).flatten().is_some() {
            IS_NOTED.set(false);
        }
    }
}

/// `dash_last_error()` is asked: what was refused is what it answers.
pub fn tell() {
    if !IS_NOTED.replace(false) {
        return;
    }
    let Some(mut noted) = with(Option::take).flatten() else { return };
    if noted.is_logged || noted.is_quiet() {
        return explain(&noted.text());
    }
    noted.log();
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

    fn log(&mut self) {
        self.refusal.host.fail(self.code(), &self.text());
        self.is_told();
    }

    fn is_told(&mut self) {
        self.is_logged = true;
        LOGGED.set(Some((self.refusal.caller, Instant::now())));
    }

    /// Whether the log has heard nothing of this connection for a while.
    fn is_time(&self) -> bool {
        let was = LOGGED.get().filter(|(caller, _)| *caller == self.refusal.caller);
        was.is_none_or(|(_, at)| at.elapsed() >= TOLD_AGAIN)
    }

    fn text(&self) -> String {
        let Refusal { path, wanted, by: InTheWay { told, why }, .. } = &self.refusal;
        if let Some(why) = why {
            return why.clone();
        }
        let shown = path.file_name().unwrap_or(path.as_os_str()).display();
        let waited = self.waited_for();
        if *wanted == Wanted::Newest {
            return format!(
                "{shown}: this transaction has read, and another one has committed since, so it can't write any more. \
                 No timeout helps: roll it back, and begin with BEGIN IMMEDIATE what is going to write"
            );
        }
        let who = in_the_way(path, *wanted, told, waited);
        let who = who.unwrap_or_else(|| match told.first() {
            Some((process, age)) => {
                format!(
                    "process {process}, for {} by then, has given up since what was in the way",
                    seconds(*age)
                )
            }
            None => format!(
                "whoever was in the way is gone by now, or can't be seen by this user (as root `dash inspect {shown}` names it)"
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
                "SQLite did not sleep until it is free: set busy_timeout; where it is set, this transaction has read before, \
                 and for such a one SQLite never waits: begin it with BEGIN IMMEDIATE"
            }
            (Wanted::Write | Wanted::WriteAsStock | Wanted::Newest, true) => {
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
