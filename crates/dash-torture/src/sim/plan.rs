//! One case: a program, and how hard it is looked at. Its text is what replays it.

use std::fmt;
use std::str::FromStr;

use dash_simulated::{Machine, Metadata, Random};

use super::subject::{Claims, Sizes};
use super::together::Together;
use crate::random::mix;

/// A kind of program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// They take turns; the power is cut at every step.
    TwoProcesses,
    /// Many short sessions, one after the other, also under synchronous=OFF; the power is cut at
    /// every step, and goes for good now and then.
    Sessions,
    /// Three, and snapshots held for long; processes killed before any call, flushes that fail, the
    /// power cut inside an action.
    ManyProcesses,
    /// A transaction over two databases, under a super-journal.
    Attached,
    /// Statements, on an SQLite that runs on the engine.
    Sql,
    /// The same, and stock SQLite in all its journal modes between, beside and after.
    Neighbours,
    /// Statements in WAL mode, for an engine whose transactions are SQLite's own.
    Wal,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::TwoProcesses,
        Self::Sessions,
        Self::ManyProcesses,
        Self::Attached,
        Self::Sql,
        Self::Neighbours,
        Self::Wal,
    ];

    /// Its name in a case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TwoProcesses => "two_processes",
            Self::Sessions => "sessions",
            Self::ManyProcesses => "many_processes",
            Self::Attached => "attached",
            Self::Sql => "sql",
            Self::Neighbours => "neighbours",
            Self::Wal => "wal",
        }
    }

    /// The kind of this name, or of one that it had formerly.
    fn named(name: &str) -> Option<Self> {
        match name {
            "pair" => Some(Self::TwoProcesses),
            "crowd" => Some(Self::ManyProcesses),
            _ => Self::ALL.into_iter().find(|kind| kind.name() == name),
        }
    }

    /// The kind of the program with this seed, if nothing else is wished for, for an engine that
    /// has transactions of its own.
    pub const fn of(seed: u64) -> Self {
        match seed % 8 {
            0..=2 => Self::TwoProcesses,
            3 => Self::Sessions,
            4 | 5 => Self::ManyProcesses,
            6 => Self::Attached,
            _ if seed % 16 == 15 => Self::Neighbours,
            _ => Self::Sql,
        }
    }

    /// Actions of a whole program.
    const fn actions(self) -> usize {
        match self {
            Self::TwoProcesses => 12,
            Self::Sessions => 24,
            Self::ManyProcesses => 30,
            Self::Attached => 4,
            Self::Sql => 8,
            Self::Neighbours => 10,
            Self::Wal => 24,
        }
    }

    /// What a power loss leaves, drawn from a seed.
    pub fn lose_power(self, machine: &Machine, seed: u64) -> Machine {
        match self {
            Self::Sessions | Self::Wal if seed % 2 == 1 => {
                machine.power_loss(&mut Together::new(seed))
            }
            _ => machine.power_loss(&mut Random::new(seed)),
        }
    }
}

/// A case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Which program.
    pub kind: Kind,
    /// Seed of everything random.
    pub seed: u64,
    /// Bytes of a page of the database.
    pub page: usize,
    /// Power losses in one story: 2 cuts the recovery too, 3 the recovery of that.
    pub depth: usize,
    /// How many fates are tried at a flush; elsewhere it is a part of that.
    pub fates: u64,
    /// How names and inodes survive.
    pub metadata: Metadata,
    /// The actions of the program that are done; all others are left out.
    pub keep: Vec<usize>,
}

/// How hard a case is looked at, if nothing else is wished for.
const FATES: u64 = 8;
const DEPTH: usize = 3;

impl Plan {
    /// A whole program.
    pub fn new(kind: Kind, seed: u64, page: usize) -> Self {
        let (metadata, keep) = (usual_metadata(seed), (0..kind.actions()).collect());
        Self { kind, seed, page, depth: DEPTH, fates: FATES, metadata, keep }
    }

    /// The program with this seed for an engine that promises this much.
    pub fn claimed(seed: u64, page: usize, claims: Claims) -> Self {
        let kind = match Kind::of(seed) {
            _ if claims.wal_mode.is_some() => Kind::Wal,
            Kind::Attached if !claims.several_databases => Kind::TwoProcesses,
            Kind::Neighbours if !claims.stock_neighbours => Kind::Sql,
            kind => kind,
        };
        let mut plan = Self::new(kind, seed, page);
        if !claims.without_journal {
            plan.metadata = Metadata::Journaled;
        }
        plan
    }

    /// Reads a case's text; the seed is not part of it.
    pub fn read(case: &str, seed: u64) -> Result<Self, String> {
        let mut parts = case.split('/');
        let name = parts.next().unwrap_or_default();
        let kind = Kind::named(name).ok_or_else(|| format!("{name} is no kind of program"))?;
        let mut plan = Self::new(kind, seed, 4096);
        for part in parts {
            let (name, value) = part.split_once('=').unwrap_or(("", part));
            match name {
                "page" => plan.page = number(value)?,
                "depth" => plan.depth = number(value)?,
                "fates" => plan.fates = number(value)?,
                "names" => plan.metadata = metadata(value)?,
                "keep" => plan.keep = value.split('.').map(number).collect::<Result<_, _>>()?,
                _ => return Err(format!("{part} says nothing about a case")),
            }
        }
        match plan.page.is_power_of_two() && (512..=65_536).contains(&plan.page) {
            true => Ok(plan),
            false => Err(format!("no database has pages of {} bytes", plan.page)),
        }
    }

    /// In what units writes tear on its device.
    pub fn tear(&self) -> u64 {
        if self.seed % 3 == 2 { 4096 } else { 512 }
    }

    /// Whether SQLite keeps its locks (`locking_mode=EXCLUSIVE`).
    pub fn is_exclusive(&self) -> bool {
        self.seed % 5 == 1
    }

    /// Whether a database comes to rest while it is open, in a program in which that may be.
    pub fn rests(&self) -> bool {
        self.seed % 32 == 31 && !self.is_exclusive()
    }

    /// The engine's own sizes.
    pub fn sizes(&self) -> Sizes {
        match (self.kind, mix(self.seed) % 8) {
            (Kind::Sessions, 0) => Sizes::Usual,
            (Kind::Sessions, 1..4) => Sizes::Wide,
            (Kind::Sessions, _) => Sizes::Tiny,
            _ if self.seed.is_multiple_of(4) => Sizes::Usual,
            _ => Sizes::Tiny,
        }
    }

    /// Whether `secure_delete` is on.
    pub fn is_secure(&self) -> bool {
        mix(self.seed ^ 0x7365_6375).is_multiple_of(5)
    }

    /// Whether the database becomes much smaller and larger all the time.
    pub fn swings(&self) -> bool {
        mix(self.seed ^ 0x7370_6163_6500).is_multiple_of(3)
    }

    /// Whether page lists become too long for a block.
    pub fn is_large(&self) -> bool {
        self.page == 512 && self.seed % 16 == 9 && self.kind != Kind::Sessions
    }

    /// Pages that a database has at most.
    pub fn pages(&self) -> usize {
        match self.page {
            _ if self.is_large() => 560,
            // Many regions of an intent.
            0..=1024 if self.kind == Kind::Sessions => 120,
            1025..=8192 if self.kind == Kind::Sessions => 24,
            0..=1024 => 48,
            1025..=8192 => 16,
            _ => 5,
        }
    }
}

/// Names of [`Metadata`] in a case.
const METADATA: [(Metadata, &str); 3] = [
    (Metadata::Journaled, "journaled"),
    (Metadata::OneSector, "sector"),
    (Metadata::Apart, "apart"),
];

/// One program in so many runs on a file system without a journal, if it is not asked for.
const WITHOUT_JOURNAL: u64 = 6;

fn usual_metadata(seed: u64) -> Metadata {
    match mix(seed ^ 0x6e61_6d65) % WITHOUT_JOURNAL {
        0 => Metadata::OneSector,
        _ => Metadata::Journaled,
    }
}

fn metadata(text: &str) -> Result<Metadata, String> {
    let found = METADATA.iter().find(|(_, name)| *name == text);
    found.map(|(metadata, _)| *metadata).ok_or_else(|| format!("names can't survive {text}"))
}

fn number<N: FromStr>(text: &str) -> Result<N, String> {
    text.parse().map_err(|_| format!("{text} is not a number"))
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/page={}", self.kind.name(), self.page)?;
        if self.depth != DEPTH {
            write!(f, "/depth={}", self.depth)?;
        }
        if self.fates != FATES {
            write!(f, "/fates={}", self.fates)?;
        }
        if self.metadata != usual_metadata(self.seed) {
            let names = METADATA.iter().find(|(metadata, _)| *metadata == self.metadata);
            write!(f, "/names={}", names.map_or("journaled", |(_, name)| name))?;
        }
        if self.keep.len() != self.kind.actions() {
            let kept: Vec<_> = self.keep.iter().map(usize::to_string).collect();
            write!(f, "/keep={}", kept.join("."))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_what_its_text_says() {
        let mut plan = Plan::new(Kind::ManyProcesses, 7, 512);
        assert_eq!(plan.to_string(), "many_processes/page=512");
        plan.keep = vec![0, 3, 9];
        plan.depth = 1;
        assert_eq!(plan.to_string(), "many_processes/page=512/depth=1/keep=0.3.9");
        assert_eq!(Plan::read(&plan.to_string(), 7), Ok(plan));
        assert!(Plan::read("two_processes/page=1000", 1).is_err());
        for (former, now) in [("pair/page=512", "two_processes"), ("crowd/page=512", "many_")] {
            assert!(Plan::read(former, 1).is_ok_and(|plan| plan.to_string().starts_with(now)));
        }
    }
}
