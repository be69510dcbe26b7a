//! What a database's connections do at a moment, whatever its mode. What a mode does not know is
//! left out. Times are nanoseconds of the machine's monotonic clock.

use dash_storage::FileId;
use dash_terminal::numbers::{float, median};

/// One look.
#[derive(Debug, Clone)]
pub struct Moment {
    /// The journal mode.
    pub mode: &'static str,
    /// When it was looked.
    pub now: u64,
    /// The coordination file: another one says that all was closed meanwhile.
    pub session: FileId,
    /// Commits since the first of the present connections opened the database.
    pub commits: u64,
    /// Connections through dash.
    pub connections: usize,
    /// What stock SQLite may do meanwhile, as `dash_stock` calls it.
    pub stock: Option<&'static str>,
    /// Who has the write lock.
    pub writer: Option<Party>,
    /// Who copies pages into the database.
    pub checkpoint: Option<Party>,
    /// Who waits for the write lock, the first in line first.
    pub queue: Vec<Party>,
    /// Who reads.
    pub readers: Vec<Reader>,
    /// The last commits, the newest one first, if the mode keeps them.
    pub recent: Option<Vec<Commit>>,
    /// How many commits that list has at most.
    pub recent_limit: usize,
}

/// Somebody who has a lock, or waits for it.
#[derive(Debug, Clone, Copy)]
pub struct Party {
    /// The process.
    pub process: Option<u32>,
    /// For how long.
    pub age: Option<u64>,
}

/// Somebody who reads.
#[derive(Debug, Clone, Copy)]
pub struct Reader {
    /// The process.
    pub process: Option<u32>,
    /// Through dash, or with stock SQLite.
    pub kind: &'static str,
    /// For how long.
    pub age: Option<u64>,
    /// Bytes of `-wal` that no checkpoint can copy before it ends.
    pub kept_bytes: Option<u64>,
    /// Commits that it does not see.
    pub commits_behind: Option<u64>,
}

/// A commit of the list.
#[derive(Debug, Clone, Copy)]
pub struct Commit {
    /// When it was done.
    pub at: u64,
    /// Bytes that it wrote into `-wal`.
    pub wal_bytes: Option<u64>,
    /// Its record's bytes in the log, and the commits that share it.
    pub record: Option<(u32, u32)>,
    /// From visible until durable.
    pub flush: Option<u64>,
}

/// What two looks come to.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Rates {
    /// Commits a second.
    pub commits: Option<f64>,
    /// Bytes a second into `-wal`.
    pub wal_bytes: Option<f64>,
    /// Bytes of the log a commit.
    pub log_bytes_per_commit: Option<f64>,
    /// Commits that became durable with the same record, as a commit sees it: the mean.
    pub group_size: Option<f64>,
    /// Seconds from visible until durable: the median.
    pub flush: Option<f64>,
}

/// Nanoseconds of a second.
const SECOND: f64 = 1e9;

impl Rates {
    /// Of the last `window` nanoseconds; `before`: an earlier look, if there was one.
    pub fn of(before: Option<&Moment>, now: &Moment, window: u64) -> Self {
        let same = before.filter(|before| {
            before.session == now.session && before.now < now.now && before.commits <= now.commits
        });
        let counted = same.map(|before| {
            float(now.commits - before.commits) * SECOND / float(now.now - before.now)
        });
        let Some(recent) = &now.recent else { return Self { commits: counted, ..Self::default() } };
        let since = same.map_or(now.now.saturating_sub(window), |before| before.now);
        let within: Vec<_> = recent.iter().filter(|commit| commit.at > since).collect();
        // Where more were made than are kept, the list begins later.
        let begins = match within.last() {
            Some(oldest) if within.len() == recent.len() && recent.len() >= now.recent_limit => {
                oldest.at
            }
            _ => since,
        };
        let seconds = float(now.now.saturating_sub(begins).max(1)) / SECOND;
        let bytes: Option<Vec<_>> = within.iter().map(|commit| commit.wal_bytes).collect();
        let records: Vec<_> = within.iter().filter_map(|commit| commit.record).collect();
        let mean = |figures: Vec<f64>| {
            (!figures.is_empty())
                .then(|| figures.iter().sum::<f64>() / figures.iter().map(|_| 1.0).sum::<f64>())
        };
        let flushes: Vec<_> =
            within.iter().filter_map(|commit| Some(float(commit.flush?) / SECOND)).collect();
        Self {
            commits: counted.or_else(|| Some(within.iter().map(|_| 1.0).sum::<f64>() / seconds)),
            wal_bytes: bytes.map(|bytes| float(bytes.iter().sum()) / seconds),
            log_bytes_per_commit: mean(
                records
                    .iter()
                    .map(|(bytes, by)| f64::from(*bytes) / f64::from((*by).max(1)))
                    .collect(),
            ),
            group_size: mean(records.iter().map(|(_, commits)| f64::from(*commits)).collect()),
            flush: (!flushes.is_empty()).then(|| median(&flushes)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(now: u64, commits: u64, recent: Option<Vec<Commit>>) -> Moment {
        Moment {
            mode: "wal",
            now,
            session: FileId { device: 1, inode: 2 },
            commits,
            connections: 1,
            stock: None,
            writer: None,
            checkpoint: None,
            queue: vec![],
            readers: vec![],
            recent,
            recent_limit: 4,
        }
    }

    fn commit(at: u64) -> Commit {
        Commit { at, wal_bytes: Some(4120), record: Some((1000, 2)), flush: Some(50_000) }
    }

    const S: u64 = 1_000_000_000;

    #[test]
    fn a_mode_that_keeps_no_list_tells_commits_alone() {
        let rates = Rates::of(Some(&moment(S, 10, None)), &moment(3 * S, 30, None), S);
        assert_eq!(rates, Rates { commits: Some(10.0), ..Rates::default() });
        assert_eq!(Rates::of(None, &moment(3 * S, 30, None), S), Rates::default());
    }

    #[test]
    fn another_session_begins_anew() {
        let mut other = moment(S, 10, None);
        other.session.inode = 3;
        assert_eq!(Rates::of(Some(&other), &moment(3 * S, 30, None), S).commits, None);
        assert_eq!(
            Rates::of(Some(&moment(S, 31, None)), &moment(3 * S, 30, None), S).commits,
            None
        );
    }

    #[test]
    fn a_list_tells_of_the_time_between_two_looks() {
        let list = vec![commit(19 * S / 10), commit(15 * S / 10), commit(S / 2)];
        let rates =
            Rates::of(Some(&moment(S, 1, None)), &moment(2 * S, 3, Some(list.clone())), 5 * S);
        assert_eq!(rates.commits, Some(2.0));
        assert_eq!(rates.wal_bytes, Some(8240.0));
        assert_eq!(rates.log_bytes_per_commit, Some(500.0));
        assert_eq!(rates.group_size, Some(2.0));
        assert_eq!(rates.flush, Some(5e-5));
        // One look alone: the window counts.
        let rates = Rates::of(None, &moment(2 * S, 3, Some(list)), 2 * S);
        assert_eq!(rates.commits, Some(1.5));
    }

    #[test]
    fn a_list_that_is_too_short_counts_for_the_time_it_spans() {
        let list = (0..4).map(|number| commit(2 * S - number * S / 4)).collect();
        let rates = Rates::of(Some(&moment(S, 0, None)), &moment(2 * S, 900, Some(list)), S);
        assert_eq!(rates.commits, Some(900.0));
        assert_eq!(rates.wal_bytes, Some(4120.0 * 4.0 / 0.75));
    }
}
