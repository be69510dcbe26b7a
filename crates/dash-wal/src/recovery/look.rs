//! What recovery looks at: the log, `-wal`'s header, the pages of the database. Nothing is changed,
//! so [`crate::inspect`] looks at the same.

use super::rows::{Boot, LogSays, Situation, WalIs};
use crate::context::{
    Generation, HeadContext, LeftGeneration, RecordContext, Relation, WAL_HEADER, page_of, salts_of,
};
use crate::frames::{Prefix, WalHeader, seal, valid_prefix};
use crate::index::FoundIndex;
use crate::mutation::{Mutation, broken};
use crate::names::Names;
use crate::shared::coordination::Beside;
use dash_engine::error::{Context, Operation, Result};
use dash_engine::io::read_exact;
use dash_engine::open::shell_word;
use dash_log::file::LogFile;
use dash_log::head::State;
use dash_log::images::Images;
use dash_log::record::Record;
use dash_log::scan::{Condition, Scan, scan};
use dash_log::session::Whose;
use dash_storage::{File, Storage};

/// Where to look.
pub(crate) struct Look<'a, S: Storage> {
    pub(crate) names: &'a Names,
    /// The database's file.
    pub(crate) database: &'a S::File,
    /// What the coordination file tells.
    pub(crate) beside: Beside,
    /// The wal-index as it was left.
    pub(crate) index: Option<FoundIndex>,
}

/// A log, read.
pub(crate) struct Log<F: File> {
    pub(crate) file: LogFile<F>,
    pub(crate) scan: Scan,
    /// What its head says while no record counts.
    pub(crate) head: HeadContext,
    /// What its chain is about, if there is one.
    pub(crate) chain: Option<Chain>,
}

/// A chain of records.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chain {
    pub(crate) generation: Generation,
    pub(crate) first_frame: u32,
    /// Its last frame; 0: it has none.
    pub(crate) last_frame: u32,
    /// Whether it has any frame, or statements in the place of some.
    pub(crate) has_frames: bool,
    /// Whether it has such statements.
    pub(crate) carries: bool,
}

impl Chain {
    /// Whether a record of the same window may stand behind it: its frames are the next ones of the
    /// same generation (WAL-46).
    fn is_followed_by(&self, record: &Record<'_>, context: &RecordContext) -> bool {
        let (same, next) = (self.generation, self.last_frame.checked_add(1));
        context.generation == same.number
            && record.unit_bytes == page_of(&same.header)
            && next == Some(context.first_frame)
    }
}

impl<F: File> Log<F> {
    /// The generation that it speaks of.
    pub(crate) fn generation(&self) -> Option<Generation> {
        match (&self.chain, &self.head) {
            (Some(chain), _) => Some(chain.generation),
            (None, HeadContext::Void(generation)) => Some(*generation),
            (None, HeadContext::Nothing | HeadContext::Closed { .. }) => None,
        }
    }

    /// dash's number of the newest generation it knows.
    pub(crate) fn number(&self) -> u64 {
        self.generation().map_or(self.scan.greatest, |generation| generation.number)
    }

    /// Whether it is no log, and nothing of one: empty, zeros, or something else. No crash leaves
    /// that behind a name fence, which is put up once the head is durable (WAL-20).
    pub(crate) fn is_wiped(&self) -> bool {
        self.scan.condition != Condition::Whole && self.chain.is_none()
    }

    /// Its id; 0: it has no head.
    pub(super) fn id(&self) -> u64 {
        if self.scan.condition == Condition::Whole { self.scan.head.id } else { 0 }
    }

    /// Whether a session began with it. The head of one that was only made may be on no device: the
    /// flush of it may have failed.
    pub(super) fn was_used(&self) -> bool {
        self.says_anything() || matches!(self.head, HeadContext::Closed { .. })
    }

    /// Whether it has records that count, or calls a `-wal` void.
    pub(super) fn says_anything(&self) -> bool {
        self.chain.is_some() || matches!(self.head, HeadContext::Void(_))
    }

    /// What the head says of a `-wal` that stays.
    fn left(&self) -> Option<LeftGeneration> {
        match self.head {
            HeadContext::Closed { left, .. } => left,
            HeadContext::Nothing | HeadContext::Void(_) => None,
        }
    }

    fn says(&self) -> LogSays {
        match &self.chain {
            Some(chain) if !chain.has_frames => LogSays::Generation,
            Some(_) => LogSays::Frames,
            None if self.generation().is_some() && !broken(Mutation::EndIgnored) => LogSays::Void,
            None => LogSays::Nothing,
        }
    }
}

impl<S: Storage> Look<'_, S> {
    /// What a log says.
    pub(crate) fn log(&self, file: LogFile<S::File>) -> Result<Log<S::File>> {
        self.read(file).map_err(|error| self.named(error))
    }

    /// Whose a log is.
    pub(crate) fn whose(&self, log: &Log<S::File>) -> Result<Whose> {
        let whose = Whose::of(log.file.file(), self.database);
        whose.during(Operation::Stat, self.names.shown_log())
    }

    /// Why a database isn't opened beside whose log somebody has put statements, of so many
    /// commits, who may not write it (WAL-48).
    pub(super) fn statements_of_strangers(
        &self,
        log: &Log<S::File>,
        commits: usize,
    ) -> Result<Option<String>> {
        let Whose { owner, group, counts: false } = self.whose(log)? else { return Ok(None) };
        let (db, log) = (shell_word(&self.names.db), self.names.shown_log());
        Ok(Some(format!(
            "{log} holds {commits} commits by their statements alone (dash_commit=paper), and is not run: it belongs to user {owner}, \
             group {group}, and neither may write {db}. Where it is the log of {db}, give it the owner and the group of {db}; where \
             somebody has put it there, let `sqlite-dash recover {db} --discard` go on without it"
        )))
    }

    fn read(&self, file: LogFile<S::File>) -> Result<Log<S::File>> {
        let scan = scan(&file)?;
        let head = match scan.condition {
            Condition::Whole if scan.head.state == State::Clean => {
                HeadContext::decode(&scan.head.context)?
            }
            _ => HeadContext::Nothing,
        };
        let mut chain: Option<Chain> = None;
        for record in scan.records() {
            let record = record?;
            let context = RecordContext::of(&record)?;
            let last_frame = context.last_frame(record.count);
            match (&mut chain, context.start) {
                (_, Some(generation)) => {
                    let (first_frame, carries) = (context.first_frame, record.carries());
                    let has_frames = record.count > 0 || carries;
                    chain =
                        Some(Chain { generation, first_frame, last_frame, has_frames, carries });
                }
                (Some(chain), None) if chain.is_followed_by(&record, &context) => {
                    chain.has_frames |= record.count > 0 || record.carries();
                    chain.carries |= record.carries();
                    chain.last_frame = last_frame;
                }
                _ => {
                    return Err(self.damaged_log(
                        "a record is of another generation than those before it, or not of the frames behind theirs",
                    ));
                }
            }
        }
        Ok(Log { file, scan, head, chain })
    }

    /// How things stand, for the table. `fence`: a name fence stands.
    pub(crate) fn situation(
        &self,
        log: &Log<S::File>,
        fence: bool,
        wal: Option<&S::File>,
        boot: Boot,
    ) -> Result<Situation> {
        if log.is_wiped() && !broken(Mutation::WipedLogTaken) {
            return self.without_log(fence, wal, boot);
        }
        if log.says() == LogSays::Nothing {
            return self.without_records(log.left(), wal, boot);
        }
        if log.says() == LogSays::Void
            && let Some(found) = self.since_void(log.generation(), wal, boot)?
        {
            return Ok(found);
        }
        let wal_is = match self.relation(log.generation(), wal)? {
            // The header was durable before the first record, so it was cut to nothing since, which
            // is a deletion by another name; or the file system has lost it.
            WalIs::Blank if log.chain.is_some() => WalIs::Absent,
            // The log need not know which headers came before.
            WalIs::Newer if boot == Boot::Same && !self.has_seen(wal)? => WalIs::Older,
            wal_is => wal_is,
        };
        let lost =
            wal.filter(|_| wal_is == WalIs::Absent && !broken(Mutation::LostTakenForDeleted));
        let lost = lost.map(File::metadata).transpose();
        let lost = lost.during(Operation::Stat, self.names.shown_wal())?;
        let database = self.database(log, wal, wal_is, boot)?;
        let database = match &log.chain {
            Some(chain) if lost.is_some_and(|found| found.len > 0) => {
                self.beside_lost_blocks(log, chain, database)?
            }
            _ => database,
        };
        let has_all = match (&log.chain, wal, wal_is) {
            // The header was durable before frames of its generation came into the log.
            (Some(chain), _, WalIs::Older) if chain.has_frames => false,
            (Some(chain), Some(wal), WalIs::Same | WalIs::Older) => {
                self.prefix_reaches(wal, chain.first_frame)?
                    && (boot != Boot::Same || self.has_all_seen(wal, chain.last_frame)?)
            }
            _ => true,
        };
        Ok(Situation { log: log.says(), wal: wal_is, database, has_all })
    }

    /// How `-wal` stands to the generation that the log speaks of.
    pub(super) fn relation(
        &self,
        generation: Option<Generation>,
        wal: Option<&S::File>,
    ) -> Result<WalIs> {
        let Some(wal) = wal else { return Ok(WalIs::Absent) };
        let Some(header) = raw_header(wal, self.names.shown_wal())? else {
            return Ok(WalIs::Blank);
        };
        let Some(generation) = generation else { return Ok(WalIs::Newer) };
        if broken(Mutation::OrderBySequence) {
            return Ok(by_sequence(&generation, &header));
        }
        Ok(match generation.relation(salts_of(&header)) {
            Relation::Same => WalIs::Same,
            Relation::Older
                if broken(Mutation::SuccessorOnly) && !follows(&generation, &header) =>
            {
                WalIs::Newer
            }
            Relation::Older => WalIs::Older,
            Relation::Newer if broken(Mutation::OlderLogReplayed) => WalIs::Older,
            Relation::Newer => WalIs::Newer,
        })
    }

    /// Whether `-wal` has all frames before `first`.
    fn prefix_reaches(&self, wal: &S::File, first: u32) -> Result<bool> {
        let name = self.names.shown_wal();
        if first <= 1 {
            return Ok(true);
        }
        let Some(header) = WalHeader::read(wal, name)? else { return Ok(false) };
        let prefix = valid_prefix(wal, &header, Prefix::before_all(&header), name)?;
        Ok(prefix.last >= first - 1)
    }

    /// Whether every entry of the log makes an image, before any of them is written.
    pub(crate) fn check_images(&self, log: &Log<S::File>) -> Result<()> {
        let Some(chain) = &log.chain else { return Ok(()) };
        let mut images = Images::new(page_of(&chain.generation.header));
        for record in log.scan.records() {
            for entry in record?.entries() {
                images.feed(&entry)?;
            }
        }
        Ok(())
    }
}

/// Whether a header is the one right before that of a generation.
fn follows(generation: &Generation, header: &[u8; WAL_HEADER]) -> bool {
    salts_of(header)[0].wrapping_add(1) == generation.salts()[0]
}

/// The order that SQLite's checkpoint sequence seems to tell, which belongs to a connection.
fn by_sequence(generation: &Generation, header: &[u8; WAL_HEADER]) -> WalIs {
    let sequence = |header: &[u8; WAL_HEADER]| header[12..16].to_vec();
    match sequence(header).cmp(&sequence(&generation.header)) {
        _ if salts_of(header) == generation.salts() => WalIs::Same,
        std::cmp::Ordering::Less => WalIs::Older,
        _ => WalIs::Newer,
    }
}

/// The header of `-wal` as SQLite wrote it, if it is a valid one.
pub(crate) fn raw_header<F: File>(wal: &F, name: &str) -> Result<Option<[u8; WAL_HEADER]>> {
    let mut header = [0; WAL_HEADER];
    let whole = read_exact(wal, &mut header, 0).during(Operation::Read, name)?;
    let valid = whole && WalHeader::decode(&header, name).is_ok_and(|found| found.is_some());
    Ok(valid.then(|| seal::opened(&header)))
}
