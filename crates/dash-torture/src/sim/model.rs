//! What the oracle knows: every content that was ever tried, in order, and how far back a kill and
//! a power loss may go.

use std::sync::Arc;

use super::commit::{CommitStep, Kept, is_seen_early};
use super::content::{Content, Stock};

/// A content that a transaction was to leave.
#[derive(Debug, Clone)]
struct Tried {
    content: Arc<Content>,
    /// Its commit has not come so far that anybody could find it.
    is_hidden: bool,
}

/// The history of one database.
#[derive(Debug, Clone)]
pub struct Model {
    history: Vec<Tried>,
    /// Nothing older may be found after a power loss.
    floor: usize,
    /// Nothing older may be found by a living process, whoever was killed.
    visible: usize,
    /// Something was published without a flush, and nothing is promised about a power loss.
    unflushed: bool,
    /// Others see a commit before it is durable.
    is_seen_early: bool,
    /// After a power loss nothing may tell which of two commits counts: the user has to choose.
    pub may_have_to_choose: bool,
}

impl Model {
    /// That of an empty database of an engine that commits by these steps.
    pub fn new(steps: &[CommitStep]) -> Self {
        Self {
            history: vec![Tried { content: Arc::default(), is_hidden: false }],
            floor: 0,
            visible: 0,
            unflushed: false,
            is_seen_early: is_seen_early(steps),
            may_have_to_choose: false,
        }
    }

    /// A transaction begins: from now on its content may be found, or not.
    pub fn tried(&mut self, content: &Content) -> usize {
        self.history.push(Tried { content: Arc::new(content.clone()), is_hidden: false });
        self.history.len() - 1
    }

    /// A transaction begins whose steps the model is told of: as long as none of them leaves its
    /// content, nobody may find it.
    pub fn begun(&mut self, content: &Content) -> usize {
        let number = self.tried(content);
        self.history[number].is_hidden = true;
        number
    }

    /// A step of a transaction's commit begins.
    pub fn begins(&mut self, number: usize, step: &CommitStep) {
        let never = [step.after_kill, step.after_power_loss] == [Kept::Never; 2];
        self.history[number].is_hidden &= never;
    }

    /// A step of a transaction's commit has returned.
    pub fn stands(&mut self, number: usize, step: &CommitStep) {
        match (step.after_kill, step.after_power_loss) {
            (_, Kept::Always) => self.acknowledged(number),
            (Kept::Always, _) => self.visible = self.visible.max(number),
            _ => {}
        }
    }

    /// A transaction returned: nothing older may be found any more.
    pub fn acknowledged(&mut self, number: usize) {
        self.unflushed &= number < self.visible;
        self.floor = self.floor.max(number);
        self.visible = self.visible.max(number);
    }

    /// A transaction is going to be published without a flush (synchronous=OFF). Until the next
    /// flush nobody promises anything about a power loss, as with stock SQLite: it may tear the
    /// only copy that has the name.
    pub fn published(&mut self, number: usize) {
        self.unflushed |= number > self.floor;
        self.visible = self.visible.max(number);
    }

    /// All that was published has been flushed.
    pub fn flushed(&mut self) {
        self.acknowledged(self.visible);
    }

    /// Whether anything is promised about what a power loss leaves now.
    pub fn promises(&self) -> bool {
        !self.unflushed
    }

    /// A living process has seen what it is: the others see nothing else any more, and neither
    /// does a power loss leave anything else, unless commits are seen before they are durable.
    pub fn seen(&mut self, content: &Content) {
        let number = self.tried(content);
        match self.is_seen_early || self.unflushed {
            true => self.visible = number,
            false => self.acknowledged(number),
        }
    }

    /// What is on the disk is this, and nothing else is in memory.
    pub fn on_disk(&mut self, content: &Content) {
        let number = self.tried(content);
        self.acknowledged(number);
    }

    /// A transaction is undone without a trace.
    pub fn forget(&mut self, number: usize) {
        debug_assert!(number + 1 == self.history.len() && number > self.visible);
        self.history.truncate(number);
    }

    /// The state that living processes see, unless somebody died in a transaction since.
    pub fn last(&self) -> &Content {
        &self.history[self.visible].content
    }

    /// Where the history begins that still counts: tells states of the oracle apart.
    pub fn floor(&self) -> u64 {
        self.floor as u64
    }

    /// Whether a power loss may leave this content.
    pub fn allows(&self, content: &Content) -> bool {
        self.knows(self.floor, content)
    }

    /// Whether a living process may see this content.
    pub fn shows(&self, content: &Content) -> bool {
        self.knows(self.visible, content)
    }

    fn knows(&self, from: usize, content: &Content) -> bool {
        let mut known = self.history[from..].iter().filter(|tried| !tried.is_hidden);
        known.any(|tried| *tried.content == *content)
    }

    /// Whether stock SQLite may be shown this: a committed state, however old, or a refusal.
    pub fn allows_stock(&self, stock: &Stock) -> bool {
        match stock {
            Stock::Refused => true,
            Stock::Torn(_) => false,
            Stock::Content(content) => self.allows_ever(content),
        }
    }

    /// Whether a database had this content at some time.
    pub fn allows_ever(&self, content: &Content) -> bool {
        self.knows(0, content)
    }

    /// What would have been allowed, for a message.
    pub fn shown(&self) -> String {
        let allowed = self.history[self.floor..].iter().filter(|tried| !tried.is_hidden);
        allowed.map(|tried| short(&tried.content)).collect::<Vec<_>>().join(" or ")
    }
}

/// A content, shown in little space.
pub fn short(content: &[u32]) -> String {
    let values: Vec<_> = content.iter().take(24).map(|value| format!("{value:x}")).collect();
    let more = if content.len() > 24 { " …" } else { "" };
    format!("{} pages [{}{more}]", content.len(), values.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::commit::SqliteCall;

    const fn step(after_kill: Kept, after_power_loss: Kept, can_be_undone: bool) -> CommitStep {
        let (at, is_flush) = (SqliteCall::Sync, false);
        CommitStep { name: "", at, is_flush, after_kill, after_power_loss, can_be_undone }
    }

    /// Frames to the log, then the shared index, then a flush of several commits together, as below
    /// SQLite's WAL mode.
    const IN_WAL_MODE: [CommitStep; 3] = [
        step(Kept::Perhaps, Kept::Perhaps, true),
        step(Kept::Always, Kept::Perhaps, false),
        step(Kept::Always, Kept::Always, false),
    ];

    #[test]
    fn a_kill_keeps_what_others_see_before_a_power_loss_does() {
        let mut model = Model::new(&IN_WAL_MODE);
        let (old, new) = (vec![1], vec![2]);
        model.on_disk(&old);
        let number = model.tried(&new);
        model.stands(number, &IN_WAL_MODE[0]);
        assert!(model.shows(&old) && model.shows(&new) && model.allows(&old));
        model.stands(number, &IN_WAL_MODE[1]);
        assert!(!model.shows(&old) && model.allows(&old) && model.promises());
        model.seen(&new);
        assert!(model.allows(&old), "what is seen early is not durable for that");
        model.stands(number, &IN_WAL_MODE[2]);
        assert!(!model.allows(&old) && model.allows(&new));
    }

    #[test]
    fn nobody_finds_what_no_step_has_left() {
        let steps = [step(Kept::Never, Kept::Never, true), step(Kept::Always, Kept::Always, false)];
        let mut model = Model::new(&steps);
        let new = vec![1];
        let number = model.begun(&new);
        model.begins(number, &steps[0]);
        assert!(!model.allows(&new) && !model.shows(&new) && !model.allows_ever(&new));
        model.begins(number, &steps[1]);
        assert!(model.allows(&new) && model.allows(&vec![]));
    }

    #[test]
    fn without_a_flush_nothing_is_promised_until_the_next() {
        let mut model = Model::new(&[step(Kept::Always, Kept::Always, false)]);
        model.on_disk(&vec![1]);
        let number = model.tried(&vec![2]);
        model.published(number);
        assert!(!model.promises());
        model.flushed();
        assert!(model.promises() && !model.allows(&vec![1]));
    }
}
