//! The random program that the explorer runs: two processes on one database.

#![allow(clippy::unwrap_used, reason = "a part of tests")]

use std::path::Path;
use std::sync::{Arc, Mutex};

use dash_shadow::{Connection, Error, LockLevel};
use dash_storage::simulated::{Machine, Simulated, StockDescriptor};

use crate::common::{Content, commit, read, write};
use crate::explore::{DB, Dice, Plan, Progress, Seen, assert_committed, options, tail, watch};

/// Two processes work on one database; one may be killed at any step.
pub struct Run {
    machine: Machine,
    plan: Plan,
    dice: Dice,
    progress: Arc<Mutex<Progress>>,
    processes: [Option<(Simulated, Connection<Simulated>)>; 2],
    old_descriptors: Vec<StockDescriptor>,
}

impl Run {
    /// Runs a plan to its end.
    pub fn all(plan: Plan, seen: &Arc<Mutex<Seen>>) {
        let machine = Machine::new(plan.seed);
        machine.set_exchange_supported(plan.exchange);
        let progress = Arc::new(Mutex::new(Progress { history: vec![vec![]], acknowledged: 0 }));
        watch(&machine, &progress, &plan, 0, seen, &format!("{plan:?}"));
        let mut run = Self {
            machine,
            plan,
            dice: Dice(plan.seed.wrapping_mul(31) + 7),
            progress,
            processes: [None, None],
            old_descriptors: Vec::new(),
        };
        for _ in 0..plan.transactions {
            run.step();
        }
        for slot in [0, 1] {
            if let Some((_, connection)) = run.processes[slot].take() {
                connection.close().unwrap();
            }
        }
    }

    fn connection(&mut self, i: usize) -> &mut Connection<Simulated> {
        if self.processes[i].is_none() {
            let process = self.machine.process();
            let connection =
                Connection::open(&process, Path::new(DB), &options(self.plan.protocol))
                    .unwrap_or_else(|error| {
                        panic!("{:?}: {error}\n{}", self.plan, tail(&self.machine))
                    });
            self.processes[i] = Some((process, connection));
        }
        &mut self.processes[i].as_mut().unwrap().1
    }

    fn next_content(&mut self, mut content: Content) -> Content {
        let value = |dice: &mut Dice| u8::try_from(dice.roll(200)).unwrap();
        match self.dice.roll(5) {
            0 | 1 if content.len() < 60 => {
                for _ in 0..=self.dice.roll(24) {
                    content.push(value(&mut self.dice));
                }
            }
            2 if content.len() > 30 => content.truncate(content.len() - 9),
            _ => {}
        }
        if content.is_empty() {
            content.push(1);
        }
        for _ in 0..=self.dice.roll(3) {
            let at = usize::try_from(self.dice.roll(content.len() as u64)).unwrap();
            content[at] = value(&mut self.dice);
        }
        content
    }

    fn step(&mut self) {
        let i = usize::try_from(self.dice.roll(2)).unwrap();
        let choice = self.dice.roll(12);
        let story = format!("{:?}", self.plan);
        let content = read(self.connection(i)).unwrap_or_else(|error| panic!("{story}: {error}"));
        {
            let progress = self.progress.lock().unwrap();
            assert!(
                progress.history[progress.acknowledged..].contains(&content),
                "{story}: reads {content:?}"
            );
        }
        if self.dice.roll(4) == 0
            && let Ok(descriptor) = self.machine.open_stock(DB)
        {
            self.old_descriptors.push(descriptor);
        }
        let next = self.next_content(content.clone());
        match choice {
            0 => {
                if let Some((_, connection)) = self.processes[i].take() {
                    connection.close().unwrap_or_else(|error| panic!("{story}: close: {error}"));
                }
            }
            1 => self.roll_back(i, &content, &next),
            3 => match self.connection(i).settle(1) {
                Ok(_) | Err(Error::Busy | Error::BusySnapshot) => {}
                Err(error) => panic!("{story}: settle: {error}"),
            },
            2 if self.plan.kills => self.kill_inside(i, &next),
            _ => self.commit(i, next),
        }
        let progress = self.progress.lock().unwrap().clone();
        for descriptor in &self.old_descriptors {
            assert_committed(
                &descriptor.read_all(),
                &progress,
                &format!("{story}: old stock descriptor"),
                &self.machine,
            );
        }
    }

    fn commit(&mut self, i: usize, next: Content) {
        self.progress.lock().unwrap().history.push(next.clone());
        let story = format!("{:?}", self.plan);
        for attempt in 0.. {
            match commit(self.connection(i), &next) {
                Ok(()) => break,
                Err(Error::Busy | Error::BusySnapshot) if attempt < 5 => {}
                Err(error) => panic!("{story}: {error}\n{}", tail(&self.machine)),
            }
        }
        let mut progress = self.progress.lock().unwrap();
        progress.acknowledged = progress.history.len() - 1;
    }

    /// A transaction that is flushed and then rolled back (T3).
    fn roll_back(&mut self, i: usize, content: &Content, next: &Content) {
        // Until the rollback returns it may as well have happened.
        let kept = {
            let mut progress = self.progress.lock().unwrap();
            progress.history.push(next.clone());
            progress.history.push(content.clone());
            progress.acknowledged
        };
        let connection = self.connection(i);
        let written = write(connection, next);
        match written {
            Ok(()) => {
                connection.prepare(None).unwrap();
                connection.flush().unwrap();
            }
            Err(Error::Busy | Error::BusySnapshot) => {}
            Err(error) => panic!("{error}"),
        }
        connection.unlock(LockLevel::None).unwrap();
        let mut progress = self.progress.lock().unwrap();
        assert_eq!(progress.acknowledged, kept);
        progress.acknowledged = progress.history.len() - 1;
    }

    /// Kills the process at some step of its commit.
    fn kill_inside(&mut self, i: usize, next: &Content) {
        let base = {
            let mut progress = self.progress.lock().unwrap();
            let base = progress.history[progress.acknowledged].clone();
            progress.history.push(next.clone());
            base
        };
        let phases = self.dice.roll(4);
        let connection = self.connection(i);
        let done = write(connection, next)
            .and_then(|()| if phases > 0 { connection.prepare(None) } else { Ok(()) })
            .and_then(|()| if phases > 1 { connection.flush() } else { Ok(()) })
            .and_then(|()| if phases > 2 { connection.publish() } else { Ok(()) });
        if let Err(error) = &done {
            assert!(matches!(error, Error::Busy | Error::BusySnapshot), "{error}");
        }
        let (process, connection) = self.processes[i].take().unwrap();
        self.machine.kill(&process);
        drop(connection);
        // What the survivors or the next opener see decides how it went.
        let mut seen = None;
        for attempt in 0..5 {
            let other = self.connection(1 - i);
            let looked =
                other.lock(LockLevel::Shared).and_then(|()| other.lock(LockLevel::Reserved));
            let content =
                matches!(looked, Ok(())).then(|| crate::common::read_locked(other).unwrap());
            other.unlock(LockLevel::None).unwrap();
            if let Some(content) = content {
                seen = Some(content);
                break;
            }
            assert!(attempt < 4, "{:?}", looked.err());
        }
        let seen = seen.unwrap();
        assert!(
            seen == base || seen == *next,
            "{:?}: after a kill {seen:?}, neither {base:?} nor {next:?}",
            self.plan
        );
        let mut progress = self.progress.lock().unwrap();
        progress.history.push(seen);
        progress.acknowledged = progress.history.len() - 1;
    }
}
