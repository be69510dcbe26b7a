//! Statements in the place of frames: a record of commits whose statements provably come to the
//! same pages when they are run again (protocol `paper`).
//!
//! Such a record is as durable as any. What it says of pages can be had only by running it, on the
//! database as it was before. So `-wal` is flushed before any page is copied into the database
//! (WAL-33), and before frames follow in the log (WAL-32): the statements of a window come last.
//! It is flushed, too, once they are so many that running them again would take long.
//!
//! A log carries nothing so that is not of somebody who may write the database: nobody would run it
//! again (WAL-48).
//!
//! The source is SQLite/SSL (VLDB 2017), whose log holds statements alone.

use crate::annotation::{Said, carrying};
use crate::connection::said::ends;
use crate::connection::state::Connection;
use crate::context::{Carried, RecordContext};
use crate::execute::Runner;
use crate::frames::{FRAME_HEADER, FrameHeader, frame_size};
use crate::made::Made;
use crate::mutation::{Mutation, broken};
use crate::process::{Leader, Window};
use crate::shared::coordination::Word;
use crate::shared::durable::unpack;
use dash_engine::error::{Error, Result};
use dash_log::record::{CARRYING, WINDOW_START};
use dash_log::session::Batch;
use dash_storage::Storage;

/// What a record says in the place of frames.
pub(super) struct Carrying {
    /// The header of the last frame.
    header: [u8; FRAME_HEADER],
    runner: Runner,
    made: Made,
    commits: u32,
    annotation: Vec<u8>,
}

impl<S: Storage> Connection<S> {
    /// What carries the frames that were read back, if all of their transactions may be carried so.
    pub(super) fn carrying(&self, leader: &Leader<S>, batch: Batch) -> Result<Option<Carrying>> {
        if !leader.may_carry || !self.process.notes.may_carry() {
            return Ok(None);
        }
        let size = usize::try_from(frame_size(batch.page)).map_err(|_| Error::OutOfMemory)?;
        let frames: Vec<_> = ends(&leader.kept.read, batch.first, size).collect();
        let Some(&(last, header)) = frames.last() else { return Ok(None) };
        let salts = unpack(self.files.shared.get(Word::Salts));
        if last != batch.last || FrameHeader::decode(&header).salts != salts {
            return Ok(None);
        }
        let carried =
            if self.files.shared.is_carried() { self.files.shared.get(Word::Carried) } else { 0 };
        if carried + frames.len() as u64 > self.settings.tuning.carried_max {
            return Ok(None);
        }
        let Some((runner, said)) = self.process.notes.carrying(&frames) else { return Ok(None) };
        // All that a window's statements carry is run again by one SQLite.
        let by = runner.word();
        let of_others =
            self.files.shared.is_carried() && self.files.shared.get(Word::CarriedBy) != by;
        if of_others && !broken(Mutation::TwoRunners) {
            return Ok(None);
        }
        let Some(annotation) = self.annotation_of(&said) else { return Ok(None) };
        let Some(made) = Made::of(&leader.kept.read, size) else { return Ok(None) };
        // Nothing of it is said again.
        drop(self.process.notes.take(frames.iter().copied()));
        let commits = u32::try_from(said.len()).unwrap_or(u32::MAX);
        Ok(Some(Carrying { header, runner, made, commits, annotation }))
    }

    /// It takes no more than the room that what is said may take where that is asked for (WAL-23).
    fn annotation_of(&self, said: &[(u32, Said)]) -> Option<Vec<u8>> {
        let quarter = usize::try_from(self.files.shared.get(Word::Ring) / 4).unwrap_or(usize::MAX);
        carrying(said).filter(|bytes| bytes.len() <= quarter)
    }

    /// Makes a record of that; answers how many transactions end in it.
    pub(super) fn build_carrying(
        &mut self,
        leader: &mut Leader<S>,
        batch: Batch,
        carrying: &Carrying,
    ) -> Result<u32> {
        let starts = self.files.shared.get(Word::Window) == 0;
        let generation = self.files.shared.get(Word::Generation);
        let mut header = carrying.header;
        if broken(Mutation::EndForgotten) {
            header[16] ^= 1;
        }
        let context = RecordContext {
            generation,
            first_frame: batch.first,
            carried: Some(Carried {
                last: batch.last,
                header,
                runner: carrying.runner,
                made: carrying.made.clone(),
            }),
            start: if starts { Some(self.wal.generation(&self.files)?) } else { None },
        };
        let flags = CARRYING | if starts { WINDOW_START } else { 0 };
        self.session.begin_record(leader, flags, batch.page, 0, &context.encode())?;
        leader.builder.annotate(&carrying.annotation)?;
        // No difference follows in this window.
        let (first, upto) = (batch.first, batch.last);
        leader.kept.window = Window { generation, first, upto, ..Window::default() };
        leader.kept.carried = carrying.commits;
        self.files.shared.set(Word::CarriedBy, carrying.runner.word());
        self.counters.own.carried += u64::from(carrying.commits);
        Ok(carrying.commits)
    }
}
