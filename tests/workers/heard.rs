//! What workers say: each row that was acknowledged, facts about their connections, errors.

use std::collections::{BTreeMap, BTreeSet};

/// A row: its worker, and which of that worker's rows it is.
pub type Row = (i64, i64);

/// All that was heard.
#[derive(Debug, Default)]
pub struct Heard {
    pub acknowledged: BTreeSet<Row>,
    /// Of a fact every value that was told.
    pub facts: BTreeMap<String, BTreeSet<String>>,
    pub errors: Vec<String>,
    /// Workers that were ready.
    pub ready: usize,
}

impl Heard {
    /// A line such as `acknowledged: 3 17`. What was cut off by a kill has no end of line.
    pub fn line(&mut self, line: &str) {
        let Some((word, value)) = line.strip_suffix('\n').and_then(|line| line.split_once(": "))
        else {
            return;
        };
        match word {
            "ready" => self.ready += 1,
            "error" => self.errors.push(value.to_owned()),
            "acknowledged" => {
                let row = value.split_once(' ').expect("a worker and a number");
                let row = (row.0.parse().expect("a number"), row.1.parse().expect("a number"));
                assert!(self.acknowledged.insert(row), "{row:?} is said twice");
            }
            _ => drop(self.facts.entry(word.to_owned()).or_default().insert(value.to_owned())),
        }
    }

    /// The one value that every worker told.
    pub fn told(&self, name: &str) -> &str {
        let values = self.facts.get(name).unwrap_or_else(|| panic!("nobody told {name}"));
        assert_eq!(values.len(), 1, "{name}: {values:?}");
        values.first().expect("one")
    }

    /// Commits of a connection without a flush, and all of them; of the busiest one that told.
    pub fn unflushed(&self) -> (u64, u64) {
        let told = self.facts.get("unflushed").expect("somebody told");
        let pairs = told.iter().map(|told| {
            let (unflushed, commits) = told.split_once(" of ").expect("two counts");
            (unflushed.parse().expect("a count"), commits.parse().expect("a count"))
        });
        pairs.max_by_key(|(_, commits)| *commits).expect("somebody told")
    }
}
