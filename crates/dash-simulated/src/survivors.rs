//! Who decides what a power loss leaves: fate, as an argument.
//!
//! [`Machine::power_loss`](crate::Machine::power_loss) asks one [`Question`] at a time, each with
//! at least two answers, in an order that depends on nothing but the machine and the answers so
//! far. Only what matters is asked: no units behind a length that was chosen, no files whose name
//! did not survive.

use crate::mix;

/// What is to be decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// How many of the operations on a directory since its flush survive.
    Operations {
        /// The directory's inode number.
        inode: u64,
    },
    /// Which of its entries a name has, where each survives on its own; 0 is the durable one.
    Entry {
        /// The directory's inode number.
        inode: u64,
        /// The place of the name among those of the directory that have a choice.
        place: usize,
    },
    /// Whether the device has an inode that was made, or taken back, since it was last durable: 0
    /// says what was durable. A name whose inode is not there is removed.
    Inode {
        /// The inode number.
        inode: u64,
    },
    /// Which of its lengths a file has; 0 is the durable one.
    Length {
        /// The file's inode number.
        inode: u64,
    },
    /// Whether a cut of a file survives that does so as a whole (1), or the file is as it was.
    Cut {
        /// The file's inode number.
        inode: u64,
    },
    /// Whether a cache line with several words that have a choice is as it was durable (0), as
    /// readers saw it last (1), or torn: then each of its words is asked for, as a unit.
    Line {
        /// The file's inode number.
        inode: u64,
        /// Where in the file the line begins.
        offset: u64,
    },
    /// Which of its values a tearing unit has; 0 is the durable one.
    Unit {
        /// The file's inode number.
        inode: u64,
        /// Where in the file the unit begins.
        offset: u64,
    },
}

/// Decides what survives a power loss. Must not use the machine while it is asked.
pub trait Survivors {
    /// A new power loss begins.
    fn begin(&mut self) {}

    /// An answer below `answers`; 0 leaves what is durable, `newest` what readers saw last.
    fn choose(&mut self, question: Question, answers: usize, newest: usize) -> usize;
}

/// A [`Survivors`] that is asked only where there is a choice, and whose answers are kept.
pub(crate) struct Asking<'a> {
    survivors: &'a mut dyn Survivors,
    pub(crate) answers: Vec<usize>,
}

impl<'a> Asking<'a> {
    pub(crate) fn new(survivors: &'a mut dyn Survivors) -> Self {
        survivors.begin();
        Self { survivors, answers: Vec::new() }
    }

    pub(crate) fn ask(&mut self, question: Question, answers: usize, newest: usize) -> usize {
        if answers < 2 {
            return 0;
        }
        let answer = self.survivors.choose(question, answers, newest).min(answers - 1);
        self.answers.push(answer);
        answer
    }
}

/// What was not flushed is lost.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nothing;

impl Survivors for Nothing {
    fn choose(&mut self, _: Question, _: usize, _: usize) -> usize {
        0
    }
}

/// What readers saw last is there.
#[derive(Debug, Clone, Copy, Default)]
pub struct Everything;

impl Survivors for Everything {
    fn choose(&mut self, _: Question, _: usize, newest: usize) -> usize {
        newest
    }
}

/// Anything, drawn from a seed. Each power loss has its own mood, from "nearly nothing" to "nearly
/// everything", for otherwise large commits would never survive whole or vanish whole.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
    /// Of 256 units, so many have their newest value, and so many their durable one.
    newest: u64,
    durable: u64,
}

impl Random {
    /// The same seed, the same answers.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { state: mix(seed), newest: 0, durable: 0 }
    }

    fn draw(&mut self, below: u64) -> u64 {
        self.state = self.state.wrapping_add(1);
        mix(self.state) % below.max(1)
    }
}

impl Survivors for Random {
    fn begin(&mut self) {
        (self.newest, self.durable) = match self.draw(6) {
            0 => (0, 0),
            1 => (0, 255),
            2 => (0, 224),
            3 => (224, 0),
            4 => (255, 0),
            _ => (96, 96),
        };
    }

    fn choose(&mut self, question: Question, answers: usize, newest: usize) -> usize {
        let any = usize::try_from(self.draw(answers as u64)).unwrap_or_default();
        let fate = self.draw(256);
        match question {
            Question::Operations { .. } | Question::Entry { .. } | Question::Inode { .. } => any,
            _ if fate < self.newest => newest,
            _ if fate < self.newest + self.durable => 0,
            _ => any,
        }
    }
}

/// Gives the answers that an earlier power loss was given
/// ([`Machine::answers`](crate::Machine::answers)), then zeros.
#[derive(Debug, Clone, Default)]
pub struct Replay {
    answers: Vec<usize>,
    next: usize,
}

impl Replay {
    /// Repeats these answers at each power loss.
    #[must_use]
    pub fn new(answers: Vec<usize>) -> Self {
        Self { answers, next: 0 }
    }
}

impl Survivors for Replay {
    fn begin(&mut self) {
        self.next = 0;
    }

    fn choose(&mut self, _: Question, _: usize, _: usize) -> usize {
        let answer = self.answers.get(self.next).copied().unwrap_or_default();
        self.next += 1;
        answer
    }
}
