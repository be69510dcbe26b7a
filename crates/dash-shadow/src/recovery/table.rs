//! The recovery decision table, held as data.
//!
//! It covers what crashes leave, and what users do to files (F14, T7, T8). Every
//! combination of what the two files can be matches exactly one row; a test walks all of them.

use crate::names::access::Whose;
use crate::recovery::action::{Action, Row};
use crate::recovery::classify::Verdict;
use crate::recovery::rows::TABLE;
use crate::refusal::Refusal;

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

/// What it says. A stranger's shadow is not read (SHADOW-28), and nobody is told to take it; one
/// with other rights than `app.db` is not mended. `is_spare`: see [`crate::recovery::spare`].
pub fn decide(verdict: &Verdict, whose: Whose, is_spare: bool) -> Action {
    match (row(verdict).action, whose) {
        (Action::Refuse(Refusal::Missing), _) if is_spare => Action::CreateAfresh,
        (
            Action::UseShadow | Action::Refuse(Refusal::Emptied | Refusal::Cut),
            Whose::Strange(stranger),
        ) => Action::Refuse(Refusal::Stranger(stranger)),
        (Action::KeepRepair | Action::KeepUndo, Whose::Former | Whose::Strange(_)) => {
            Action::KeepRebuild
        }
        (action, _) => action,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::examine::{DbKind, Relation, ShadowKind};
    use crate::recovery::rows::{ANY, ANY_SHADOW};

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
        DbKind::Older,
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
