//! The recovery decision table, held as data.
//!
//! It covers what crashes leave, and what users do to files (F14, T7, T8). Every
//! combination of what the two files can be matches exactly one row; a test walks all of them.

use crate::classify::Verdict;
use crate::evaluate::{DbKind, Relation, ShadowKind};
use crate::refusal::Refusal;
use crate::rows::TABLE;

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

/// The row that fits.
pub fn row(verdict: &Verdict) -> &'static Row {
    const UNKNOWN: Row = Row {
        db: &[],
        shadow: &[],
        relation: &[],
        action: Action::Refuse(Refusal::BothTorn),
        story: "",
    };
    let fits = |row: &&Row| {
        row.db.contains(&verdict.db)
            && row.shadow.contains(&verdict.shadow)
            && row.relation.contains(&verdict.relation)
    };
    TABLE.iter().find(fits).unwrap_or(&UNKNOWN)
}

/// What it says.
pub fn decide(verdict: &Verdict) -> Action {
    row(verdict).action
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::{ANY, ANY_SHADOW};

    const DB: &[DbKind] = &[
        DbKind::Missing,
        DbKind::Empty,
        DbKind::NotSqlite,
        DbKind::Cut,
        DbKind::TornCopy,
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
            let child = row.relation == [Relation::Child];
            let whole = row.shadow.iter().all(|&shadow| match shadow {
                ShadowKind::Whole => true,
                // Published: nobody else writes what is not named app.db.
                ShadowKind::Modified => child,
                ShadowKind::Pending => child && row.db == [DbKind::Superseded],
                _ => false,
            });
            assert!(whole, "{}", row.story);
        }
    }
}
