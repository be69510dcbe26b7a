//! Rebuilds images of a recording and looks at each; of some it also cuts the look itself, and of
//! some of those the look at that.

use std::collections::HashSet;
use std::io::Result;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Instant;

use fastrand::Rng;
use serde_json::json;

use super::blocks::{Blocks, Delta};
use super::check::{Checked, Look, Wrong};
use super::cuts::{Cuts, windows};
use super::database::Opened;
use super::job::{Found, Task};
use super::journal::Nonce;
use super::kind::Kind;
use super::ledger::Allowed;
use super::log::{Event, Recorded};
use super::parts;
use super::record::Recording;
use super::rig::{Loop, Rig};
use super::saved;
use super::stage::Stage;
use super::visit::{Visit, Visited};
use super::worker::replay;
use crate::Failure;

/// Failing images that are kept, a job.
const KEPT: usize = 3;
/// Images between two signs of life.
const SIGN: usize = 8;
/// One of so many images has its own recovery cut.
const NESTED: u32 = 6;

/// The images of one program.
pub struct Images<'a> {
    /// The rig, and the loop device on it.
    pub rig: &'a Rig,
    /// See `rig`.
    pub device: Loop,
    /// What they are images of.
    pub task: &'a Task,
    /// The file system.
    pub kind: Kind,
    /// How databases are opened.
    pub opened: Opened,
    /// Whether there are two.
    pub is_attached: bool,
    /// When no more image begins.
    pub end: Instant,
    /// Of all choices.
    pub rng: Rng,
    /// What the device holds now.
    pub stage: Stage,
    /// Images tried, by their hash.
    pub seen: HashSet<u64>,
    /// Where failing images are kept.
    pub keep: &'a Path,
    /// What was found.
    pub found: &'a mut Found,
    /// Where signs of life go.
    pub sender: &'a UnixStream,
}

impl Images<'_> {
    /// So many images of a recording, spread over the windows that end after an event.
    pub fn explore(&mut self, recording: Recording, from: usize, images: u64) -> Result<()> {
        self.stage.written(&recording.log);
        let goal = self.found.hashes.len() as u64 + images;
        let mut base = recording.base;
        let mut windows = windows(&recording.log, recording.from);
        let begin = windows.partition_point(|window| window.events.end <= from);
        let tried = windows.split_off(begin);
        for (number, window) in windows.iter().chain(&tried).enumerate() {
            let done = self.found.hashes.len() as u64;
            if done >= goal || Instant::now() >= self.end {
                break;
            }
            let mut cuts = Cuts::new(&recording.log, window, self.kind, &mut self.rng);
            let allowed = recording.ledger.allowed(window.events.end as u64);
            if number >= begin && !allowed.torn {
                let left = (begin + tried.len() - number) as u64;
                let quota = (goal - done).div_ceil(left).max(u64::from(cuts.writes() > 0));
                self.window(&base, &mut cuts, quota, &allowed)?;
            }
            let all = cuts.all(&base);
            self.stage.changed(&all);
            base.apply(&all);
        }
        Ok(())
    }

    /// So many distinct images of a window, as far as there are that many.
    fn window(
        &mut self,
        base: &Blocks,
        cuts: &mut Cuts<'_>,
        quota: u64,
        allowed: &Allowed,
    ) -> Result<()> {
        let goal = self.found.hashes.len() as u64 + quota;
        let mut repeated = 0;
        let begun = cuts.journals_begun();
        while (self.found.hashes.len() as u64) < goal && repeated < 20 && Instant::now() < self.end
        {
            let delta = cuts.next(base, &Delta::default(), &mut self.rng);
            match self.image((base, &delta, &begun), allowed, 0)? {
                true => repeated = 0,
                false => repeated += 1,
            }
        }
        Ok(())
    }

    /// Looks at one image, unless it was seen before.
    fn image(
        &mut self,
        (base, delta, begun): (&Blocks, &Delta, &[Nonce]),
        allowed: &Allowed,
        depth: u32,
    ) -> Result<bool> {
        let hash = base.hash_with(delta);
        if !self.seen.insert(hash) {
            return Ok(false);
        }
        self.stage.set(&self.rig.content, base, delta)?;
        self.rig.log.clear()?;
        let look = Look {
            kind: self.kind,
            opened: self.opened,
            is_attached: self.is_attached,
            allowed,
            visit: Visit::of(self.opened, hash),
            begun,
        };
        let looked = look.at(self.rig, &self.device);
        self.found.hashes.push(hash);
        self.found.nested.0 += u64::from(depth == 1);
        self.found.nested.1 += u64::from(depth == 2);
        if self.found.hashes.len().is_multiple_of(SIGN) {
            parts::send(self.sender, &json!({ "progress": SIGN }))?;
        }
        let log = self.rig.log.read()?;
        self.stage.written(&log);
        match looked {
            Ok(checked)
                if depth < 2
                    && !checked.visited.is_users_choice
                    && self.rng.u32(..NESTED) < 1 + depth =>
            {
                self.inside(base, delta, (&log, &checked), depth + 1)?;
            }
            Ok(_) => {}
            Err(wrong) => self.wrong(&look, (base, delta), &wrong, depth)?,
        }
        Ok(true)
    }

    /// Power is lost again while the image is mounted, recovered and committed to.
    fn inside(
        &mut self,
        base: &Blocks,
        delta: &Delta,
        (log, checked): (&Recorded, &Checked),
        depth: u32,
    ) -> Result<()> {
        let Visited { allowed, from, .. } = &checked.visited;
        let from = usize::try_from(*from).unwrap_or(usize::MAX).min(log.events.len());
        let windows: Vec<_> =
            windows(log, from).into_iter().filter(|window| !window.events.is_empty()).collect();
        if windows.is_empty() {
            return Ok(());
        }
        let window = &windows[self.rng.usize(..windows.len())];
        let mut before = delta.clone();
        for event in &log.events[..window.events.start] {
            if let Event::Write { place, .. } = *event {
                before.write(base, place, log.bytes(*event));
            }
        }
        let position = window.events.end as u64;
        let allowed = allowed.after(checked.after, checked.acknowledged <= position);
        let mut cuts = Cuts::new(log, window, self.kind, &mut self.rng);
        let begun = cuts.journals_begun();
        for _ in 0..2 {
            let cut = cuts.next(base, &before, &mut self.rng);
            self.image((base, &cut, &begun), &allowed, depth)?;
        }
        Ok(())
    }

    fn wrong(
        &mut self,
        look: &Look<'_>,
        image: (&Blocks, &Delta),
        wrong: &Wrong,
        depth: u32,
    ) -> Result<()> {
        let what = match wrong {
            Wrong::Lost(what) => {
                self.found.lost += 1;
                what
            }
            Wrong::Broken(what) => {
                self.found.broken += 1;
                what
            }
        };
        if matches!(self.opened, Opened::Stock(..)) || self.found.failures.len() >= KEPT {
            return Ok(());
        }
        let what = format!(
            "{}: {what} ({}, image {}, power lost {} times, {:?}; before: {})",
            self.task.name(),
            replay(self.task),
            self.found.hashes.len(),
            depth + 1,
            look.visit,
            look.allowed.story
        );
        let place = saved::save(self.keep, look, image, &what)?;
        self.found.failures.push(Failure { what, replay: replay(&Task::Saved(place)) });
        Ok(())
    }
}
