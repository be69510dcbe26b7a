//! Which call fails, and how: the answers to [`super::seccomp`]'s questions.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};

use super::call::{Call, Kind};
use super::seccomp::{self, Answer};

/// What happens to the call that is met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effect {
    /// It fails with an errno.
    Error(i32),
    /// It fails with EINTR; not for ever, or nobody could go on.
    Interrupted,
    /// It reads or writes half of what it was asked to. Only reads and writes are met.
    Half,
    /// It writes half; all that needs room fails from then on with an errno.
    HalfThen(i32),
    /// The process is killed before the call. For making crashed databases.
    Kill,
}

impl Effect {
    /// Name in a case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Error(libc::EIO) => "eio",
            Self::Error(libc::ENOSPC) => "enospc",
            Self::Error(libc::EDQUOT) => "edquot",
            Self::Error(_) => "error",
            Self::Interrupted => "eintr",
            Self::Half => "half",
            Self::HalfThen(_) => "half-then-full",
            Self::Kill => "kill",
        }
    }

    /// The errno that callers see, if any.
    pub fn errno(self) -> Option<i32> {
        match self {
            Self::Error(errno) | Self::HalfThen(errno) => Some(errno),
            Self::Interrupted => Some(libc::EINTR),
            Self::Half | Self::Kill => None,
        }
    }

    /// Which calls it may befall.
    fn class(self) -> Class {
        match self {
            Self::Error(libc::ENOSPC | libc::EDQUOT) => Class::NeedRoom,
            Self::Half => Class::Divisible,
            Self::HalfThen(_) => Class::Write,
            Self::Error(_) | Self::Interrupted | Self::Kill => Class::All,
        }
    }
}

/// Calls that are numbered together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    /// All that are watched.
    All,
    /// What may find the disk full.
    NeedRoom,
    /// Reads and writes of which a part can be done.
    Divisible,
    /// Writes.
    Write,
}

impl Class {
    const ALL: [Self; 4] = [Self::All, Self::NeedRoom, Self::Divisible, Self::Write];

    fn has(self, call: &Call) -> bool {
        match self {
            Self::All => true,
            Self::NeedRoom => call.needs_room(),
            Self::Divisible => [libc::SYS_pread64, libc::SYS_pwrite64, libc::SYS_pwritev]
                .contains(&libc::c_long::from(call.number)),
            Self::Write => call.kind == Kind::Write && !is_word(call),
        }
    }
}

/// Whether it writes no more than a word: no file system, nor a device, writes half of one.
fn is_word(call: &Call) -> bool {
    let has_length = [libc::SYS_write, libc::SYS_pwrite64];
    has_length.contains(&libc::c_long::from(call.number)) && call.arguments[2] <= 8
}

/// What may happen to calls of storage, but for a kill.
pub const EFFECTS: [Effect; 6] = [
    Effect::Error(libc::EIO),
    Effect::Error(libc::ENOSPC),
    Effect::Error(libc::EDQUOT),
    Effect::Interrupted,
    Effect::Half,
    Effect::HalfThen(libc::ENOSPC),
];

/// A fault: the call number `number`, from 0, of those that the effect may befall.
#[derive(Debug, Clone, Copy)]
pub struct Fault {
    /// What happens.
    pub effect: Effect,
    /// Whether all later ones are met, too.
    pub forever: bool,
    /// Which one.
    pub number: u64,
}

impl Fault {
    /// One that no call meets.
    pub const NONE: Self = Self { effect: Effect::Half, forever: false, number: u64::MAX };

    /// All, where so many calls come that an effect may befall.
    pub fn all(seen: impl Fn(Effect) -> u64) -> Vec<Self> {
        let mut all = Vec::new();
        for effect in EFFECTS {
            let ways: &[bool] = match effect {
                Effect::Error(_) => &[false, true],
                _ => &[false],
            };
            for &forever in ways {
                all.extend((0..seen(effect)).map(|number| Self { effect, forever, number }));
            }
        }
        all
    }

    /// In words, as in `--case`.
    pub fn name(&self) -> String {
        let Self { effect, forever, number } = self;
        let forever = if *forever { "ever" } else { "once" };
        format!("{}/{forever}/{number}", effect.name())
    }

    /// The fault of this name.
    pub fn named(name: &str) -> Option<Self> {
        let mut words = name.split('/');
        let named = words.next()?;
        let effect = EFFECTS.into_iter().find(|effect| effect.name() == named)?;
        let forever = words.next()? == "ever";
        Some(Self { effect, forever, number: words.next()?.parse().ok()? })
    }

    /// Whether more than one call is met.
    pub fn stays(&self) -> bool {
        self.forever || matches!(self.effect, Effect::HalfThen(_))
    }
}

/// A call that was met.
#[derive(Clone)]
pub struct Met {
    /// What it does.
    pub kind: Kind,
    /// To which file, without its folder.
    pub file: String,
}

impl std::fmt::Debug for Met {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} {}", self.kind, self.file)
    }
}

/// The injector of one thread, and of those that it starts.
pub struct Injector {
    fault: Fault,
    folder: PathBuf,
    armed: AtomicBool,
    /// The thread whose calls are not met; 0: there is none.
    spared: AtomicU32,
    seen: [AtomicU64; Class::ALL.len()],
    met: Mutex<Vec<Met>>,
}

impl Injector {
    /// One for the files below a folder; not armed yet.
    pub fn new(folder: &Path, fault: Fault) -> Arc<Self> {
        let (armed, spared, seen) = Default::default();
        let folder = folder.to_path_buf();
        Arc::new(Self { fault, folder, armed, spared, seen, met: Mutex::default() })
    }

    /// Calls of this thread are not met.
    pub fn spare_this_thread(&self) {
        let thread = u32::try_from(nix::unistd::gettid().as_raw()).unwrap_or_default();
        self.spared.store(thread, SeqCst);
    }

    /// Calls are met from now on, or no longer.
    pub fn arm(&self, armed: bool) {
        self.armed.store(armed, SeqCst);
    }

    /// What was met, in order.
    pub fn met(&self) -> Vec<Met> {
        self.met.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many calls came that an effect may befall.
    pub fn seen(&self, effect: Effect) -> u64 {
        self.seen[effect.class() as usize].load(SeqCst)
    }

    /// Decides about a call.
    pub fn decide(&self, call: &Call) -> Answer {
        if !self.armed.load(SeqCst) || call.thread == self.spared.load(SeqCst) {
            return Answer::GoOn;
        }
        let Fault { effect, forever, number } = self.fault;
        let Some(file) = call.file() else { return Answer::GoOn };
        let Ok(name) = file.strip_prefix(&self.folder) else { return Answer::GoOn };
        let before = self.seen(effect);
        for class in Class::ALL {
            self.seen[class as usize].fetch_add(u64::from(class.has(call)), SeqCst);
        }
        let full = matches!(effect, Effect::HalfThen(_)) && before > number && call.needs_room();
        let met = effect.class().has(call) && (before == number || (forever && before > number));
        if !full && !met {
            return Answer::GoOn;
        }
        let answer = match effect {
            Effect::HalfThen(errno) if full => Answer::Fail(errno),
            Effect::HalfThen(errno) => {
                seccomp::half(call).map_or(Answer::Fail(errno), Answer::Return)
            }
            Effect::Error(errno) => Answer::Fail(errno),
            Effect::Interrupted => Answer::Fail(libc::EINTR),
            Effect::Half => seccomp::half(call).map_or(Answer::GoOn, Answer::Return),
            Effect::Kill => {
                // The signal arrives before the call is answered.
                let _ = nix::sys::signal::raise(nix::sys::signal::Signal::SIGKILL);
                Answer::GoOn
            }
        };
        let met = Met { kind: call.kind, file: name.display().to_string() };
        self.met.lock().unwrap_or_else(PoisonError::into_inner).push(met);
        answer
    }
}

/// Runs `work` in a thread of its own whose calls the injector decides about. `prepare` runs there
/// before any question is asked.
///
/// # Errors
///
/// Where the kernel does not ask, or a thread panicked.
pub fn run<P, T: Send>(
    injector: &Injector,
    prepare: impl FnOnce() -> P + Send,
    work: impl FnOnce(P, &Injector) -> T + Send,
) -> Result<T, String> {
    run_watched(injector, prepare, work, || {})
}

/// The same; `answered` is called after each decision.
///
/// # Errors
///
/// As of [`run`].
pub fn run_watched<P, T: Send>(
    injector: &Injector,
    prepare: impl FnOnce() -> P + Send,
    work: impl FnOnce(P, &Injector) -> T + Send,
    mut answered: impl FnMut(),
) -> Result<T, String> {
    let (hand_over, take) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let worker = scope.spawn(move || {
            let prepared = prepare();
            let listener =
                seccomp::ask_from_now_on().map_err(|error| format!("seccomp: {error}"))?;
            hand_over.send(listener).map_err(|error| error.to_string())?;
            drop(hand_over);
            Ok(work(prepared, injector))
        });
        if let Ok(listener) = take.recv() {
            let decide = |call: &Call| {
                let answer = injector.decide(call);
                answered();
                answer
            };
            listener.answer(decide).map_err(|error| format!("seccomp: {error}"))?;
        }
        worker.join().unwrap_or_else(|_| Err("a thread under faults panicked".into()))
    })
}
