//! The table of recovery: what is found, and what is done about it. The first row that fits counts.

/// What became of the caches of those who had the database open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Boot {
    /// They are still there: processes were killed. What they left was written again.
    Same,
    /// They are, but not what was in the memory of a process alone (`dash_wal=memory`).
    Memory,
    /// They are gone, or that can't be told.
    Other,
}

impl Boot {
    /// `same_cache`: processes were killed; `in_memory`: one had `-wal` in memory.
    pub(crate) fn of(same_cache: bool, in_memory: bool) -> Self {
        match same_cache {
            true if in_memory => Self::Memory,
            true => Self::Same,
            false => Self::Other,
        }
    }
}

/// What the log says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogSays {
    /// Nothing; or there is none, and there need be none.
    Nothing,
    /// There is none, or something else is in its place, and there must be one: a session was under
    /// way when the power was lost.
    Lost,
    /// `-wal` of a generation, or of one before, is void.
    Void,
    /// A generation began; no frame of it is in the log.
    Generation,
    /// Frames of a generation.
    Frames,
}

/// How `-wal` stands to the generation that the log speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WalIs {
    /// There is none.
    Absent,
    /// Its header is of a generation before.
    Older,
    /// It has no header.
    Blank,
    /// Its header is that generation's.
    Same,
    /// Its header is of a generation since, or not of dash's.
    Newer,
}

/// What the database holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Database {
    /// Nothing that speaks against a complete checkpoint.
    Complete,
    /// A page as it was before its last image in the log, or none as in its last one. Or the log
    /// has statements in the place of images, and nothing tells that.
    LacksImages,
    /// What the log can't be of: another database, or an older state of its own.
    Another,
}

impl Database {
    /// Whether images are lacking.
    pub(crate) fn lacking(lacks: bool) -> Self {
        if lacks { Self::LacksImages } else { Self::Complete }
    }
}

/// All that is looked at. Whether processes were killed or the power was lost makes no difference
/// here: what they left in the caches was written again and flushed before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Situation {
    pub log: LogSays,
    pub wal: WalIs,
    pub database: Database,
    /// `-wal` has all frames before the log's first one, and with the log's all that the wal-index
    /// of killed processes shows.
    pub has_all: bool,
}

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Nothing: SQLite's own recovery reads `-wal`.
    Leave,
    /// `-wal` is made empty.
    Blank,
    /// The header, where it is another one, and the log's frames from the first difference on go
    /// into `-wal`.
    Replay,
    /// The log says that it is void.
    Discard,
    /// The database is not opened: the log was removed by hand.
    RefuseLost,
    /// The database is not opened: `-wal` was removed by hand.
    RefuseAbsent,
    /// The database is not opened: the log is of another one, or of another state of it.
    RefuseAnother,
    /// The database is not opened: `-wal` was cut, or replaced by an older one.
    RefuseGap,
}

/// A row: what must be so, what is done, and the story that leads there. `None` fits anything.
struct Row {
    log: fn(LogSays) -> bool,
    wal: &'static [WalIs],
    database: Option<Database>,
    has_all: Option<bool>,
    action: Action,
    story: &'static str,
}

impl Row {
    /// The same, where frames are missing.
    fn cut(self) -> Self {
        Self { has_all: Some(false), ..self }
    }

    /// The same, where the database is so.
    fn of(self, database: Database) -> Self {
        Self { database: Some(database), ..self }
    }

    fn fits(&self, situation: &Situation) -> bool {
        let Situation { log, wal, database, has_all } = *situation;
        (self.log)(log)
            && self.wal.contains(&wal)
            && self.database.is_none_or(|wanted| wanted == database)
            && self.has_all.is_none_or(|wanted| wanted == has_all)
    }
}

const ANY: &[WalIs] = &[WalIs::Absent, WalIs::Blank, WalIs::Older, WalIs::Same, WalIs::Newer];

fn lost(log: LogSays) -> bool {
    log == LogSays::Lost
}

fn nothing(log: LogSays) -> bool {
    log == LogSays::Nothing
}

fn void(log: LogSays) -> bool {
    log == LogSays::Void
}

fn generation(log: LogSays) -> bool {
    log == LogSays::Generation
}

fn chain(log: LogSays) -> bool {
    generation(log) || log == LogSays::Frames
}

/// What `-wal` holds counts, or what the log has of it.
fn counts(log: LogSays) -> bool {
    nothing(log) || chain(log)
}

fn row(
    log: fn(LogSays) -> bool,
    wal: &'static [WalIs],
    action: Action,
    story: &'static str,
) -> Row {
    Row { log, wal, database: None, has_all: None, action, story }
}

fn rows() -> [Row; 12] {
    use Action as A;
    use WalIs as W;
    [
        row(lost, ANY, A::RefuseLost, "the log was removed, emptied or overwritten, or left behind"),
        row(
            void,
            &[W::Same, W::Older, W::Blank],
            A::Blank,
            "a close, or a checkpoint that cut -wal, was itself cut off before the deletion was durable",
        ),
        row(void, &[W::Absent, W::Newer], A::Leave, "it was closed; what -wal holds came later"),
        row(
            counts,
            &[W::Same, W::Newer],
            A::RefuseGap,
            "-wal was cut, or replaced by an older one: frames are missing that were in it",
        )
        .cut(),
        row(
            counts,
            ANY,
            A::RefuseAnother,
            "the database was replaced by another one, or by an older state, or the log was copied here",
        )
        .of(Database::Another),
        row(counts, &[W::Older], A::RefuseGap, "-wal was replaced by an older one").cut(),
        row(
            counts,
            &[W::Absent, W::Blank],
            A::RefuseAbsent,
            "-wal was removed by hand: a deletion by SQLite comes after a complete checkpoint, which only statements don't tell",
        )
        .of(Database::LacksImages),
        row(
            nothing,
            ANY,
            A::Leave,
            "the log was never used, or it was closed with all that counts in -wal, or cut off before its first record",
        ),
        row(
            chain,
            &[W::Absent, W::Blank],
            A::Discard,
            "a stock program that had survived, or a close that was cut off, checkpointed everything and deleted -wal",
        ),
        row(
            chain,
            &[W::Same],
            A::Replay,
            "the power was lost, or all processes were killed; then there is mostly nothing to write",
        ),
        row(
            generation,
            &[W::Older],
            A::Replay,
            "the newest header of -wal was never written, or never flushed",
        ),
        row(
            chain,
            &[W::Newer],
            A::Leave,
            "a stock program that had survived began -wal anew after a complete checkpoint",
        ),
    ]
}

/// What is to be done.
pub(crate) fn decide(situation: Situation) -> Action {
    explain(situation).0
}

/// The same, and the story that leads there.
pub(crate) fn explain(situation: Situation) -> (Action, &'static str) {
    let none = (Action::RefuseGap, "no row of the table fits");
    rows().iter().find(|row| row.fits(&situation)).map_or(none, |row| (row.action, row.story))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Situation> {
        let logs =
            [LogSays::Nothing, LogSays::Lost, LogSays::Void, LogSays::Generation, LogSays::Frames];
        let mut all = Vec::new();
        for log in logs {
            for &wal in ANY {
                for database in [Database::Complete, Database::LacksImages, Database::Another] {
                    for has_all in [true, false] {
                        all.push(Situation { log, wal, database, has_all });
                    }
                }
            }
        }
        all
    }

    /// Said once more, another way round: what each action is good for.
    #[test]
    fn the_table_does_what_each_action_is_for() {
        for situation in all() {
            let Situation { log, wal, database, has_all } = situation;
            let is_gone = matches!(wal, WalIs::Absent | WalIs::Blank);
            let expected = match (log, wal) {
                (LogSays::Lost, _) => Action::RefuseLost,
                (LogSays::Void, WalIs::Older | WalIs::Same | WalIs::Blank) => Action::Blank,
                (LogSays::Void, _) => Action::Leave,
                (_, WalIs::Same | WalIs::Newer) if !has_all => Action::RefuseGap,
                _ if database == Database::Another => Action::RefuseAnother,
                (_, WalIs::Older) if !has_all => Action::RefuseGap,
                _ if is_gone && database == Database::LacksImages => Action::RefuseAbsent,
                (LogSays::Nothing, _) => Action::Leave,
                _ if is_gone => Action::Discard,
                (_, WalIs::Newer) => Action::Leave,
                // The header was durable before the frames came into the log.
                (LogSays::Frames, WalIs::Older) => Action::RefuseGap,
                _ => Action::Replay,
            };
            assert_eq!(decide(situation), expected, "{situation:?}");
        }
    }

    #[test]
    fn every_row_is_reached() {
        for (number, row) in rows().iter().enumerate() {
            let first = |situation: &Situation| {
                rows().iter().position(|row| row.fits(situation)) == Some(number)
            };
            assert!(all().iter().any(first), "row {number}: {:?}", row.action);
        }
    }
}
