//! A file or directory of the machine, and who has it open.

use crate::data::Data;
use crate::locks::Locks;
use crate::memory::Words;
use crate::names::Names;

pub(crate) struct Inode {
    pub(crate) number: u64,
    /// Whether the device has it.
    pub(crate) durable: bool,
    pub(crate) permissions: u32,
    pub(crate) body: Body,
    pub(crate) locks: Locks,
    pub(crate) words: Words,
    /// When it last changed; of a file that a power loss changed, nobody knows.
    pub(crate) changed: u64,
    pub(crate) written: u64,
    pub(crate) opens: u64,
}

#[derive(Clone)]
pub(crate) enum Body {
    File(Data),
    Directory(Names),
}

impl Inode {
    pub(crate) fn new(number: u64, permissions: u32, body: Body) -> Self {
        let (locks, words) = (Locks::default(), Words::default());
        Self {
            number,
            durable: false,
            permissions,
            body,
            locks,
            words,
            changed: 0,
            written: 0,
            opens: 0,
        }
    }

    /// The same, unchanged since.
    pub(crate) fn unchanged_since(mut self, (changed, written): (u64, u64)) -> Self {
        (self.changed, self.written) = (changed, written);
        self
    }

    /// When it last changed, and was last written; 0: nobody knows.
    pub(crate) fn times(&self) -> (u64, u64) {
        (self.changed, self.written)
    }

    /// The same, as a device has it.
    pub(crate) fn durable(number: u64, permissions: u32, body: Body) -> Self {
        Self { durable: true, ..Self::new(number, permissions, body) }
    }

    /// How many descriptions of it are open, those of stock processes included.
    pub(crate) fn opens(&self) -> u64 {
        self.opens
    }
}
