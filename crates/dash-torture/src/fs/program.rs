//! Programs: what the databases go through while the device records. A program is a list of steps
//! of SQL that any SQLite can run, drawn from a seed.

use fastrand::Rng;

use crate::engine::{Level, Statements};

/// A step of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Statements that change the content, as one transaction.
    Commit(Vec<String>),
    /// Statements taken back again.
    Rollback(Vec<String>),
    /// A statement that leaves the content as it is: VACUUM, a switch of `journal_mode`.
    Maintain(String),
    /// How durable commits are from now on.
    Level(Level),
    /// All connections are closed, and opened again.
    Reopen,
    /// Nothing, for so many milliseconds: what goes on in the background may finish.
    Wait(u64),
}

impl Step {
    /// For the story of a failure; so many commits came before.
    pub fn told(&self, commits: usize) -> String {
        match self {
            Self::Commit(_) => format!("commit {commits}"),
            Self::Rollback(_) => "a rollback".to_owned(),
            Self::Maintain(text) => text.clone(),
            Self::Level(level) => level.sql.to_owned(),
            Self::Reopen => "reopened".to_owned(),
            Self::Wait(_) => "a pause".to_owned(),
        }
    }
}

/// A program, and how its databases are set up.
#[derive(Debug, Clone)]
pub struct Program {
    /// Statements for each new connection, before it reads.
    pub settings: Vec<String>,
    /// Whether there is a second database, attached as `aux`.
    pub is_attached: bool,
    /// Files that are there before, of other programs.
    pub fillers: u64,
    /// What is done.
    pub steps: Vec<Step>,
}

/// What a program may contain.
#[derive(Debug, Clone, Copy)]
pub struct Allowed {
    /// Steps, besides the first, which makes the tables.
    pub steps: usize,
    /// A second database, and switches of `journal_mode` from this mode of dash and back; `None`:
    /// neither.
    pub mode: Option<&'static str>,
    /// What is said to the engine of that mode only.
    pub more: Option<&'static Statements>,
    /// What makes a database smaller: VACUUM, `auto_vacuum`.
    pub shrinks: bool,
}

/// Draws statements.
#[derive(Debug)]
pub(super) struct Draft {
    /// Of all choices.
    pub(super) rng: Rng,
    databases: Vec<&'static str>,
    /// Rows are numbered, so that no two contents are alike.
    number: u64,
}

impl Draft {
    /// In a single database.
    pub(super) fn new(rng: Rng) -> Self {
        Self { rng, databases: vec!["main"], number: 0 }
    }

    /// A text that says its number first and is about as long as this.
    fn text(&mut self, length: u64) -> String {
        self.number += 1;
        let letter = char::from(b'a' + (self.number % 26) as u8);
        format!("'{}-' || replace(hex(zeroblob({})), '0', '{letter}')", self.number, length / 2)
    }

    fn length(&mut self) -> u64 {
        match self.rng.u8(..8) {
            0 => self.rng.u64(2000..6000),
            1..3 => self.rng.u64(300..1200),
            _ => self.rng.u64(0..200),
        }
    }

    /// One statement; on an empty table some do nothing, as in real life.
    fn statement(&mut self, database: &str) -> String {
        let length = self.length();
        let text = self.text(length);
        let (key, id) = (self.rng.u32(..1000), self.rng.u32(..40));
        match self.rng.u8(..10) {
            0..5 => format!("INSERT INTO {database}.t(k, v) VALUES ({key}, {text})"),
            5..7 => {
                format!("UPDATE {database}.t SET v = {text}, k = {key} WHERE id % 40 = {id}")
            }
            7 => format!("UPDATE {database}.s SET n = n + {}", self.number),
            8 => format!("DELETE FROM {database}.t WHERE id % 40 = {id}"),
            _ => format!("REPLACE INTO {database}.t(id, k, v) VALUES ({id}, {key}, {text})"),
        }
    }

    /// The statements of a transaction.
    pub(super) fn transaction(&mut self) -> Vec<String> {
        let count = match self.rng.u8(..10) {
            0..5 => 1,
            5..9 => self.rng.usize(2..8),
            _ => self.rng.usize(8..30),
        };
        let first = self.databases[self.rng.usize(..self.databases.len())];
        let both = self.databases.len() > 1 && self.rng.bool();
        let mut statements = Vec::new();
        for number in 0..count {
            let database = if both && number % 2 == 1 { "aux" } else { first };
            statements.push(self.statement(database));
        }
        if both && first == "main" && count == 1 {
            statements.push(self.statement("aux"));
        }
        statements
    }

    /// Changes every row and adds many: more than the page cache holds.
    pub(super) fn large(&mut self) -> Vec<String> {
        let (rows, text, other) = (self.rng.u32(20..120), self.text(1500), self.text(100));
        vec![
            format!(
                "INSERT INTO main.t(k, v) WITH RECURSIVE i(x) AS (SELECT 1 UNION ALL SELECT x + 1 \
                 FROM i WHERE x < {rows}) SELECT x, x || {text} FROM i"
            ),
            format!("UPDATE main.t SET v = id || {other} WHERE id % 3 = 0"),
            "DELETE FROM main.t WHERE id > 60 AND id % 5 <> 0".to_owned(),
        ]
    }
}

fn shrinks(sql: &str) -> bool {
    sql.to_ascii_lowercase().contains("vacuum")
}

/// The statements that make the tables.
pub(super) fn tables(databases: &[&str]) -> Vec<String> {
    let of = |database: &&str| {
        [
            format!("CREATE TABLE {database}.t(id INTEGER PRIMARY KEY, k INT, v TEXT)"),
            format!("CREATE INDEX {database}.i ON t(k)"),
            format!("CREATE TABLE {database}.s(n INT)"),
            format!("INSERT INTO {database}.s VALUES (0)"),
        ]
    };
    databases.iter().flat_map(of).collect()
}

/// How many files of others there are. With two of them, every other time, the inode of the name
/// fence is the first of its block on ext4, and is not written along with those of the database.
pub(super) fn fillers(seed: u64) -> u64 {
    if seed.is_multiple_of(2) { 2 } else { seed / 2 % 7 }
}

/// The program of a seed. What is not allowed is left out, the rest is the same.
pub fn generate(seed: u64, allowed: Allowed) -> Program {
    let mut rng = Rng::with_seed(seed);
    let is_attached = allowed.mode.is_some() && rng.u8(..4) == 0;
    let page_sizes = [512, 1024, 4096, 4096, 4096, 8192, 65536];
    let mut settings = vec![format!("PRAGMA page_size = {}", page_sizes[rng.usize(..7)])];
    if rng.bool() {
        settings.push("PRAGMA cache_size = 10".to_owned());
    }
    if rng.u8(..4) == 0 {
        settings.push(format!("PRAGMA auto_vacuum = {}", rng.u8(1..3)));
    }
    let is_exclusive = allowed.mode.is_some() && !is_attached && rng.u8(..5) == 0;
    if is_exclusive {
        settings.push("PRAGMA locking_mode = exclusive".to_owned());
    }
    let databases = if is_attached { vec!["main", "aux"] } else { vec!["main"] };
    let tables = tables(&databases);
    let mut draft = Draft { rng, databases, number: 0 };
    let mut steps = vec![Step::Commit(tables)];
    let mut is_plain = false;
    for _ in 0..allowed.steps {
        let step = match draft.rng.u8(..40) {
            0..2 => Step::Rollback(draft.transaction()),
            2 => Step::Rollback(draft.large()),
            3..5 => Step::Commit(draft.large()),
            5 if draft.rng.bool() => Step::Maintain("VACUUM main".to_owned()),
            5 => Step::Maintain("PRAGMA main.incremental_vacuum".to_owned()),
            6..9 => Step::Reopen,
            9 => Step::Wait(draft.rng.u64(1..60)),
            10 if allowed.mode.is_some() && !is_attached && !is_exclusive => {
                is_plain = !is_plain;
                let modes = ["delete", "truncate", "persist"];
                let plain = is_plain.then(|| modes[draft.rng.usize(..3)]);
                let mode = plain.or(allowed.mode).unwrap_or_default();
                Step::Maintain(format!("PRAGMA main.journal_mode = {mode}"))
            }
            11 => {
                let size = [512, 1024, 4096, 8192][draft.rng.usize(..4)];
                Step::Maintain(format!("PRAGMA page_size = {size}; VACUUM main"))
            }
            _ => Step::Commit(draft.transaction()),
        };
        steps.push(step);
    }
    if !allowed.shrinks {
        settings.retain(|setting| !shrinks(setting));
        steps.retain(|step| !matches!(step, Step::Maintain(text) if shrinks(text)));
    }
    let mut program = Program { settings, is_attached, fillers: fillers(seed), steps };
    if let (Some(mode), Some(more)) = (allowed.mode, allowed.more) {
        add(&mut program, mode, more, Rng::with_seed(seed ^ MORE));
    }
    program
}

/// Tells the choices of what is added from those of the program.
const MORE: u64 = 0x6d6f_7265;

/// Adds what is said to an engine only; the rest of the program stays as it is.
fn add(program: &mut Program, mode: &str, more: &Statements, mut rng: Rng) {
    if !more.settings.is_empty() {
        program.settings.push(more.settings[rng.usize(..more.settings.len())].to_owned());
    }
    // Of a level, a commit to the other database alone would say nothing of the first one.
    let levels = if program.is_attached { &[] } else { more.levels };
    let mut is_plain = false;
    for step in std::mem::take(&mut program.steps) {
        match &step {
            Step::Reopen => is_plain = false,
            Step::Maintain(text) if text.contains("journal_mode") => {
                if !is_plain {
                    program.steps.extend(levels.first().copied().map(Step::Level));
                }
                is_plain = !text.ends_with(mode);
            }
            _ => {}
        }
        let begins = program.steps.is_empty();
        program.steps.push(step);
        if begins || is_plain {
            continue;
        }
        if !levels.is_empty() && rng.u8(..4) == 0 {
            program.steps.push(Step::Level(levels[rng.usize(..levels.len())]));
        }
        if !more.maintenance.is_empty() && rng.u8(..8) == 0 {
            let text = more.maintenance[rng.usize(..more.maintenance.len())];
            program.steps.push(Step::Maintain(text.to_owned()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_names_one_program() {
        let allowed = Allowed { steps: 50, mode: Some("shadow"), more: None, shrinks: true };
        for seed in 0..20 {
            assert_eq!(generate(seed, allowed).steps, generate(seed, allowed).steps);
        }
        assert_ne!(generate(1, allowed).steps, generate(2, allowed).steps);
    }

    #[test]
    fn a_program_that_must_not_shrink_makes_the_same_commits() {
        let commits = |program: &Program| -> Vec<Step> {
            let is_commit = |step: &&Step| matches!(step, Step::Commit(_));
            program.steps.iter().filter(is_commit).cloned().collect()
        };
        let mut left_out = 0;
        for seed in 0..20 {
            let allowed = Allowed { steps: 40, mode: None, more: None, shrinks: true };
            let all = generate(seed, allowed);
            let grows = generate(seed, Allowed { shrinks: false, ..allowed });
            assert_eq!(commits(&all), commits(&grows));
            let said = format!("{grows:?}");
            assert!(!said.contains("VACUUM") && !said.contains("vacuum"), "{said}");
            left_out += all.steps.len() - grows.steps.len();
        }
        assert!(left_out > 0);
    }
}
