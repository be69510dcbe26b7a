//! What a power loss leaves.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::Path;

use dash_simulated::{Machine, OperationKind, Question, Random, Survivors};
use dash_storage::{Directory, File, OpenMode, Storage};

use super::{DB, LOG, Tale};

/// Whether stock SQLite is kept out by the name fence, on btrfs, too.
pub fn is_fenced(machine: &Machine) -> bool {
    let note = "open-this-database-through-dash-first.txt";
    machine.exists(format!("{DB}-journal/{note}"))
}

/// Removes a file beside the database.
pub fn remove(machine: &Machine, ending: &str) {
    let folder = machine.process().open_directory(Path::new("/")).unwrap();
    folder.unlink(OsStr::new(&format!("app.db{ending}"))).unwrap();
}

/// Puts other bytes in the place of a file's, durably.
pub fn overwrite(machine: &Machine, name: &str, bytes: &[u8]) {
    let folder = machine.process().open_directory(Path::new("/")).unwrap();
    let file = folder.open(OsStr::new(name), OpenMode::Create { permissions: 0o644 }).unwrap();
    file.set_len(0).unwrap();
    file.write_at(bytes, 0).unwrap();
    file.flush().unwrap();
    folder.flush().unwrap();
}

pub fn inode(machine: &Machine, ending: &str) -> u64 {
    if let Some(log) = machine.open_stock(LOG).ok().filter(|_| ending == "-dashlog") {
        return log.inode();
    }
    machine.open_stock(format!("{DB}{ending}")).map_or(0, |file| file.inode())
}

/// Whether an operation may change what a power loss leaves.
pub fn changes(kind: OperationKind) -> bool {
    use OperationKind as K;
    matches!(
        kind,
        K::Write
            | K::WriteDurable
            | K::Flush
            | K::Store
            | K::Fence
            | K::FlushDirectory
            | K::SetLen
            | K::Initialize
            | K::Allocate
            | K::Rename
            | K::Unlink
            | K::CreateDirectory
            | K::RemoveDirectory
    )
}

/// What is left of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// What was flushed.
    Flushed,
    /// What was written first since then.
    First,
    /// What was written last.
    Newest,
    /// What was written last, but for the first sector of each block.
    Torn,
}

/// What is left of each.
#[derive(Debug, Clone, Copy)]
pub struct Fate {
    pub db: Left,
    pub wal: Left,
    pub log: Left,
    pub names: Left,
    /// `-wal` and the log.
    pub inodes: [u64; 2],
}

impl Fate {
    /// What was not flushed is lost.
    pub fn nothing() -> Self {
        let [db, wal, log, names] = [Left::Flushed; 4];
        Self { db, wal, log, names, inodes: [0; 2] }
    }

    /// On this machine.
    #[must_use]
    pub fn of(self, machine: &Machine) -> Self {
        Self { inodes: [inode(machine, "-wal"), inode(machine, "-dashlog")], ..self }
    }
}

impl Survivors for Fate {
    fn choose(&mut self, question: Question, answers: usize, newest: usize) -> usize {
        let [wal, log] = self.inodes;
        let left = match question {
            Question::Unit { inode, offset } if self.log == Left::Torn && inode == log => {
                if offset.is_multiple_of(4096) { Left::Flushed } else { Left::Newest }
            }
            Question::Line { inode, .. } if inode == log => match self.log {
                Left::Torn => return answers - 1,
                left => left,
            },
            Question::Unit { inode, .. } | Question::Length { inode } | Question::Cut { inode } => {
                match inode {
                    _ if inode == wal => self.wal,
                    _ if inode == log => self.log,
                    _ => self.db,
                }
            }
            _ => self.names,
        };
        match left {
            Left::Flushed => 0,
            Left::First => 1.min(answers - 1),
            Left::Newest | Left::Torn => newest,
        }
    }
}

/// What a power loss may leave: of each file what was flushed or what was written, and some of all.
pub fn losses(machine: &Machine, random: u64) -> Vec<(String, Machine)> {
    use Left::{First, Flushed, Newest, Torn};
    let mut all = Vec::new();
    let mut seen = HashSet::new();
    let mut add = |fate: String, after: Machine| {
        if seen.insert(after.state_hash()) {
            all.push((fate, after));
        }
    };
    for names in [Flushed, Newest] {
        for db in [Flushed, Newest] {
            for log in [Flushed, Newest] {
                for wal in [Flushed, First, Newest] {
                    let mut fate = Fate { db, wal, log, names, ..Fate::nothing() }.of(machine);
                    let shown = format!("names {names:?}, db {db:?}, log {log:?}, -wal {wal:?}");
                    add(shown, machine.power_loss(&mut fate));
                }
            }
        }
    }
    for wal in [Flushed, Newest] {
        let mut fate = Fate { wal, log: Torn, ..Fate::nothing() }.of(machine);
        add(format!("log torn, -wal {wal:?}"), machine.power_loss(&mut fate));
    }
    for seed in 0..random {
        add(format!("random {seed}"), machine.power_loss(&mut Random::new(seed)));
    }
    all
}

impl Tale {
    /// It is not opened, as what is said has these words.
    pub fn is_refused(&self, what: &str) -> String {
        let refused = self.try_open().err().unwrap();
        assert!(refused.contains(what), "{refused}");
        refused
    }
}
