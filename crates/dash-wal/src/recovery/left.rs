//! What killed processes have left, where no record of the log counts: the wal-index shows how far
//! `-wal` went, and the coordination file what the database was like when its generation began. A
//! file that was put in the place of either since, or cut, is told by that (WAL-56).

use super::look::Look;
use super::rows::{Boot, Database, LogSays, Situation, WalIs};
use crate::context::{Generation, LeftGeneration, salts_of};
use crate::frames::{
    FRAME_HEADER, FrameHeader, Prefix, Salts, WalHeader, frame_offset, is_unsummed, valid_prefix,
};
use crate::mutation::{Mutation, broken};
use crate::recovery::look::raw_header;
use dash_engine::error::{Context, Operation, Result};
use dash_engine::io::read_exact;
use dash_storage::{File, Storage};

/// How far behind the salt1 of a wal-index an older header's may be: each one follows the one
/// before, and where `-wal` was deleted in between the next one is drawn.
const GENERATIONS: u32 = 1 << 16;

impl<S: Storage> Look<'_, S> {
    /// How things stand where there is no log, or what is there is none. From before its first
    /// record on a session has a name fence, and `-wal` a header; a fence without that may be of
    /// another mode (WAL-20).
    pub(crate) fn without_log(
        &self,
        fence: bool,
        wal: Option<&S::File>,
        boot: Boot,
    ) -> Result<Situation> {
        let mut situation = self.without_records(None, wal, boot)?;
        let is_lost = fence && boot != Boot::Same && situation.wal == WalIs::Newer;
        if is_lost && !broken(Mutation::LostLogIgnored) {
            situation.log = LogSays::Lost;
        }
        Ok(situation)
    }

    fn has_uncopied(&self) -> bool {
        self.index.is_some_and(|index| index.has_uncopied())
    }

    /// How things stand where the log calls a generation void, and another one has begun since, by
    /// what `-wal` or the wal-index shows. `None`: none has.
    pub(super) fn since_void(
        &self,
        generation: Option<Generation>,
        wal: Option<&S::File>,
        boot: Boot,
    ) -> Result<Option<Situation>> {
        let is_newer = self.relation(generation, wal)? == WalIs::Newer;
        let seen = self.index.and_then(|index| index.end()).map(|(salts, _)| salts);
        let is_another = seen != generation.map(|generation| generation.salts());
        let is_seen = boot == Boot::Same && is_another && self.has_uncopied();
        if !is_newer && !is_seen || broken(Mutation::LeftVoidTaken) {
            return Ok(None);
        }
        let found = self.without_records(None, wal, boot)?;
        let is_right = found.has_all && found.database == Database::Complete;
        Ok(Some(Situation { log: if is_right { LogSays::Void } else { found.log }, ..found }))
    }

    /// How things stand where no record of the log counts, whose head says that `said` stays.
    pub(super) fn without_records(
        &self,
        said: Option<LeftGeneration>,
        wal: Option<&S::File>,
        boot: Boot,
    ) -> Result<Situation> {
        let mut situation = Situation {
            log: LogSays::Nothing,
            wal: self.relation(None, wal)?,
            database: Database::Complete,
            has_all: true,
        };
        let Some(wal) = wal.filter(|_| situation.wal == WalIs::Newer) else {
            let uncopied = boot == Boot::Same && self.has_uncopied();
            situation.database = Database::lacking(uncopied && !broken(Mutation::LeftGoneTaken));
            return Ok(situation);
        };
        let left = match boot {
            Boot::Same => {
                situation.has_all = self.has_all_seen(wal, 0)?;
                self.beside.left
            }
            // What was in memory is in no file.
            Boot::Memory => None,
            Boot::Other => said,
        };
        // Beside an empty one it is orphaned.
        let found = self.database.metadata().during(Operation::Stat, self.names.shown())?;
        let left = left.filter(|_| found.len > 0);
        let header = raw_header(wal, self.names.shown_wal())?;
        let left = left.zip(header).filter(|(left, header)| salts_of(header) == left.salts);
        let Some((LeftGeneration { stamp, .. }, header)) = left else { return Ok(situation) };
        let left = Generation { number: 0, header, first: 0, predecessor: 0, stamp };
        if !self.is_known(None, &left, Some(wal))? && !broken(Mutation::LeftAnotherTaken) {
            (situation.wal, situation.database) = (WalIs::Same, Database::Another);
        }
        Ok(situation)
    }

    /// Whether `-wal` has all frames that the wal-index shows.
    pub(super) fn has_seen(&self, wal: Option<&S::File>) -> Result<bool> {
        wal.map_or(Ok(true), |wal| self.has_all_seen(wal, 0))
    }

    /// Whether `-wal`, or the log up to frame `logged`, has all frames that the wal-index shows.
    pub(super) fn has_all_seen(&self, wal: &S::File, logged: u32) -> Result<bool> {
        let name = self.names.shown_wal();
        let seen = self.index.and_then(|index| index.end());
        let Some((salts, last)) = seen.filter(|&(_, last)| last > logged) else { return Ok(true) };
        let Some(header) = WalHeader::read(wal, name)? else { return Ok(true) };
        if broken(Mutation::LeftCutTaken) {
            return Ok(true);
        }
        if header.salts != salts {
            // It is deleted where all of it is in the database; one that was begun anew follows.
            let is_strange = self.has_uncopied() && !is_before(salts, header.salts);
            let lacks = is_before(header.salts, salts) || is_strange;
            return Ok(!lacks || broken(Mutation::LeftStrangeTaken));
        }
        let prefix = valid_prefix(wal, &header, Prefix::before_all(&header), name)?;
        // Behind that a writer was killed before its frames had their checksums (WAL-19).
        let unsummed = self.beside.unsummed.checked_sub(1).and_then(|it| u32::try_from(it).ok());
        let unsummed = unsummed.filter(|_| !broken(Mutation::LeftUnsummedMissed));
        if prefix.committed >= unsummed.map_or(last, |before| last.min(before)) {
            return Ok(true);
        }
        // An older SQLite may have left them without checksums (WAL-19).
        let mut next = [0; FRAME_HEADER];
        let whole = read_exact(wal, &mut next, frame_offset(prefix.last + 1, header.page_size));
        let whole = whole.during(Operation::Read, name)?;
        Ok(whole && FrameHeader::decode(&next).page != 0 && is_unsummed(&next))
    }
}

/// Whether a header of `-wal` with these salts was written before one with those.
fn is_before(salts: Salts, seen: Salts) -> bool {
    (1..=GENERATIONS).contains(&seen[0].wrapping_sub(salts[0]))
}
