//! What a log says: its head, and the chain of records that counts. One pass over the file, or a
//! look at two places where the head says that it is at rest.
//!
//! What is found need not be durable, as it is read from the page cache or the device's: whoever
//! acts on it makes it durable, or something that says the same (LOG-2).

use crate::file::LogFile;
use crate::format::{Beginning, Form, Invalid, RING_START, VERSION};
use crate::head::{Head, State};
use crate::heads::{Heads, is_place};
use crate::record::{Record, WINDOW_START, beginning, claimed};
use dash_engine::error::{Error, Result};
use dash_storage::{Blocks, File};

/// The block where no head tells it: the least of a device.
const SECTOR_BLOCK: u32 = 512;

/// What became of the head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// It is there.
    Whole,
    /// It was never written: zeros, or a file without one.
    Absent,
    /// It is damaged. The id is that of the records, and none of them counts as void.
    Damaged,
}

/// Twice the largest block: where a record that goes to a position begins is within.
const TWO_BLOCKS: usize = 8192;

/// So many times the bytes of a log may all the records claim that are none. They are what later
/// ones were written over, at most a few times the ring.
const PATIENCE: usize = 256;

/// Where a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordPlace {
    /// Its number.
    pub sequence: u64,
    /// Where it begins in the ring.
    pub position: u64,
    /// Its bytes without padding.
    pub length: usize,
    /// Its bytes on the disk.
    pub padded: u32,
    /// Its flags.
    pub flags: u16,
    id: u64,
}

/// What a log says.
pub struct Scan {
    /// The head; where there is none, what is known without.
    pub head: Head,
    /// Whether there is one.
    pub condition: Condition,
    /// The newest record that begins a window, and those that follow it without a gap. Empty: no
    /// record counts.
    pub chain: Vec<RecordPlace>,
    /// Every whole record of the log by its number, void ones too, with what has not been
    /// overwritten. Nobody who recovers looks at it.
    pub found: Vec<RecordPlace>,
    /// The greatest number of any record, void or not, in the chain or not: the next one gets a
    /// greater one (LOG-3).
    pub greatest: u64,
    /// Where the next record may go, as far as what is written here tells: behind the chain.
    pub end_position: u64,
    bytes: Vec<u8>,
    name: String,
}

/// Reads a log.
///
/// # Errors
///
/// Those of the file system, [`Error::OutOfMemory`], and as of [`Scan::examine`].
pub fn scan<F: File>(log: &LogFile<F>) -> Result<Scan> {
    let heads = log.heads()?;
    match heads.head {
        Ok(head) if is_at_rest(log, &head, heads.form)? => Ok(Scan::at_rest(head, log.name())),
        _ => Scan::examine(log.read_all()?, log.name()),
    }
}

/// Whether no record counts, as none begins where the first one would (LOG-12).
fn is_at_rest<F: File>(log: &LogFile<F>, head: &Head, form: Form) -> Result<bool> {
    let Some(next) = head.next else { return Ok(false) };
    if !is_place(next, form, log.len()?) {
        return Ok(false);
    }
    let counts = |here: &[u8]| {
        beginning(here, form).is_some_and(|it| it.id == head.id && it.sequence > head.sequence)
    };
    let mut blocks = [0; TWO_BLOCKS];
    // There, at the next multiple of whatever block, or at the ring's beginning.
    for position in [next, 0] {
        let read = log.read(&mut blocks, position)?;
        if blocks[..read].chunks(form.step()).any(counts) {
            return Ok(false);
        }
    }
    Ok(true)
}

impl Scan {
    /// What the `bytes` of a log say; `name` is for messages.
    ///
    /// # Errors
    ///
    /// [`Error::CantOpen`] if a newer dash wrote it (LOG-8); [`Error::Corrupt`] for what no crash
    /// leaves: two different records with one number in the chain, records of several logs
    /// under a damaged head, or a record that contradicts itself; [`Error::OutOfMemory`].
    pub fn examine(bytes: Vec<u8>, name: &str) -> Result<Self> {
        let heads = Heads::decode(&bytes).within(bytes.len() as u64);
        let (head, condition) = match heads.head {
            Ok(head) => (Some(head), Condition::Whole),
            Err(Invalid::Absent) => (None, Condition::Absent),
            Err(Invalid::Newer(_)) => return Err(newer(name)),
            Err(Invalid::Damaged | Invalid::Malformed) => (None, Condition::Damaged),
        };
        let mut found = records(&bytes, head.as_ref(), heads.form, name)?;
        let head = match head {
            Some(head) => head,
            None => without_head(&bytes, &found, name)?,
        };
        found.sort_unstable_by_key(|place| (place.sequence, place.position));
        let newest = found.last().copied();
        let greatest = newest.map_or(0, |place| place.sequence).max(head.sequence);
        let mut all = Vec::new();
        all.try_reserve_exact(found.len()).map_err(|_| Error::OutOfMemory)?;
        all.extend_from_slice(&found);
        all.dedup_by_key(|place| place.sequence);
        found.retain(|place| place.sequence > head.sequence);
        let chain = chain(found, &bytes, name)?;
        let last = chain.last().copied().or(newest);
        let end = last.map_or(0, |place| place.position + u64::from(place.padded));
        let end = end.min((bytes.len() as u64).saturating_sub(RING_START));
        // A file may have been cut within the padding.
        let end_position = end - end % heads.form.step() as u64;
        let name = name.to_owned();
        Ok(Self { head, condition, chain, found: all, greatest, end_position, bytes, name })
    }

    /// A log at rest with this head.
    fn at_rest(head: Head, name: &str) -> Self {
        Self {
            condition: Condition::Whole,
            chain: Vec::new(),
            found: Vec::new(),
            greatest: head.sequence,
            end_position: head.next.unwrap_or(0),
            bytes: Vec::new(),
            name: name.to_owned(),
            head,
        }
    }

    /// A record of the chain.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] for a place that is not of this scan.
    pub fn record(&self, place: &RecordPlace) -> Result<Record<'_>> {
        Record::decode(bytes_at(&self.bytes, place.position))
            .map_err(|_| Error::Corrupt(format!("{} has no record there", self.name)))
    }

    /// The records of the chain, in order.
    pub fn records(&self) -> impl Iterator<Item = Result<Record<'_>>> {
        self.chain.iter().map(|place| self.record(place))
    }

    /// Writes the chain again, where it was: what is in the caches of a killed process can then be
    /// flushed, and counts. Not flushed here. Nobody else may write meanwhile, as what lies beside
    /// a record in its blocks is written as it was read.
    ///
    /// # Errors
    ///
    /// Those of writing, and of memory for the longest record.
    pub fn rewrite<F: File>(&self, log: &LogFile<F>) -> Result<()> {
        let block = u64::from(log.block());
        for place in &self.chain {
            // It may have been padded to smaller blocks than this description writes (LOG-5).
            let start = place.position - place.position % block;
            let end = place.position + u64::from(place.padded);
            let len = usize::try_from(end.next_multiple_of(block) - start);
            let len = len.map_err(|_| Error::OutOfMemory)?;
            let mut blocks = Blocks::try_new(len).map_err(|_| Error::OutOfMemory)?;
            // A file that was cut may lack padding, which is zeros.
            let bytes = bytes_at(&self.bytes, start);
            let part = bytes.len().min(len);
            blocks[..part].copy_from_slice(&bytes[..part]);
            log.write(&blocks, start)?;
        }
        Ok(())
    }
}

/// Every valid record of the log with this head, void ones too; without a head, of any log.
fn records(bytes: &[u8], head: Option<&Head>, form: Form, name: &str) -> Result<Vec<RecordPlace>> {
    let (id, void) = head.map_or((None, 0), |head| (Some(head.id), head.sequence));
    // Where words tear, a beginning may have a version that is of what it was written over. There
    // the heads tell a newer log (LOG-8), and a record does by a flag alone, below its checksum.
    let is_newer = |version| form == Form::Sectors || version == VERSION;
    let mut patience = PATIENCE.saturating_mul(bytes.len());
    let mut found = Vec::new();
    let mut position = 0;
    loop {
        let here = bytes_at(bytes, position);
        if here.is_empty() {
            return Ok(found);
        }
        let beginning = beginning(here, form);
        // A page of the database may look like a record. It does not have the log's id, which
        // was drawn.
        let ours = |it: &Beginning| id.is_none_or(|id| id == it.id);
        let mut step = form.step();
        if let Some(beginning) = beginning.filter(ours) {
            match Record::decode(here) {
                Ok(record) => {
                    found.try_reserve(1).map_err(|_| Error::OutOfMemory)?;
                    found.push(place(&record, position));
                    // Whatever looks like a record within one is part of an image (LOG-7).
                    step = record.length().next_multiple_of(form.step());
                }
                Err(Invalid::Newer(version)) if is_newer(version) && beginning.sequence > void => {
                    return Err(newer(name));
                }
                Err(Invalid::Malformed) if beginning.sequence > void => {
                    return Err(corrupt(name, "has a record that contradicts itself"));
                }
                // Its checksum was made of all that it claims to be, and is wrong.
                Err(_) => {
                    patience = patience
                        .checked_sub(claimed(here))
                        .ok_or_else(|| corrupt(name, "has more beginnings of records than fit"))?;
                }
            }
        }
        position += step as u64;
    }
}

/// What is known of a log without a head. Its records may be needed, so it counts as in use.
fn without_head(bytes: &[u8], found: &[RecordPlace], name: &str) -> Result<Head> {
    let id = found.first().map_or(0, |place| place.id);
    if found.iter().any(|place| place.id != id) {
        return Err(corrupt(name, "has lost its head, and has records of more than one log"));
    }
    Ok(Head {
        id,
        state: if found.is_empty() { State::Clean } else { State::InUse },
        block: SECTOR_BLOCK,
        sequence: 0,
        ring: (bytes.len() as u64).saturating_sub(RING_START),
        owner: 0,
        next: None,
        context: Vec::new(),
    })
}

/// The newest window among `live` records, which are sorted.
fn chain(mut live: Vec<RecordPlace>, bytes: &[u8], name: &str) -> Result<Vec<RecordPlace>> {
    let start = live.iter().rposition(|place| place.flags & WINDOW_START != 0);
    let Some(newest) = start.map(|start| live[start].sequence) else {
        return Ok(Vec::new());
    };
    live.retain(|place| place.sequence >= newest);
    let mut chain: Vec<RecordPlace> = Vec::new();
    chain.try_reserve(live.len()).map_err(|_| Error::OutOfMemory)?;
    for place in live {
        match chain.last() {
            Some(last) if last.sequence == place.sequence => {
                // The log may lie in its own database: what is in there is a copy.
                if content(bytes, last) != content(bytes, &place) {
                    return Err(corrupt(name, "has two records with one number"));
                }
            }
            Some(last) if last.sequence != place.sequence - 1 => break,
            _ => chain.push(place),
        }
    }
    Ok(chain)
}

fn place(record: &Record<'_>, position: u64) -> RecordPlace {
    RecordPlace {
        sequence: record.sequence,
        position,
        length: record.length(),
        padded: record.padded,
        flags: record.flags,
        id: record.id,
    }
}

fn content<'a>(bytes: &'a [u8], place: &RecordPlace) -> &'a [u8] {
    bytes_at(bytes, place.position).get(..place.length).unwrap_or(&[])
}

/// What the file has from a position of the ring on.
fn bytes_at(bytes: &[u8], position: u64) -> &[u8] {
    let at = usize::try_from(RING_START.saturating_add(position)).unwrap_or(usize::MAX);
    bytes.get(at..).unwrap_or(&[])
}

fn newer(name: &str) -> Error {
    Error::CantOpen(format!(
        "{name} was written by a newer version of dash; open the database with that one"
    ))
}

fn corrupt(name: &str, what: &str) -> Error {
    Error::Corrupt(format!("{name} {what}: it is damaged, and nothing is guessed"))
}
