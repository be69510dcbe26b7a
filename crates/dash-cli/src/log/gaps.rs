//! Commits that are not in the log. Some become durable by a flush of `-wal`: the first ones of a
//! session, large ones, and those of a log that can't be written. Others had records that are
//! overwritten.

use dash_wal::history::{Commit, InWal};
use serde_json::{Value, json};

/// What is missing before a commit.
#[derive(Debug, PartialEq, Eq)]
pub enum Gap {
    /// Frames of `-wal`, of the commit's generation; how many commits they are, if `-wal` still
    /// tells.
    Frames { frames: (u32, u32), commits: Option<usize>, why: &'static str },
    /// Records of an earlier generation.
    Records(u64, u64),
}

const FLUSHED: &str = "made durable by a flush of -wal";
const FLUSHED_OR_VOID: &str =
    "made durable by a flush of -wal; --all shows what the log still has of them";
const FLUSHED_OR_LOST: &str =
    "made durable by a flush of -wal, or the records are overwritten or damaged";
const LOST: &str = "not written, or overwritten, or damaged";

impl Gap {
    pub fn sentence(&self) -> String {
        match self {
            Self::Frames { frames: (first, last), commits, why } => {
                let frames = match first == last {
                    true => format!("frame {first}"),
                    false => format!("frames {first} to {last}"),
                };
                let commits = commits.map_or(String::new(), |count| {
                    format!(" ({count} commit{})", if count == 1 { "" } else { "s" })
                });
                format!("missing here: {frames} of -wal{commits}: {why}")
            }
            Self::Records(first, last) => {
                let records = match first == last {
                    true => format!("record {first}"),
                    false => format!("records {first} to {last}"),
                };
                format!("missing here: {records}: {LOST}")
            }
        }
    }

    pub fn json(&self) -> Value {
        match self {
            Self::Frames { frames: (first, last), commits, why } => {
                json!({ "first_frame": first, "last_frame": last, "commits": commits, "reason": why })
            }
            Self::Records(first, last) => {
                json!({ "first_record": first, "last_record": last, "reason": LOST })
            }
        }
    }
}

/// What was shown so far.
pub struct Gaps {
    /// Void records are shown, too.
    all: bool,
    /// The record, the generation and the last frame of the commit that was shown last.
    last: Option<(u64, u64, u32)>,
}

impl Gaps {
    /// Nothing was shown. `all`: void records will be, too.
    pub fn new(all: bool) -> Self {
        Self { all, last: None }
    }

    /// The gap before a commit, which is shown next. `wal`: what `-wal` holds, if it is of that
    /// generation.
    pub fn before(&mut self, commit: &Commit, wal: Option<&InWal>) -> Option<Gap> {
        let Commit { record, generation, frames: (first, end), .. } = *commit;
        let last = self.last.replace((record, generation, end));
        let is_next = last.map_or(record == 1, |last| record <= last.0 + 1);
        let same = last.filter(|last| last.1 == generation);
        let begin = same.map_or(1, |last| last.2.saturating_add(1));
        if first > begin {
            let why = match (is_next, last) {
                (true, _) => FLUSHED,
                (false, None) if !self.all => FLUSHED_OR_VOID,
                (false, _) => FLUSHED_OR_LOST,
            };
            let frames = (begin, first - 1);
            let ends = wal.map(|wal| wal.commits.iter());
            let commits = ends.map(|ends| ends.filter(|end| (begin..first).contains(end)).count());
            return Some(Gap::Frames { frames, commits, why });
        }
        match last {
            Some((before, _, _)) if !is_next && same.is_none() => {
                Some(Gap::Records(before + 1, record - 1))
            }
            _ => None,
        }
    }

    /// How many commits `-wal` has behind the one that was shown last, if that is of its
    /// generation, and the last frame of them.
    pub fn behind(&self, wal: &InWal, is_same: bool) -> Option<(usize, u32)> {
        let last = self.last.filter(|_| is_same).map_or(0, |last| last.2);
        let behind = wal.commits.iter().filter(|end| **end > last);
        Some((behind.count(), *wal.commits.last()?)).filter(|(count, _)| *count > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dash_wal::Known;

    fn commit(record: u64, generation: u64, frames: (u32, u32)) -> Commit {
        let known = Known::Nothing;
        Commit {
            record,
            shared_by: 1,
            bytes: 0,
            generation,
            frames,
            database_pages: 1,
            carried: false,
            known,
        }
    }

    #[test]
    fn what_is_missing_is_told_with_its_reason() {
        let wal = InWal { salts: [1, 2], commits: vec![2, 4, 5, 9] };
        let frames =
            |frames, commits, why| Some(Gap::Frames { frames, commits: Some(commits), why });
        let mut gaps = Gaps::new(false);
        let mut before = |commit: &Commit| gaps.before(commit, Some(&wal));
        assert_eq!(before(&commit(7, 3, (5, 5))), frames((1, 4), 2, FLUSHED_OR_VOID));
        assert_eq!(before(&commit(7, 3, (6, 7))), None);
        assert_eq!(before(&commit(8, 3, (9, 9))), frames((8, 8), 0, FLUSHED));
        assert_eq!(before(&commit(11, 3, (12, 12))), frames((10, 11), 0, FLUSHED_OR_LOST));
        assert_eq!(before(&commit(12, 4, (1, 1))), None);
        assert_eq!(before(&commit(15, 5, (1, 3))), Some(Gap::Records(13, 14)));
        assert_eq!(gaps.behind(&wal, true), Some((3, 9)));
        assert_eq!(gaps.behind(&wal, false), Some((4, 9)));
        assert_eq!(Gaps::new(false).before(&commit(1, 1, (1, 1)), None), None);
    }
}
