//! What the oracle knows: the commits in their order, which of them are durable, and those that
//! were cut off.
//!
//! In WAL mode commits have one order, and whatever a power loss leaves is all of them up to one. A
//! commit that was cut off stands or falls with what it was made on, as long as nobody has made
//! anything else of that.

use std::sync::Arc;

use crate::sim::content::Content;
use crate::sim::model::short;

/// Why all processes are gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The power went: what was flushed is there.
    Power,
    /// They were killed: what was written is there.
    Kill,
}

/// A commit that was cut off.
#[derive(Debug, Clone)]
struct Ghost {
    /// The number of the one it was made on.
    base: usize,
    content: Arc<Content>,
    /// It was looked for after a kill, and was not there. A power loss can still bring it back, as
    /// in stock SQLite: one whose last page happens to be what a hole in the file reads as lacks
    /// nothing as soon as the file is longer, and what came in its place may be lost.
    is_laid: bool,
}

/// The history of one database.
#[derive(Debug, Clone)]
pub struct History {
    /// Everybody alive sees the last one.
    commits: Vec<Arc<Content>>,
    /// No power loss leaves less than this one.
    durable: usize,
    /// What is being committed right now.
    in_flight: Option<Arc<Content>>,
    ghosts: Vec<Ghost>,
    /// All processes are gone, for this cause, and nobody has looked since.
    unseen: Option<Cause>,
    /// A flush may have failed, and nobody has looked since all were gone.
    is_faulty: bool,
}

impl Default for History {
    fn default() -> Self {
        let commits = vec![Arc::default()];
        let (ghosts, is_faulty) = (Vec::new(), false);
        Self { commits, durable: 0, in_flight: None, ghosts, unseen: None, is_faulty }
    }
}

impl History {
    fn newest(&self) -> usize {
        self.commits.len() - 1
    }

    /// Tells states of the oracle apart.
    pub fn mark(&self) -> u64 {
        (self.durable as u64) << 32 | self.ghosts.len() as u64
    }

    /// A transaction is going to be committed.
    pub fn begins(&mut self, content: &Content) {
        self.in_flight = Some(Arc::new(content.clone()));
    }

    /// It was: for good, or for as long as the power is on.
    pub fn committed(&mut self, for_good: bool) {
        if let Some(content) = self.in_flight.take() {
            self.commits.push(content);
        }
        if for_good {
            self.flushed();
        }
    }

    /// It was cut off.
    pub fn cut_off(&mut self) {
        if let Some(content) = self.in_flight.take() {
            self.ghosts.push(Ghost { base: self.newest(), content, is_laid: false });
        }
    }

    /// All processes are gone.
    pub fn ended(&mut self, cause: Cause) {
        self.cut_off();
        self.unseen = match self.unseen {
            Some(Cause::Power) => Some(Cause::Power),
            _ => Some(cause),
        };
    }

    /// Whether nobody has looked since all were gone.
    pub fn is_unseen(&self) -> bool {
        self.unseen.is_some()
    }

    /// Flushes fail from here on: pages may be clean that are on no device.
    pub fn flushes_fail(&mut self) {
        self.is_faulty = true;
    }

    /// Whether one may have failed. Only the engine writes such pages again; behind them what stock
    /// SQLite commits is lost, as it is without the engine.
    pub fn is_faulty(&self) -> bool {
        self.is_faulty
    }

    /// All that was committed is durable.
    pub fn flushed(&mut self) {
        self.durable = self.newest();
        self.ghosts.retain(|ghost| ghost.base >= self.durable);
    }

    /// A process sees this: if it is the first one to come, what is left; else the newest commit,
    /// or one that was cut off after others could see it.
    ///
    /// # Errors
    ///
    /// What it should have seen.
    pub fn sees(&mut self, content: &Content) -> Result<(), String> {
        if let Some(cause) = self.unseen.take() {
            return self.found(cause, content);
        }
        if self.in_flight.is_none() && **self.last_ref() == *content {
            return Ok(());
        }
        self.cut_off();
        self.check(Cause::Kill, content)?;
        self.comes_true(content);
        Ok(())
    }

    /// The first process to come sees this.
    fn found(&mut self, cause: Cause, content: &Content) -> Result<(), String> {
        self.check(cause, content).map_err(|what| format!("{what}, after {cause:?}"))?;
        self.is_faulty = false;
        match cause {
            Cause::Power => {
                let base = self.commits.iter().rposition(|known| **known == *content);
                let ghosts = base.map(|base| self.made_on(base)).unwrap_or_default();
                let commits = vec![Arc::new(content.clone())];
                *self = Self { commits, ghosts, ..Self::default() };
            }
            Cause::Kill => {
                let base = self.newest();
                self.comes_true(content);
                for ghost in self.ghosts.iter_mut().filter(|ghost| ghost.base == base) {
                    ghost.is_laid = true;
                }
            }
        }
        Ok(())
    }

    /// What was made on a commit and is lost with the power. SQLite writes the next first frame
    /// with the salts of the header that it finds, so where it is the very frame that was lost,
    /// those behind it count again: what was lost stands or falls with the next commit. What is
    /// made on another one never comes back.
    fn made_on(&self, base: usize) -> Vec<Ghost> {
        let next = self.commits.get(base + 1);
        let ghosts = self.ghosts.iter().filter(|ghost| ghost.base == base);
        let contents = ghosts.map(|ghost| &ghost.content).chain(next);
        let lost = |content| Ghost { base: 0, content: Arc::clone(content), is_laid: false };
        contents.map(lost).collect()
    }

    /// Whether somebody may find this.
    fn check(&self, cause: Cause, content: &Content) -> Result<(), String> {
        if self.after(cause).any(|allowed| **allowed == *content) {
            return Ok(());
        }
        let all: Vec<_> = self.after(cause).map(|allowed| short(allowed)).collect();
        let ever = self.commits.iter().rposition(|old| **old == *content);
        let what = match ever {
            Some(number) => format!("commit {number} of {}", self.newest()),
            None => "nothing that was committed".to_owned(),
        };
        Err(format!(
            "{}, {what}, and not {} (durable: {})",
            short(content),
            all.join(" or "),
            self.durable
        ))
    }

    /// What may be found.
    fn after(&self, cause: Cause) -> impl Iterator<Item = &Arc<Content>> {
        let from = match cause {
            Cause::Power => self.durable,
            Cause::Kill => self.newest(),
        };
        let may_walk = move |ghost: &&Ghost| cause == Cause::Power || !ghost.is_laid;
        let ghosts = self.ghosts.iter().filter(move |ghost| ghost.base >= from).filter(may_walk);
        let ghosts = ghosts.map(|ghost| &ghost.content).chain(&self.in_flight);
        self.commits[from..].iter().chain(ghosts)
    }

    fn last_ref(&self) -> &Arc<Content> {
        &self.commits[self.newest()]
    }

    /// What was cut off counts, if it is this.
    fn comes_true(&mut self, content: &Content) {
        if **self.last_ref() != *content {
            self.commits.push(Arc::new(content.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(history: &mut History, value: u32, for_good: bool) {
        history.begins(&vec![value]);
        history.committed(for_good);
    }

    fn looks(history: &mut History, cause: Cause, value: u32) -> Result<(), String> {
        history.ended(cause);
        history.sees(&vec![value])
    }

    #[test]
    fn a_power_loss_leaves_a_prefix_that_is_not_older_than_what_was_flushed() {
        let mut history = History::default();
        commit(&mut history, 1, true);
        commit(&mut history, 2, false);
        commit(&mut history, 3, false);
        for (value, power, kill) in [(1, true, false), (2, true, false), (3, true, true)] {
            assert_eq!(history.check(Cause::Power, &vec![value]).is_ok(), power);
            assert_eq!(history.check(Cause::Kill, &vec![value]).is_ok(), kill);
        }
        assert!(history.check(Cause::Power, &vec![]).is_err());
        commit(&mut history, 4, true);
        assert!(history.check(Cause::Power, &vec![3]).is_err());
    }

    #[test]
    fn what_was_cut_off_stands_or_falls_until_somebody_has_looked() {
        let mut history = History::default();
        commit(&mut history, 1, true);
        history.begins(&vec![2]);
        history.cut_off();
        let mut found = history.clone();
        assert!(looks(&mut found, Cause::Kill, 2).is_ok());
        assert!(found.check(Cause::Kill, &vec![1]).is_err() && found.durable == 1);
        let mut lost = history.clone();
        assert!(looks(&mut lost, Cause::Power, 1).is_ok());
        assert!(lost.check(Cause::Power, &vec![2]).is_ok(), "the next one may bring it back");
        commit(&mut lost, 4, false);
        assert!(lost.check(Cause::Kill, &vec![2]).is_err(), "that one is there");
        lost.flushed();
        assert!(lost.check(Cause::Power, &vec![2]).is_err(), "it never comes back");
        let mut lost = history.clone();
        commit(&mut lost, 3, false);
        commit(&mut lost, 4, false);
        assert!(looks(&mut lost, Cause::Power, 1).is_ok());
        assert!(lost.check(Cause::Power, &vec![4]).is_err(), "it was made on another");
        let mut laid = history.clone();
        assert!(looks(&mut laid, Cause::Kill, 1).is_ok());
        assert!(laid.check(Cause::Kill, &vec![2]).is_err(), "a kill takes nothing");
        assert!(laid.check(Cause::Power, &vec![2]).is_ok(), "nothing is flushed since");
        laid.flushed();
        commit(&mut laid, 3, true);
        assert!(laid.check(Cause::Power, &vec![2]).is_err());
        commit(&mut history, 3, false);
        assert!(history.check(Cause::Kill, &vec![2]).is_err());
        assert!(history.check(Cause::Power, &vec![2]).is_ok(), "nothing is flushed since");
        history.flushed();
        assert!(history.check(Cause::Power, &vec![2]).is_err());
    }
}
