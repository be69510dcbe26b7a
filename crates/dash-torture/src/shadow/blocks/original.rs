//! Databases to be damaged: how they came to rest, and what may be found in them.

use std::path::Path;

use dash_simulated::{Everything, Machine, Nothing, Random};
use dash_storage::{Directory, File, OpenMode, SharedMemory, Storage};

use crate::sim::content::{self, Content};
use crate::sim::subject::{DB, Outcome, Setup, Subject};

/// How a database was left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// Closed.
    Closed,
    /// Its writer was killed after so many steps of a commit.
    Killed(usize),
    /// Then the power went; what was not flushed is lost, is there, or is there in part.
    Cut(usize, Fate),
}

/// What survives a power loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// What was flushed.
    Nothing,
    /// All.
    Everything,
    /// Some, by a seed.
    Some(u64),
}

/// A database in a state, to be damaged again and again.
pub struct Original {
    /// In words.
    pub name: String,
    /// The machine it is on, with nobody alive.
    pub machine: Machine,
    /// What may be found in it.
    pub allowed: Vec<Content>,
    /// How it is.
    pub setup: Setup,
}

/// How the commits of an original are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// A few pages.
    Small,
    /// So many scattered pages that their list does not fit into a block.
    Long,
}

fn grown(old: &[u32], size: Size) -> Content {
    let mut new = old.to_vec();
    match size {
        Size::Small => {
            new.extend(if old.is_empty() { 300..312 } else { 100..103 });
            let middle = new.len() / 2;
            new[middle] += 5;
        }
        Size::Long => {
            if old.is_empty() {
                new.extend(1000..1560);
            }
            new.iter_mut().step_by(2).for_each(|page| *page += 1);
        }
    }
    new[0] += 9;
    new
}

impl Original {
    /// Makes one with so many commits.
    pub fn new(
        subject: &dyn Subject,
        setup: Setup,
        left: Left,
        commits: usize,
        size: Size,
    ) -> Outcome<Self> {
        let machine = Machine::new(commits as u64);
        subject.prepare(&machine, &setup);
        let process = machine.process();
        let mut session = subject.open(&process, DB, &setup)?;
        let mut newest = Content::new();
        for _ in 0..commits {
            newest = grown(&newest, size);
            content::commit(&mut *session, setup.page, &newest)?;
        }
        let mut allowed = vec![newest.clone()];
        let mut left_machine = machine.clone();
        match left {
            Left::Closed => session.close()?,
            Left::Killed(stage) | Left::Cut(stage, _) => {
                let next = grown(&newest, size);
                content::write(&mut *session, setup.page, &next)?;
                content::begin_commit(&mut *session, stage)?;
                machine.kill(&process);
                allowed.push(next);
            }
        }
        if let Left::Cut(_, fate) = left {
            left_machine = match fate {
                Fate::Nothing => machine.power_loss(&mut Nothing),
                Fate::Everything => machine.power_loss(&mut Everything),
                Fate::Some(seed) => machine.power_loss(&mut Random::new(seed)),
            };
        }
        let name = format!("{}/{left:?}/{commits}/{size:?}", setup.variant).to_lowercase();
        Ok(Self { name, machine: left_machine, allowed, setup })
    }

    /// The same files on a machine of its own; what processes shared in memory is gone.
    pub fn copy(&self, subject: &dyn Subject) -> Machine {
        let copy = self.machine.power_loss(&mut Everything);
        subject.prepare(&copy, &self.setup);
        copy
    }
}

/// Overwrites bytes of a file.
pub fn put(machine: &Machine, path: &str, offset: u64, bytes: &[u8]) -> std::io::Result<()> {
    machine.open_stock(path)?.write_at(bytes, offset)
}

/// Cuts a file, or makes it longer with zeros.
pub fn resize(machine: &Machine, path: &str, len: u64) -> std::io::Result<()> {
    let process = machine.process();
    let name = Path::new(path).file_name().unwrap_or_default();
    process.open_directory(Path::new("/"))?.open(name, OpenMode::ReadWrite)?.set_len(len)
}

/// Changes bits of a word that processes share.
pub fn flip_word(
    machine: &Machine,
    path: &str,
    words: usize,
    word: usize,
    bits: u64,
) -> std::io::Result<()> {
    use std::sync::atomic::Ordering::SeqCst;
    let process = machine.process();
    let name = Path::new(path).file_name().unwrap_or_default();
    let file = process.open_directory(Path::new("/"))?.open(name, OpenMode::ReadWrite)?;
    file.shared_memory(words)?.word(word).fetch_xor(bits, SeqCst);
    Ok(())
}
