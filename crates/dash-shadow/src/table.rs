//! The recovery decision table, held as data.
//!
//! Source: protocols.md section 5, extended by what users do to files (F14, T7, T8). Every
//! combination of what the two files can be matches exactly one row; a test walks all of them.

use crate::error::Error;
use crate::evaluate::{DbKind, Relation, ShadowKind, Verdict};
use crate::names::Names;

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Make an empty database, if that was asked for.
    Create,
    /// `app.db` is current; the shadow is mended by its intent before it is written.
    KeepRepair,
    /// The same, and at once, because a super-journal waits for it.
    KeepUndo,
    /// `app.db` is current; the shadow is made anew before a commit needs it.
    KeepRebuild,
    /// The shadow is current: its pages are written again and flushed, then the names exchanged.
    UseShadow,
    /// Touch nothing.
    Refuse(Refusal),
}

/// Why nothing is touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// `app.db` is gone, the shadow is there.
    Missing,
    /// `app.db` has no bytes, the shadow has.
    Emptied,
    /// `app.db` is something else.
    NotSqlite,
    /// Both files hold commits the other lacks.
    Diverged,
    /// Neither file is a state after a commit.
    BothTorn,
}

impl Refusal {
    /// The error that says so.
    pub fn error(self, names: &Names) -> Error {
        let message = self.message(names);
        match self {
            Self::NotSqlite => Error::NotADatabase(message),
            Self::BothTorn => Error::Corrupt(message),
            Self::Missing | Self::Emptied | Self::Diverged => Error::CantOpen(message),
        }
    }

    /// What happened and what to do.
    pub fn message(self, names: &Names) -> String {
        let db = names.db.to_string_lossy();
        let shadow = names.shadow.to_string_lossy();
        match self {
            Self::Missing => format!(
                "{db} is missing but {shadow} exists: to keep its content run `dash recover {db}`, to start afresh remove {shadow}"
            ),
            Self::Emptied => format!(
                "{db} is empty but {shadow} holds data: to get it back run `dash recover {db}`, to start afresh remove {shadow}"
            ),
            Self::NotSqlite => format!("{db} is not an SQLite database"),
            Self::Diverged => format!(
                "{db} was written by another program after a crash, while {shadow} holds a newer commit of dash: \
                 choose one with `dash recover {db} --keep database` or `--keep shadow`"
            ),
            Self::BothTorn => format!(
                "neither {db} nor {shadow} is a whole state: run `dash recover {db}`, or restore a backup"
            ),
        }
    }
}

/// A row of the table.
#[derive(Debug)]
pub struct Row {
    /// What `app.db` may be.
    pub db: &'static [DbKind],
    /// What the shadow may be.
    pub shadow: &'static [ShadowKind],
    /// How they may be related.
    pub relation: &'static [Relation],
    /// What to do.
    pub action: Action,
    /// How it comes to this.
    pub story: &'static str,
}

const ANY_SHADOW: &[ShadowKind] = &[
    ShadowKind::Missing,
    ShadowKind::Alien,
    ShadowKind::Torn,
    ShadowKind::Whole,
    ShadowKind::Pending,
    ShadowKind::Superseded,
];
const PRESENT: &[ShadowKind] = &[
    ShadowKind::Alien,
    ShadowKind::Torn,
    ShadowKind::Whole,
    ShadowKind::Pending,
    ShadowKind::Superseded,
];
const ANY: &[Relation] = &[Relation::Child, Relation::Parent, Relation::None];
const KIN: &[Relation] = &[Relation::Child, Relation::Parent];
const NOT_CHILD: &[Relation] = &[Relation::Parent, Relation::None];
const NOT_PARENT: &[Relation] = &[Relation::Child, Relation::None];

/// The table. Rows exclude each other.
pub const TABLE: &[Row] = &[
    Row {
        db: &[DbKind::Missing],
        shadow: &[ShadowKind::Missing],
        relation: ANY,
        action: Action::Create,
        story: "a new database",
    },
    Row {
        db: &[DbKind::Missing],
        shadow: PRESENT,
        relation: ANY,
        action: Action::Refuse(Refusal::Missing),
        story: "app.db was removed by hand; an empty one must not take its place",
    },
    Row {
        db: &[DbKind::NotSqlite],
        shadow: ANY_SHADOW,
        relation: ANY,
        action: Action::Refuse(Refusal::NotSqlite),
        story: "another file, or damage to page 1",
    },
    Row {
        db: &[DbKind::Empty],
        shadow: &[ShadowKind::Whole],
        relation: &[Relation::Child],
        action: Action::UseShadow,
        story: "the first commit was flushed, the exchange was lost",
    },
    Row {
        db: &[DbKind::Empty],
        shadow: &[ShadowKind::Whole, ShadowKind::Superseded],
        relation: &[Relation::Parent, Relation::None],
        action: Action::Refuse(Refusal::Emptied),
        story: "app.db was cut to nothing by hand",
    },
    Row {
        db: &[DbKind::Empty],
        shadow: &[ShadowKind::Superseded],
        relation: &[Relation::Child],
        action: Action::Refuse(Refusal::Emptied),
        story: "app.db was cut to nothing after its first commits",
    },
    Row {
        db: &[DbKind::Empty],
        shadow: &[ShadowKind::Missing, ShadowKind::Alien],
        relation: ANY,
        action: Action::KeepRebuild,
        story: "a new database",
    },
    Row {
        db: &[DbKind::Empty],
        shadow: &[ShadowKind::Torn, ShadowKind::Pending],
        relation: &[Relation::Child],
        action: Action::KeepRebuild,
        story: "the first commit never became durable",
    },
    Row {
        db: &[DbKind::Empty],
        shadow: &[ShadowKind::Torn, ShadowKind::Pending],
        relation: NOT_CHILD,
        action: Action::Refuse(Refusal::Emptied),
        story: "app.db was cut to nothing by hand after a crash",
    },
    Row {
        db: &[DbKind::Plain],
        shadow: ANY_SHADOW,
        relation: ANY,
        action: Action::KeepRebuild,
        story: "a database dash has not seen, a restored backup, a copy, a vacuum by stock SQLite",
    },
    Row {
        db: &[DbKind::Modified],
        shadow: &[ShadowKind::Whole, ShadowKind::Pending],
        relation: &[Relation::Child],
        action: Action::Refuse(Refusal::Diverged),
        story: "power was lost before the exchange was durable, then stock SQLite wrote",
    },
    Row {
        db: &[DbKind::Modified],
        shadow: &[ShadowKind::Whole, ShadowKind::Pending],
        relation: NOT_CHILD,
        action: Action::KeepRebuild,
        story: "stock SQLite wrote at rest",
    },
    Row {
        db: &[DbKind::Modified],
        shadow: &[ShadowKind::Missing, ShadowKind::Alien, ShadowKind::Torn, ShadowKind::Superseded],
        relation: ANY,
        action: Action::KeepRebuild,
        story: "stock SQLite wrote at rest",
    },
    Row {
        db: &[DbKind::Torn],
        shadow: &[ShadowKind::Whole],
        relation: ANY,
        action: Action::UseShadow,
        story: "names behind on disk: the file under app.db was the one being written",
    },
    Row {
        db: &[DbKind::Torn],
        shadow: &[
            ShadowKind::Missing,
            ShadowKind::Alien,
            ShadowKind::Torn,
            ShadowKind::Pending,
            ShadowKind::Superseded,
        ],
        relation: ANY,
        action: Action::Refuse(Refusal::BothTorn),
        story: "damage beyond a power loss: never guess",
    },
    Row {
        db: &[DbKind::Whole],
        shadow: &[ShadowKind::Whole],
        relation: &[Relation::Child],
        action: Action::UseShadow,
        story: "the commit was flushed, the exchange was lost or never made",
    },
    Row {
        db: &[DbKind::Whole],
        shadow: &[ShadowKind::Whole, ShadowKind::Superseded],
        relation: &[Relation::Parent],
        action: Action::KeepRepair,
        story: "between two commits, or closed cleanly",
    },
    Row {
        db: &[DbKind::Whole],
        shadow: &[ShadowKind::Superseded],
        relation: &[Relation::Child],
        action: Action::KeepRebuild,
        story: "an older copy of app.db was put back over itself (T8)",
    },
    Row {
        db: &[DbKind::Whole],
        shadow: &[ShadowKind::Torn],
        relation: KIN,
        action: Action::KeepRepair,
        story: "cut or killed inside a commit",
    },
    Row {
        db: &[DbKind::Whole],
        shadow: &[ShadowKind::Pending],
        relation: &[Relation::Child],
        action: Action::KeepUndo,
        story: "cut or killed inside a commit over several databases",
    },
    Row {
        db: &[DbKind::Whole],
        shadow: &[ShadowKind::Pending],
        relation: NOT_CHILD,
        action: Action::KeepRebuild,
        story: "an older copy of app.db was put back",
    },
    Row {
        db: &[DbKind::Whole],
        shadow: &[ShadowKind::Whole, ShadowKind::Superseded, ShadowKind::Torn],
        relation: &[Relation::None],
        action: Action::KeepRebuild,
        story: "one of the two files is from another time",
    },
    Row {
        db: &[DbKind::Whole],
        shadow: &[ShadowKind::Missing, ShadowKind::Alien],
        relation: ANY,
        action: Action::KeepRebuild,
        story: "the shadow was removed, as by going back to a plain file, or replaced by hand",
    },
    Row {
        db: &[DbKind::Pending],
        shadow: &[ShadowKind::Whole, ShadowKind::Superseded],
        relation: &[Relation::Parent],
        action: Action::KeepRepair,
        story: "cannot be: a published commit's super-journal is gone, and the shadow vouches for it",
    },
    Row {
        db: &[DbKind::Pending],
        shadow: &[ShadowKind::Whole, ShadowKind::Superseded],
        relation: NOT_PARENT,
        action: Action::KeepRebuild,
        story: "a published commit, and a file that by chance has its super-journal's name",
    },
    Row {
        db: &[DbKind::Pending],
        shadow: &[ShadowKind::Missing, ShadowKind::Alien, ShadowKind::Torn, ShadowKind::Pending],
        relation: ANY,
        action: Action::KeepRebuild,
        story: "the same: only what was published has ever been named app.db",
    },
    Row {
        db: &[DbKind::Superseded],
        shadow: &[ShadowKind::Whole, ShadowKind::Pending],
        relation: &[Relation::Child],
        action: Action::UseShadow,
        story: "closed after one commit, then the power went before the exchange was durable",
    },
    Row {
        db: &[DbKind::Superseded],
        shadow: &[ShadowKind::Missing, ShadowKind::Alien],
        relation: ANY,
        action: Action::KeepRebuild,
        story: "the shadow was put in the place of app.db by hand",
    },
    Row {
        db: &[DbKind::Superseded],
        shadow: &[ShadowKind::Whole, ShadowKind::Pending],
        relation: NOT_CHILD,
        action: Action::Refuse(Refusal::BothTorn),
        story: "files of different times, mixed by hand",
    },
    Row {
        db: &[DbKind::Superseded],
        shadow: &[ShadowKind::Torn, ShadowKind::Superseded],
        relation: ANY,
        action: Action::Refuse(Refusal::BothTorn),
        story: "the newer of two states is damaged",
    },
];

/// The row that fits.
pub fn decide(verdict: &Verdict) -> Action {
    TABLE
        .iter()
        .find(|row| {
            row.db.contains(&verdict.db)
                && row.shadow.contains(&verdict.shadow)
                && row.relation.contains(&verdict.relation)
        })
        .map_or(Action::Refuse(Refusal::BothTorn), |row| row.action)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DB: &[DbKind] = &[
        DbKind::Missing,
        DbKind::Empty,
        DbKind::NotSqlite,
        DbKind::Plain,
        DbKind::Modified,
        DbKind::Torn,
        DbKind::Whole,
        DbKind::Pending,
        DbKind::Superseded,
    ];

    #[test]
    fn every_combination_matches_exactly_one_row() {
        for &db in DB {
            for &shadow in ANY_SHADOW {
                for &relation in ANY {
                    let rows: Vec<_> = TABLE
                        .iter()
                        .filter(|row| {
                            row.db.contains(&db)
                                && row.shadow.contains(&shadow)
                                && row.relation.contains(&relation)
                        })
                        .map(|row| row.story)
                        .collect();
                    assert_eq!(rows.len(), 1, "{db:?} {shadow:?} {relation:?}: {rows:?}");
                }
            }
        }
    }

    #[test]
    fn only_a_whole_shadow_ever_wins() {
        for row in TABLE.iter().filter(|row| row.action == Action::UseShadow) {
            let published = row.db == [DbKind::Superseded] && row.relation == [Relation::Child];
            assert!(row.shadow == [ShadowKind::Whole] || published, "{}", row.story);
        }
    }
}
