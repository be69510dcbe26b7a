//! The frames in a record of the log.
//!
//! In a log of sectors each has its header verbatim, and so it is in the record that a window
//! starts with. In a log of lines, where every line costs, the others say only which frames end
//! a commit, and how many pages the database has by then: the page is the entry's unit, the
//! salts are the generation's, and the checksum follows from the frame before (WAL-31).

use crate::context::RecordContext;
use crate::frames::{Checksum, FRAME_HEADER, FrameHeader, WalHeader};
use crate::mutation::{Mutation, broken};
use dash_engine::error::{Error, Result};
use dash_log::images::Images;
use dash_log::number;
use dash_log::record::{Entries, Entry, Record};
use dash_log::scan::Scan;

/// A frame, logged.
pub(crate) struct Logged<'a> {
    /// From 1.
    pub(crate) number: u32,
    /// In the last frame of a commit the size of the database in pages, else 0.
    pub(crate) commit: u32,
    /// Its page.
    pub(crate) entry: Entry<'a>,
}

impl Logged<'_> {
    /// Whether a transaction ends here.
    pub(crate) fn is_commit(&self) -> bool {
        self.commit != 0
    }

    /// Its header in a `-wal` with the header `wal`, behind a frame with the checksum `before`.
    pub(crate) fn header_behind(
        &self,
        wal: &WalHeader,
        before: Checksum,
        image: &[u8],
    ) -> [u8; FRAME_HEADER] {
        FrameHeader::behind(wal, before, (self.entry.unit, self.commit), image)
    }

    /// Its header, where the record has that.
    fn header(&self) -> Option<[u8; FRAME_HEADER]> {
        self.entry.meta.try_into().ok()
    }
}

/// The frames of a record, in order.
pub(crate) struct Frames<'a> {
    entries: Entries<'a>,
    /// Number of the next one.
    next: u32,
    /// Which of them end a commit; `None`: their headers say that.
    ends: Option<Ends<'a>>,
}

impl<'a> Frames<'a> {
    /// What a record says of itself, and its frames.
    pub(crate) fn of(record: &Record<'a>) -> Result<(RecordContext, Self)> {
        let (context, ends) = match RecordContext::is_short(record) {
            false => (RecordContext::of(record)?, None),
            true => {
                let (context, ends) = RecordContext::decode_short(record.context)?;
                (context, Some(Ends::of(ends, record.count)?))
            }
        };
        let next = context.first_frame;
        Ok((context, Self { entries: record.entries(), next, ends }))
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Logged<'a>;

    fn next(&mut self) -> Option<Logged<'a>> {
        let entry = self.entries.next()?;
        let number = self.next;
        self.next = number.checked_add(1)?;
        let commit = match &mut self.ends {
            Some(ends) => ends.next_frame(),
            None => entry.meta.try_into().map_or(0, |header| FrameHeader::decode(header).commit),
        };
        Some(Logged { number, commit, entry })
    }
}

/// The commits that end in a record: of each how many frames it has there, and the pages of the
/// database behind it.
struct Ends<'a> {
    rest: &'a [u8],
    /// Frames that the next one has still, and its pages.
    next: Option<(u64, u32)>,
}

impl<'a> Ends<'a> {
    fn of(bytes: &'a [u8], frames: u32) -> Result<Self> {
        let mut all = Self { rest: bytes, next: None };
        let mut of_commits = 0_u64;
        while !all.rest.is_empty() {
            let (frames, pages) = all.take().ok_or_else(damaged)?;
            of_commits = of_commits.checked_add(frames).ok_or_else(damaged)?;
            if frames == 0 || pages == 0 {
                return Err(damaged());
            }
        }
        if of_commits > u64::from(frames) {
            return Err(damaged());
        }
        let mut ends = Self { rest: bytes, next: None };
        ends.next = ends.take();
        Ok(ends)
    }

    fn take(&mut self) -> Option<(u64, u32)> {
        let (frames, rest) = number::take(self.rest)?;
        let (pages, rest) = number::take(rest)?;
        self.rest = rest;
        Some((frames, u32::try_from(pages).ok()?))
    }

    /// Goes to the next frame; the size of the database in pages, if that ends a commit, or 0.
    fn next_frame(&mut self) -> u32 {
        let Some((left, pages)) = self.next else { return 0 };
        if left > 1 {
            self.next = Some((left - 1, pages));
            return 0;
        }
        self.next = self.take();
        pages
    }
}

/// Appends what says so of frames with these headers, the oldest first.
pub(crate) fn put_ends<'a>(
    headers: impl Iterator<Item = &'a [u8; FRAME_HEADER]>,
    bytes: &mut Vec<u8>,
) {
    let mut frames = 0;
    for header in headers {
        frames += 1;
        let header = FrameHeader::decode(header);
        if header.is_commit() {
            number::put(frames, bytes);
            number::put(header.commit.into(), bytes);
            frames = 0;
        }
    }
}

/// The headers of frames that follow each other.
#[derive(Debug, Default)]
pub(crate) struct Headers {
    /// Number of the first one.
    first: u32,
    all: Vec<[u8; FRAME_HEADER]>,
}

impl Headers {
    /// That of frame `number`.
    pub(crate) fn get(&self, number: u32) -> Option<&[u8; FRAME_HEADER]> {
        self.all.get(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    /// Takes that of frame `number`, which is the next one.
    fn push(&mut self, number: u32, header: [u8; FRAME_HEADER]) -> Result<()> {
        if self.all.is_empty() {
            self.first = number;
        }
        let next = usize::try_from(number).ok().and_then(|it| it.checked_sub(self.all.len()));
        if next != usize::try_from(self.first).ok() {
            return Err(damaged());
        }
        self.all.try_reserve(1).map_err(|_| Error::OutOfMemory)?;
        self.all.push(header);
        Ok(())
    }
}

/// The headers of all frames in the chain, as they are in a `-wal` with this header.
pub(crate) fn headers(scan: &Scan, wal: &WalHeader) -> Result<Headers> {
    let mut known = Headers::default();
    let mut records = Vec::new();
    records.try_reserve_exact(scan.chain.len()).map_err(|_| Error::OutOfMemory)?;
    for record in scan.records() {
        records.push(record?);
    }
    // Without one of these no image is asked for.
    let images_count = records.iter().any(RecordContext::is_short);
    let mut images = Images::new(wal.page_size);
    for record in &records {
        for frame in Frames::of(record)?.1 {
            let image = if images_count { images.feed(&frame.entry)? } else { &[] };
            let header = match frame.header() {
                Some(header) => header,
                None => {
                    let before = frame.number.checked_sub(1).and_then(|number| known.get(number));
                    let before = match before {
                        None if frame.number == 1 => wal.checksum,
                        Some(_) if broken(Mutation::SumsBegunAnew) => wal.checksum,
                        Some(before) => FrameHeader::decode(before).checksum,
                        None => return Err(damaged()),
                    };
                    frame.header_behind(wal, before, image)
                }
            };
            known.push(frame.number, header)?;
        }
    }
    Ok(known)
}

fn damaged() -> Error {
    Error::Corrupt("the log is damaged: what it says of frames of -wal can't be".into())
}

#[cfg(test)]
mod tests;
