//! Connections on simulated machines.

use std::path::Path;

use dash_shadow::{Connection, OpenOptions, Tuning};
use dash_storage::simulated::{Machine, Question, Simulated, Survivors};

/// Options with which small databases reach every path.
pub fn tiny() -> OpenOptions {
    OpenOptions { tuning: Tuning::tiny(), ..OpenOptions::default() }
}

/// A new process with the database open.
pub fn start(machine: &Machine, options: &OpenOptions) -> (Simulated, Connection<Simulated>) {
    let process = machine.process();
    let connection = Connection::open(&process, Path::new("/app.db"), options).unwrap();
    (process, connection)
}

/// Loses everything of one inode's file that lies in a range.
pub struct Without(pub u64, pub std::ops::Range<u64>);
impl Survivors for Without {
    fn choose(&mut self, question: Question, _: usize, newest: usize) -> usize {
        match question {
            Question::Unit { inode, offset } if inode == self.0 && self.1.contains(&offset) => 0,
            _ => newest,
        }
    }
}
