//! Connections on simulated machines.

use std::path::Path;

use dash_shadow::{Connection, Error, LockLevel, OpenOptions, ReadOnly, Tuning};
use dash_simulated::{Machine, Operation, OperationKind, Question, Simulated, Survivors};

use super::{Content, PAGE};

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

/// What a new process reads that may only read.
pub fn read_only(machine: &Machine) -> Result<Content, Error> {
    let mut reader = ReadOnly::open(&machine.process(), Path::new("/app.db"), false)?;
    reader.lock(LockLevel::Shared)?;
    let mut page = [0; PAGE];
    (0..reader.size() / PAGE as u64)
        .map(|number| {
            reader.read(&mut page, number * PAGE as u64)?;
            Ok(page[PAGE - 1])
        })
        .collect()
}

/// A machine with a database at rest, after three commits: its content is 1, 2, 3.
pub fn at_rest() -> Machine {
    let machine = Machine::new(1);
    let (_process, mut connection) = start(&machine, &tiny());
    for value in 0..3 {
        super::commit(&mut connection, &[1, value, 3]).unwrap();
    }
    connection.close().unwrap();
    machine
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

/// Everything but what was done to directories.
pub struct OldNames;
impl Survivors for OldNames {
    fn choose(&mut self, question: Question, _: usize, newest: usize) -> usize {
        if matches!(question, Question::Operations { .. }) { 0 } else { newest }
    }
}

/// A machine whose file system can't exchange names; whether a file can have two.
pub fn without_exchange(links: bool) -> Machine {
    let machine = Machine::new(1);
    machine.set_exchange_supported(false);
    machine.set_links_supported(links);
    machine
}

/// Every step of an exchange on such machines, from 1: a link and two renames, or a link that fails
/// and three renames.
pub const STEPS_OF_AN_EXCHANGE: [(bool, usize); 7] =
    [(true, 1), (true, 2), (true, 3), (false, 1), (false, 2), (false, 3), (false, 4)];

/// Whether it is one.
pub fn is_step_of_an_exchange(operation: &Operation) -> bool {
    let renames = matches!(operation.kind, OperationKind::Link | OperationKind::Rename);
    // The name fence is renamed, too.
    renames && operation.names.iter().any(|name| name == "app.db-shadow-tmp" || name == "app.db")
}

/// Kills a process before a step of its next exchange, counted from 1.
pub fn kill_at_step(machine: &Machine, process: Simulated, step: usize) {
    let mut seen = 0;
    machine.watch(move |machine, operation| {
        if is_step_of_an_exchange(operation) {
            seen += 1;
            if seen == step {
                machine.kill(&process);
            }
        }
    });
}
