//! The machine: the one lock, the clock, the switches, and what a test may look at.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dash_storage::WORD;

use crate::fault::{Effect, Fault};
use crate::inode::Body;
use crate::journal::{Journal, Operation, OperationKind};
use crate::key::ROOT;
use crate::names::Names;
use crate::settings::{Metadata, Settings};
use crate::state::State;
use crate::survivors::Survivors;
use crate::{mix, power};

/// Nanoseconds that an operation takes.
const OPERATION_NANOS: u64 = 1000;

/// A computer with one file system; clones are the same computer.
#[derive(Clone)]
pub struct Machine(Arc<Shared>);

type Watcher = Box<dyn FnMut(&Machine, &Operation) + Send>;

struct Shared {
    state: Mutex<State>,
    clock: AtomicU64,
    random: AtomicU64,
    answers: Vec<usize>,
    lives: u64,
    watched: AtomicBool,
    watcher: Mutex<Option<Watcher>>,
    dying: Mutex<Vec<(u32, Arc<AtomicBool>)>>,
}

impl Machine {
    /// A machine with an empty file system. The same seed gives the same random numbers.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self::start(State::new(Settings::default()), 0, mix(seed), (Vec::new(), 1))
    }

    fn start(state: State, clock: u64, random: u64, (answers, lives): (Vec<usize>, u64)) -> Self {
        Self(Arc::new(Shared {
            state: Mutex::new(state),
            clock: AtomicU64::new(clock),
            random: AtomicU64::new(random),
            answers,
            lives,
            watched: AtomicBool::new(false),
            watcher: Mutex::new(None),
            dying: Mutex::default(),
        }))
    }

    /// A new machine, with what survives of this one if the power goes now. This one stays as it
    /// is, so that many fates can be tried.
    pub fn power_loss(&self, survivors: &mut dyn Survivors) -> Self {
        let (state, answers) = power::lose(&self.state(), survivors);
        let clock = self.0.clock.load(Ordering::Relaxed);
        let random = self.0.random.load(Ordering::Relaxed);
        Self::start(state, clock, random, (answers, self.0.lives + 1))
    }

    /// A new machine, on which every process of this one has just been killed: the same cache, with
    /// what a power loss may leave of it, the same names, and a copy of the shared memory, so that
    /// nothing that the dead store there is seen here. Locks, descriptors, and files without a name
    /// are gone. This one stays as it is.
    #[must_use]
    pub fn killed(&self) -> Self {
        let clock = self.0.clock.load(Ordering::Relaxed);
        let random = self.0.random.load(Ordering::Relaxed);
        Self::start(self.state().killed(), clock, random, (self.0.answers.clone(), self.0.lives))
    }

    /// How often the power came on: 1 for a machine that never lost it.
    pub(crate) fn lives(&self) -> u64 {
        self.0.lives
    }

    /// The answers that [`Survivors`] gave to make this machine, for a
    /// [`Replay`](crate::Replay); empty for one that never lost power.
    #[must_use]
    pub fn answers(&self) -> &[usize] {
        &self.0.answers
    }

    /// How many combinations of survivors [`Machine::power_loss`] has now: what an
    /// [`Enumerate`](crate::Enumerate) would walk. Different ones may leave equal machines. Of a
    /// directory whose entries survive apart in very many ways, `u128::MAX`.
    #[must_use]
    pub fn survivor_count(&self) -> u128 {
        power::count(&self.state())
    }

    /// Writes everything back, as a kernel does after some time: all that is there is durable. No
    /// step.
    pub fn write_back(&self) {
        self.state().write_back();
    }

    /// A hash of names, inode numbers, contents, and all that a power loss may leave of them; not
    /// of processes, locks, and shared memory.
    #[must_use]
    pub fn state_hash(&self) -> u64 {
        power::hash(&self.state())
    }

    /// Number of operations so far. Closing a file is none: it changes nothing that survives.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.state().steps
    }

    /// Cuts the power before operation number `step` (they count from 0): it and all later ones
    /// fail with EIO and change nothing.
    pub fn cut_at(&self, step: u64) {
        self.state().cut = Some(step);
    }

    /// Whether an operation would do anything.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.state().is_on()
    }

    /// The steps before which a cut makes a difference, and the number of steps: cutting anywhere
    /// else leaves what cutting at one of these does.
    #[must_use]
    pub fn crash_points(&self) -> Vec<u64> {
        let state = self.state();
        let mut points = state.crash_points.clone();
        points.push(state.steps);
        points
    }

    /// Calls `watcher` before every operation of any process (but not before those it does itself),
    /// with the machine as it is then: it may lose power and look. An operation that begins in
    /// another thread meanwhile goes unwatched.
    pub fn watch(&self, watcher: impl FnMut(&Self, &Operation) + Send + 'static) {
        *self.0.watcher.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(watcher));
        self.0.watched.store(true, Ordering::SeqCst);
    }

    /// Adds a fault; the first that meets an operation decides what happens to it.
    pub fn fail(&self, fault: Fault) {
        self.state().faults.add(fault);
    }

    /// Removes all faults.
    pub fn stop_failing(&self) {
        self.state().faults.clear();
    }

    /// What the processes did so far.
    #[must_use]
    pub fn journal(&self) -> Journal {
        Journal { entries: self.state().journal.clone() }
    }

    /// What a process reads now under a path from the root; `None` if it names no file.
    #[must_use]
    pub fn file_view(&self, path: impl AsRef<Path>) -> Option<Vec<u8>> {
        let state = self.state();
        power::view(&state, state.resolve(path.as_ref()).ok()?)
    }

    /// Whether a path from the root names anything now.
    #[must_use]
    pub fn exists(&self, path: impl AsRef<Path>) -> bool {
        self.state().resolve(path.as_ref()).is_ok()
    }

    /// Sets in what units writes tear, 512 (the default) or 4096 bytes.
    ///
    /// # Panics
    ///
    /// If it is neither, or the machine has had files already.
    pub fn set_tearing_unit(&self, bytes: u64) {
        assert!(bytes == 512 || bytes == 4096, "sectors and pages tear, not {bytes} bytes");
        let mut state = self.state();
        assert!(state.inodes.len() == 1, "there are files already");
        state.settings.unit = bytes;
    }

    /// Has all files lie in byte-addressable memory: they can be mapped to be stored to, and what
    /// is written in whatever way tears in words of 8 bytes.
    ///
    /// # Panics
    ///
    /// If the machine has had files already.
    pub fn set_byte_addressable(&self) {
        let mut state = self.state();
        assert!(state.inodes.len() == 1, "there are files already");
        state.settings.unit = WORD;
    }

    /// Makes a folder in the root, durable, whose files lie in byte-addressable memory, as
    /// [`set_byte_addressable`](Self::set_byte_addressable) says, and no others.
    ///
    /// # Panics
    ///
    /// If the machine has had files already.
    pub fn set_byte_addressable_folder(&self, name: &str) {
        let mut state = self.state();
        assert!(state.inodes.len() == 1, "there are files already");
        let key = state.create(0o755, Body::Directory(Names::default()));
        if let Ok(names) = state.names_mut(ROOT) {
            names.change([(OsStr::new(name), Some(key))]);
        }
        state.write_back();
        state.settings.memory = Some(key);
    }

    /// Sets how names and inodes survive; [`Metadata::Journaled`] is the default.
    pub fn set_metadata(&self, metadata: Metadata) {
        self.state().settings.metadata = metadata;
    }

    /// Whether names can be exchanged (the default).
    pub fn set_exchange_supported(&self, supported: bool) {
        self.state().settings.exchange = supported;
    }

    /// Whether a file can have two names (the default).
    pub fn set_links_supported(&self, supported: bool) {
        self.state().settings.links = supported;
    }

    /// Whether extents can be shared (not the default).
    pub fn set_clone_supported(&self, supported: bool) {
        self.state().settings.clone = supported;
    }

    /// In what blocks files can be written around the cache, 512 (the default) or 4096 bytes;
    /// `None` if they can't.
    ///
    /// # Panics
    ///
    /// If it is another number.
    pub fn set_direct(&self, block: Option<u32>) {
        assert!(
            matches!(block, None | Some(512 | 4096)),
            "no device has blocks of {block:?} bytes"
        );
        self.state().settings.direct = block;
    }

    /// Whether a file that is cut is so as a whole or not at all after a power loss, as on file
    /// systems that keep a journal; by default each sector may be zeros by itself.
    pub fn set_whole_cuts(&self, whole: bool) {
        self.state().settings.whole_cuts = whole;
    }

    /// Whether a new inode gets the lowest number that no name or descriptor has, as many file
    /// systems do; by default numbers are not used again. With several directories in play a power
    /// loss may then leave two inodes of one number.
    pub fn set_inode_reuse(&self, reuse: bool) {
        self.state().settings.reuse_numbers = reuse;
    }

    /// Whether changes fail with EROFS.
    pub fn set_read_only(&self, read_only: bool) {
        self.state().settings.read_only = read_only;
    }

    /// How many bytes, in whole pages, the files may need before ENOSPC; `None` for no limit.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.state().settings.capacity = bytes;
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        // A panic of a test's Survivors is no reason for a second panic here.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does one operation of a process, unless a fault, a kill or the cut prevents it.
    pub(crate) fn operate<T>(
        &self,
        process: u32,
        operation: Operation,
        act: impl FnOnce(&mut State, Option<Effect>) -> io::Result<T>,
    ) -> io::Result<T> {
        if self.0.watched.load(Ordering::Relaxed) {
            self.tell_watcher(&operation);
        }
        let mut state = self.state();
        let step = state.begin(process)?;
        self.0.clock.fetch_add(OPERATION_NANOS, Ordering::Relaxed);
        let effect = state.faults.meet(operation.kind, operation.inode);
        let result = match (effect, operation.kind) {
            (Some(Effect::LostFlush(_)), OperationKind::Flush | OperationKind::WriteDurable)
            | (Some(Effect::ShortWrite(..)), OperationKind::Write | OperationKind::Store)
            | (None | Some(Effect::ShortRead(_) | Effect::LeftOut), _) => act(&mut state, effect),
            (Some(Effect::Error(number) | Effect::LostFlush(number)), _)
            | (Some(Effect::ShortWrite(_, number)), _) => Err(crate::errno(number)),
        };
        let error = result.as_ref().err().and_then(io::Error::raw_os_error);
        state.end(step, process, operation, error);
        drop(state);
        self.let_die(process);
        result
    }

    /// Kills a process once its next operation is done, or the one that is watched right now.
    pub(crate) fn kill_later(&self, process: u32, dead: Arc<AtomicBool>) {
        self.0.dying.lock().unwrap_or_else(PoisonError::into_inner).push((process, dead));
    }

    fn let_die(&self, process: u32) {
        let mut dying = self.0.dying.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = dying.iter().position(|(victim, _)| *victim == process) {
            let (_, dead) = dying.swap_remove(at);
            drop(dying);
            dead.store(true, Ordering::Relaxed);
            self.state().kill(process);
        }
    }

    fn tell_watcher(&self, operation: &Operation) {
        let slot = || self.0.watcher.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(mut watcher) = slot().take() else {
            return;
        };
        watcher(self, operation);
        slot().get_or_insert(watcher);
    }

    pub(crate) fn random(&self) -> u64 {
        loop {
            let number = mix(self.0.random.fetch_add(1, Ordering::Relaxed));
            if number != 0 {
                return number;
            }
        }
    }

    /// The time, a nanosecond later than anybody was ever told.
    pub(crate) fn now(&self) -> u64 {
        self.pass(1)
    }

    pub(crate) fn pass(&self, nanos: u64) -> u64 {
        self.0.clock.fetch_add(nanos, Ordering::Relaxed).wrapping_add(nanos)
    }
}
