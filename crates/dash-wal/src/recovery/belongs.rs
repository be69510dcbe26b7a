//! Whether the database is the one that a log is of, in a state that the log can be applied to, or
//! that follows from it.
//!
//! A log whose `-wal` is gone, or has another header, is void if a checkpoint was complete: SQLite
//! deletes `-wal`, and begins it anew, only then. A checkpoint leaves no older image of a page in
//! the database (WAL-16). Where `-wal` and the log are to be applied the database's header is one
//! that they know (WAL-18).

use super::look::{Chain, Log, Look};
use super::rows::{Boot, Database, WalIs};
use crate::context::{Generation, RecordContext, page_of};
use crate::frames::{Prefix, WalHeader, walk};
use crate::index::FoundIndex;
use crate::logged::Frames;
use crate::mutation::{Mutation, broken};
use crate::stamp::Stamp;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_engine::header::Header;
use dash_engine::io::{read_header, read_padded};
use dash_engine::memory::zeros;
use dash_log::images::Images;
use dash_log::record::Entry;
use dash_log::scan::Condition;
use dash_storage::{File, Storage};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::ops::ControlFlow;

/// What the database has of the pages in the log.
#[derive(Default)]
struct Held {
    /// A page as it was before its last image in the log.
    older: bool,
    /// A page as in its last image; or there is none to compare.
    shares: bool,
    /// A page that is not as in its last image.
    lacks: bool,
    /// A page as in its last image, which has another one before.
    newer: bool,
    /// A page of a b-tree that is blank. One of a blob may be, and its header as before.
    blank: bool,
    /// The newest header that the log knows.
    newest: Stamp,
    /// There is no newer one in the generation.
    is_newest: bool,
}

impl<S: Storage> Look<'_, S> {
    /// What the database is to a log whose `-wal` has bytes and no header. That was durable before
    /// the first record, so the file system has lost it, as one without a journal may where a file
    /// grows; and commits with it that nothing else tells of. `otherwise`: as if it was deleted.
    pub(super) fn beside_lost_blocks(
        &self,
        log: &Log<S::File>,
        chain: &Chain,
        otherwise: Database,
    ) -> Result<Database> {
        let is_own = || -> Result<bool> {
            Ok(chain.generation.stamp.is_known()
                && self.is_elsewhere(log) == Some(false)
                && self.is_known(Some(log), &chain.generation, None)?)
        };
        Ok(match otherwise == Database::Another && !is_own()? {
            true => Database::Another,
            false => Database::LacksImages,
        })
    }

    /// Whether the log is another file's, by inode numbers. `None`: it doesn't say whose.
    fn is_elsewhere(&self, log: &Log<S::File>) -> Option<bool> {
        let (owner, id) = match log.scan.condition {
            Condition::Whole => (log.scan.head.owner, Some(log.scan.head.id)),
            Condition::Absent | Condition::Damaged => (0, None),
        };
        let copied =
            id.is_some() && self.beside.copied_with == id && !broken(Mutation::CopyForgotten);
        (owner != 0).then(|| owner != self.database.id().inode && !copied)
    }

    /// What the database is to the log.
    pub(super) fn database(
        &self,
        log: &Log<S::File>,
        wal: Option<&S::File>,
        wal_is: WalIs,
        boot: Boot,
    ) -> Result<Database> {
        let Some(chain) = &log.chain else { return Ok(Database::Complete) };
        if matches!(wal_is, WalIs::Same | WalIs::Older) {
            let wal = wal.filter(|_| wal_is == WalIs::Same);
            let known = broken(Mutation::AnotherTaken)
                || self.is_known(Some(log), &chain.generation, wal)?;
            return Ok(if known { Database::Complete } else { Database::Another });
        }
        let absent = wal_is != WalIs::Newer;
        if absent && broken(Mutation::AbsentRefused) {
            return Ok(Database::LacksImages);
        }
        if absent && broken(Mutation::AbsentBelieved) {
            return Ok(Database::Complete);
        }
        let index_says = self.index_says(chain).filter(|_| absent && boot == Boot::Same);
        // What was in `-wal` alone is in no log.
        let uncopied = index_says == Some(Some(false)) && !broken(Mutation::IndexOutvoted);
        // Of what statements have written the log has no image. A stock program that had survived
        // deletes `-wal` once the last commit is in the database, as far as the page cache goes.
        if absent && chain.carries {
            let is_there = boot == Boot::Same
                && !uncopied
                && (index_says == Some(Some(true))
                    || self.holds_what_statements_made(log, chain)?);
            return Ok(Database::lacking(!is_there && !broken(Mutation::GoneTaken)));
        }
        let held = self.held(log, chain)?;
        let found = Stamp::read(self.database, self.names.shown())?;
        let found = match wal {
            Some(wal) if !absent && found.is_before(held.newest) => self.newest_in(wal, found)?,
            _ => found,
        };
        // A stock program that went on may have made a page what it was before.
        let not_newer = absent && !held.newest.is_before(found);
        if not_newer && held.older {
            return Ok(Database::LacksImages);
        }
        // A stock program that had survived leaves the file where it is, and a header that is not
        // older. It may have left no page as it was.
        let elsewhere = self.is_elsewhere(log) == Some(true);
        // Others than the one that wrote the newest header would have raised the counter. That one
        // may have gone on with another header, and without the log: then the counter was raised in
        // this generation, or the database still has something that no state before it has.
        let unknown = absent
            && held.is_newest
            && !held.newer
            && !chain.generation.stamp.is_before(held.newest)
            && found.counter == held.newest.counter
            && !found.is_same_header(held.newest);
        let older = chain.generation.stamp.is_known() && (found.is_before(held.newest) || unknown);
        let another = (older || elsewhere && !held.shares) && !broken(Mutation::AnotherTaken);
        // Nothing was copied yet of the newest header.
        let removed = absent
            && another
            && !elsewhere
            && self.is_known(Some(log), &chain.generation, None)?
            && self.is_written_since(log)? != Some(Ordering::Greater);
        if another && (!removed || broken(Mutation::RemovedTakenForAnother)) {
            return Ok(Database::Another);
        }
        let is_behind = || self.is_behind(log, &held, (boot, index_says));
        Ok(Database::lacking(uncopied || removed || not_newer && is_behind()?))
    }

    /// Whether the database lacks what the log has, where its counter is none that came later.
    fn is_behind(
        &self,
        log: &Log<S::File>,
        held: &Held,
        (boot, index_says): (Boot, Option<Option<bool>>),
    ) -> Result<bool> {
        // A complete checkpoint leaves the last image of a page, unless a program went on that has
        // changed every page of the log since.
        let unshared = !held.shares && !broken(Mutation::UnsharedBelieved);
        // A page may also be as in its last image because the commit left it as it was.
        let uncopied = held.lacks && !broken(Mutation::UncopiedBelieved);
        Ok(match (boot, index_says) {
            _ if !unshared && !uncopied => false,
            // Stock SQLite that deletes `-wal` deletes `-shm`, too, or says there that all was
            // copied. What it has copied may be newer than the log's images, but no hole.
            (Boot::Same, Some(Some(true))) => held.blank && !broken(Mutation::HoleBelieved),
            (Boot::Same, Some(_)) => true,
            (Boot::Same, None) => {
                unshared && self.is_written_since(log)?.is_none_or(Ordering::is_lt)
            }
            // No stock program goes on there.
            (Boot::Memory, _) => true,
            (Boot::Other, _) => unshared || self.is_written_since(log)? == Some(Ordering::Less),
        })
    }

    /// The newest header of the database, which has this one, that a frame of `-wal` puts there.
    fn newest_in(&self, wal: &S::File, mut newest: Stamp) -> Result<Stamp> {
        let name = self.names.shown_wal();
        let Some(header) = WalHeader::read(wal, name)? else { return Ok(newest) };
        walk(wal, &header, Prefix::before_all(&header), name, |_, frame, image| {
            let found = Stamp::of(image);
            if frame.page == 1 && newest.is_before(found) {
                newest = found;
            }
            ControlFlow::Continue(())
        })?;
        Ok(newest)
    }

    /// Whether all of the generation was copied, by what `-shm` says, if anything. `None`: there is
    /// none.
    fn index_says(&self, chain: &Chain) -> Option<Option<bool>> {
        let index = self.index.filter(|_| !broken(Mutation::IndexUnread));
        index.map(|index| index.has_copied(chain.generation.salts()))
    }

    /// Whether `-wal` alone held frames before those of the log, and no checkpoint has copied them:
    /// without them the log's make no database.
    pub(crate) fn lacks_before(&self, chain: &Chain) -> bool {
        let lacks =
            |index: FoundIndex| index.lacks_before(chain.generation.salts(), chain.first_frame);
        self.index.is_some_and(lacks) && !broken(Mutation::GapKept)
    }

    /// When the database was written, as against the log, by the file system's times. `None`: they
    /// tell nothing, as those of copies do.
    fn is_written_since(&self, log: &Log<S::File>) -> Result<Option<Ordering>> {
        let database = self.database.metadata().during(Operation::Stat, self.names.shown())?;
        let found = log.file.file().metadata().during(Operation::Stat, log.file.name())?;
        let tells = log.scan.head.owner == database.id.inode && database.written != 0;
        let written = match self.beside.log_written {
            0 => found.written,
            before => before.min(found.written),
        };
        Ok(tells.then_some(database.written.cmp(&written)))
    }

    /// Whether the database has the pages that the last statements of the log have made.
    fn holds_what_statements_made(&self, log: &Log<S::File>, chain: &Chain) -> Result<bool> {
        let mut last = None;
        for record in log.scan.records() {
            last = RecordContext::of(&record?)?.carried.or(last);
        }
        let size = page_of(&chain.generation.header);
        last.map_or(Ok(false), |last| last.made.is(|number| self.page(number, size)))
    }

    /// A page of the database's file, of `size` bytes; behind its end zeros.
    fn page(&self, number: u32, size: u32) -> Result<Vec<u8>> {
        let mut page = zeros(u64::from(size))?;
        let at = u64::from(number.saturating_sub(1)) * u64::from(size);
        read_padded(self.database, &mut page, at).during(Operation::Read, self.names.shown())?;
        Ok(page)
    }

    /// Whether the database's header is that of the generation's beginning, or one that a frame of
    /// it, in the log or in `-wal`, may have put there; and so the page that was written last
    /// before.
    pub(super) fn is_known(
        &self,
        log: Option<&Log<S::File>>,
        generation: &Generation,
        wal: Option<&S::File>,
    ) -> Result<bool> {
        let (first, size) = (generation.stamp, page_of(&generation.header));
        if self.has_other_pages(size)? {
            return Ok(false);
        }
        if !first.is_known() {
            return Ok(true);
        }
        let (header, last) = (self.page(1, size)?, self.page(first.page, size)?);
        let mut known = first.is_header_of(&header);
        let mut page_known = first.page == 0 || first.is_page(&last);
        let found = Stamp::of(&header);
        if known && page_known {
            return Ok(true);
        }
        // Of page 1 there is an image.
        let mut look = |page: u32, commit: u32, image: Option<&[u8]>| {
            known |= image.is_some_and(|image| found.is_header_of(image));
            // Written again, or cut off by a commit.
            page_known |= page == first.page;
            page_known |= commit != 0 && commit < first.page;
            known && page_known
        };
        let mut images = Images::new(size);
        for record in log.into_iter().flat_map(|log| log.scan.records()) {
            for frame in Frames::of(&record?)?.1 {
                let (page, commit) = (frame.entry.unit, frame.commit);
                let image = if page == 1 { Some(images.feed(&frame.entry)?) } else { None };
                if look(page, commit, image) {
                    return Ok(true);
                }
            }
        }
        let (Some(wal), name) = (wal, self.names.shown_wal()) else { return Ok(false) };
        let Some(header) = WalHeader::read(wal, name)? else { return Ok(false) };
        walk(wal, &header, Prefix::before_all(&header), name, |_, frame, image| {
            match look(frame.page, frame.commit, (frame.page == 1).then_some(image)) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        })?;
        Ok(known && page_known)
    }

    /// Whether the database has pages of another size, as its header says that it has.
    fn has_other_pages(&self, size: u32) -> Result<bool> {
        let header = read_header(self.database, self.names.shown())?;
        let own = header.filter(Header::is_sqlite).and_then(|header| header.page_size());
        Ok(own.is_some_and(|own| own != size))
    }

    /// Compares the database's pages with the log's images of them, one page after the other: only
    /// what the log has of them is in memory for all.
    fn held(&self, log: &Log<S::File>, chain: &Chain) -> Result<Held> {
        let size = page_of(&chain.generation.header);
        let mut pages = u32::MAX;
        let mut entries: HashMap<u32, Vec<Entry<'_>>> = HashMap::new();
        for record in log.scan.records() {
            for frame in Frames::of(&record?)?.1 {
                if frame.is_commit() {
                    pages = frame.commit;
                }
                entries.try_reserve(1).map_err(|_| Error::OutOfMemory)?;
                let of_page = entries.entry(frame.entry.unit).or_default();
                of_page.try_reserve(1).map_err(|_| Error::OutOfMemory)?;
                of_page.push(frame.entry);
            }
        }
        let mut held = Held {
            newest: chain.generation.stamp,
            is_newest: chain.has_frames && chain.first_frame <= 1,
            ..Held::default()
        };
        let mut is_compared = false;
        for (page, entries) in entries {
            let mut on_disk = OnDisk::new(self.page(page, size)?);
            let (mut images, mut is_of_tree) = (Images::new(size), false);
            for entry in &entries {
                let image = images.feed(entry)?;
                on_disk.compare(image);
                is_of_tree = matches!(image.first(), Some(2 | 5 | 10 | 13));
                if page == 1 {
                    (held.newest, held.is_newest) = (Stamp::of(image), true);
                }
            }
            let is_as_last = on_disk.is == Image::Equal;
            held.older |= on_disk.is == Image::Other && on_disk.had;
            held.newer |= is_as_last && on_disk.lacked;
            let is_blank = on_disk.bytes.iter().all(|byte| *byte == 0);
            held.blank |= page <= pages && is_of_tree && is_blank;
            // What the last commit has cut off is in no database.
            is_compared |= page <= pages;
            held.shares |= page <= pages && is_as_last;
            held.lacks |= page <= pages && !is_as_last;
        }
        held.shares |= !is_compared;
        Ok(held)
    }
}

/// A page of the database, compared with the images that the log has of it.
struct OnDisk {
    bytes: Vec<u8>,
    /// The newest image so far.
    is: Image,
    /// Whether one before was equal.
    had: bool,
    /// Whether one before was another.
    lacked: bool,
}

/// How an image compares.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Image {
    None,
    Equal,
    Other,
}

impl OnDisk {
    fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, is: Image::None, had: false, lacked: false }
    }

    fn compare(&mut self, image: &[u8]) {
        self.had |= self.is == Image::Equal;
        self.lacked |= self.is == Image::Other;
        self.is = if self.bytes.as_slice() == image { Image::Equal } else { Image::Other };
    }
}
