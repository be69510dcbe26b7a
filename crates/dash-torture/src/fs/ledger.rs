//! The ledger kept outside of the databases: which content each commit made, and between which
//! positions of the device's log it began and was acknowledged.

use std::ops::Range;

use serde_json::{Value, json};

/// A hash of the content of `main` and of `aux`.
pub type State = (u64, u64);

/// One commit.
#[derive(Debug, Clone, Copy)]
pub struct Commit {
    /// Events in the log when it began.
    pub begun: u64,
    /// Events in the log when SQLite had said yes.
    pub acknowledged: u64,
    /// The content it made.
    pub state: State,
    /// Whether the answer promised that power losses don't take it. Those that do promise it for
    /// all before.
    pub is_durable: bool,
}

/// All commits of a program.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    /// What was there before the first.
    pub empty: State,
    /// In order.
    pub commits: Vec<Commit>,
    /// What commits that failed would have made. Until a later one succeeds they may be found or
    /// not.
    pub doubtful: Vec<Doubtful>,
    /// Between which positions stock SQLite, in a mode that does not protect it, may leave a torn
    /// file.
    pub torn: Vec<Range<u64>>,
    /// Between which positions dash may leave a choice to the user: a process died in a commit
    /// through dash, stock SQLite wrote on the state before, and dash has not opened the database
    /// since. A power loss takes what tells that nobody was told of that commit.
    pub choices: Vec<Range<u64>>,
    /// What was done, for the story of a failure: from which position on, and what.
    pub story: Vec<(u64, String)>,
}

/// A commit that failed.
#[derive(Debug, Clone, Copy)]
pub struct Doubtful {
    /// Events in the log when it began.
    pub begun: u64,
    /// How many commits had succeeded by then.
    pub after: usize,
    /// The content it would have made.
    pub state: State,
}

/// What may be found in an image.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allowed {
    /// These, after recovery.
    pub now: Vec<State>,
    /// These are older: finding one means that an acknowledged commit is lost.
    pub lost: Vec<State>,
    /// Whether the file may be torn, by no fault of dash: nothing is expected of it.
    pub torn: bool,
    /// Whether dash may refuse, and leave the choice to the user.
    pub is_users_choice: bool,
    /// What had been done.
    pub story: String,
}

impl Ledger {
    /// What a power cut may leave when the log had so many events.
    pub fn allowed(&self, position: u64) -> Allowed {
        let all: Vec<State> = std::iter::once(self.empty)
            .chain(self.commits.iter().map(|commit| commit.state))
            .collect();
        let is_promised = |commit: &Commit| commit.is_durable && commit.acknowledged <= position;
        let durable = self.commits.iter().rposition(is_promised).map_or(0, |index| index + 1);
        let begun = self.commits.partition_point(|commit| commit.begun <= position);
        let mut now = all[durable..=begun].to_vec();
        let doubtful = self.doubtful.iter();
        now.extend(
            doubtful
                .filter(|failed| failed.begun <= position && failed.after >= durable)
                .map(|failed| failed.state),
        );
        let torn = self.torn.iter().any(|range| range.contains(&position));
        let is_users_choice = self.choices.iter().any(|range| range.contains(&position));
        let told = self.story.iter().take_while(|(begun, _)| *begun <= position);
        let story = told.map(|(_, what)| what.as_str()).collect::<Vec<_>>().join(", ");
        Allowed { now, lost: all[..durable].to_vec(), torn, is_users_choice, story }
    }
}

impl Allowed {
    /// Whether stock SQLite may see this in `main` (or in `aux`) before recovery: any committed
    /// state.
    pub fn was_ever(&self, content: u64, of: fn(&State) -> u64) -> bool {
        self.now.iter().chain(&self.lost).any(|state| of(state) == content)
    }

    /// What may be found once a further commit was begun, or (`is_durable`) acknowledged.
    pub fn after(&self, state: State, is_durable: bool) -> Self {
        let mut before = self.clone();
        if is_durable {
            before.lost.append(&mut before.now);
        }
        before.now.push(state);
        before
    }

    /// For a file.
    pub fn to_json(&self) -> Value {
        json!({ "now": self.now, "lost": self.lost, "is_users_choice": self.is_users_choice })
    }

    /// From a file.
    pub fn from_json(value: &Value) -> Option<Self> {
        let states = |name: &str| -> Option<Vec<State>> {
            let pair = |pair: &Value| Some((pair.get(0)?.as_u64()?, pair.get(1)?.as_u64()?));
            value.get(name)?.as_array()?.iter().map(pair).collect()
        };
        let is_users_choice = value.get("is_users_choice").and_then(Value::as_bool);
        Some(Self {
            now: states("now")?,
            lost: states("lost")?,
            is_users_choice: is_users_choice.unwrap_or_default(),
            ..Self::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_is_possible_from_its_beginning_and_certain_from_its_acknowledgement() {
        let commit = |begun, acknowledged, content, is_durable| Commit {
            begun,
            acknowledged,
            state: (content, 0),
            is_durable,
        };
        let doubtful = vec![Doubtful { begun: 6, after: 1, state: (10, 0) }];
        let commits = vec![commit(2, 5, 8, true), commit(5, 9, 9, true)];
        let mut ledger = Ledger { empty: (7, 0), commits, doubtful, ..Ledger::default() };
        ledger.torn.push(10..12);
        assert_eq!(ledger.allowed(0).now, [(7, 0)]);
        assert_eq!(ledger.allowed(4).now, [(7, 0), (8, 0)]);
        let at = ledger.allowed(6);
        assert_eq!(
            (at.now.as_slice(), at.lost.as_slice()),
            (&[(8, 0), (9, 0), (10, 0)][..], &[(7, 0)][..])
        );
        assert_eq!(ledger.allowed(100).now, [(9, 0)]);
        assert_eq!(Allowed::from_json(&at.to_json()), Some(at));
        assert!(ledger.allowed(11).torn && !ledger.allowed(12).torn);
    }

    #[test]
    fn what_was_not_promised_may_be_lost_until_something_later_is() {
        let commit =
            |at, is_durable| Commit { begun: at, acknowledged: at, state: (at, 0), is_durable };
        let commits = vec![commit(1, true), commit(2, false), commit(3, true), commit(4, false)];
        let ledger = Ledger { commits, ..Ledger::default() };
        assert_eq!(ledger.allowed(2).now, [(1, 0), (2, 0)]);
        assert_eq!(ledger.allowed(3).now, [(3, 0)]);
        assert_eq!(ledger.allowed(9).now, [(3, 0), (4, 0)]);
    }
}
