//! What a record says beside its frames: of each transaction whose end is in it, who committed it,
//! when, and what it ran. Recovery never looks at it (WAL-23), but where it carries (WAL-32).

use dash_engine::error::Error;
use dash_log::record::{ANNOTATION_MAX, Record};
use dash_statement::{Reason, Transaction, decode, encode_within};
use std::collections::HashMap;

/// Version of the encoding.
const VERSION: u8 = 1;
/// Kinds of an item.
const NO_ROOM: u8 = 0;
const SAID: u8 = 1;
/// Bytes of an item of which nothing more is said, and of one before its statements.
const SHORT: usize = 1 + 4;
const LONG: usize = SHORT + 4 + 8 + 8 + 4;

/// What is said of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// The process that committed it.
    pub process: u32,
    /// Its connection, by a number of that process's; `None`: not known.
    pub connection: Option<u64>,
    /// When its last frame was written, in milliseconds since 1970.
    pub time: i64,
    /// What it ran, encoded by `dash-statement`.
    pub statements: Vec<u8>,
}

/// What a record says of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Known {
    /// This.
    Said(Said),
    /// There was something to be said, and no room.
    NoRoom,
    /// Nothing: it was committed by a connection whose statements nobody records, or by another
    /// process than the one that wrote the record.
    Nothing,
    /// Something that this dash can't read.
    Unreadable,
}

impl Known {
    /// What the transaction ran, or why that is not known, as a sentence. It may have reasons of
    /// its own not to be all.
    ///
    /// # Errors
    ///
    /// That sentence.
    pub fn transaction(&self) -> Result<Transaction, String> {
        match self {
            Self::Said(said) => decode(&said.statements).map_err(|error| error.to_string()),
            Self::NoRoom => Err(Reason::NoRoom.sentence().to_owned()),
            Self::Nothing => Err(
                "not recorded: by a connection without dash_statements=on or with dash_statement_text=off, or by another \
                 process than the one that wrote the record"
                    .to_owned(),
            ),
            Self::Unreadable => Err("not recorded in a way that this dash can read".to_owned()),
        }
    }
}

/// How long an annotation may become.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    /// Bytes of the record without one.
    pub record: usize,
    /// What it is padded to.
    pub block: usize,
    /// So many bytes may be taken, whatever blocks that adds.
    pub free: usize,
    /// The same, where blocks may be added as they are needed.
    pub full: usize,
}

impl Room {
    /// Bytes that may follow `used` ones of the annotation.
    fn left(&self, used: usize, full: bool) -> usize {
        let end = self.record + used;
        let slack = end.next_multiple_of(self.block) - end;
        let most = if full { self.full } else { slack.max(self.free.saturating_sub(used)) };
        most.min(self.full.saturating_sub(used))
    }
}

/// An item to be encoded: the frame that ends a transaction, what is said of it (`None`: it was
/// too much to be kept), and whether that may add blocks.
pub(crate) type Item = (u32, Option<Said>, bool);

/// An annotation that carries: all of what is said of these transactions, the oldest one first.
/// `None`: that is longer than an annotation gets.
pub(crate) fn carrying(items: &[(u32, Said)]) -> Option<Vec<u8>> {
    let mut bytes = vec![VERSION];
    for (frame, said) in items {
        put(*frame, said, &said.statements, &mut bytes);
        if bytes.len() > ANNOTATION_MAX {
            return None;
        }
    }
    Some(bytes)
}

fn put(frame: u32, said: &Said, statements: &[u8], bytes: &mut Vec<u8>) {
    bytes.push(SAID);
    bytes.extend(frame.to_le_bytes());
    bytes.extend(said.process.to_le_bytes());
    bytes.extend(said.connection.unwrap_or(0).to_le_bytes());
    bytes.extend(said.time.to_le_bytes());
    bytes.extend(u32::try_from(statements.len()).unwrap_or(u32::MAX).to_le_bytes());
    bytes.extend(statements);
}

/// An annotation of these items, the oldest one first, as far as there is room.
pub(crate) fn annotation(items: &[Item], room: Room) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (frame, said, full) in items {
        let head = usize::from(bytes.is_empty());
        let left = room.left(bytes.len(), *full);
        if left < head + SHORT {
            continue;
        }
        if head > 0 {
            bytes.push(VERSION);
        }
        let fitting = said.as_ref().zip(left.checked_sub(head + LONG));
        let fitting = fitting.and_then(|(said, left)| Some((said, statements_in(said, left)?)));
        match fitting {
            Some((said, statements)) => put(*frame, said, &statements, &mut bytes),
            None => {
                bytes.push(NO_ROOM);
                bytes.extend(frame.to_le_bytes());
            }
        }
    }
    bytes
}

/// The statements, or the first ones of them.
fn statements_in(said: &Said, room: usize) -> Option<Vec<u8>> {
    match said.statements.len() <= room {
        true => Some(said.statements.clone()),
        false => encode_within(&decode(&said.statements).ok()?, room),
    }
}

/// What an annotation says of the transactions that end with frames: it is gone through once.
pub(crate) struct SaidOf {
    /// Of each frame the first item; `None`: there was no room.
    items: HashMap<u32, Option<Said>>,
    /// Of any other frame.
    others: Known,
}

impl SaidOf {
    pub(crate) fn new(annotation: Option<&[u8]>) -> Self {
        let mut items = HashMap::new();
        let others = match annotation {
            None => Known::Nothing,
            Some([]) => Known::NoRoom,
            Some(bytes) => match gather(bytes, &mut items) {
                Some(()) => Known::Nothing,
                None => Known::Unreadable,
            },
        };
        Self { items, others }
    }

    /// What it says of the one that ends with frame `number`.
    pub(crate) fn frame(&self, number: u32) -> Known {
        match self.items.get(&number) {
            None => self.others.clone(),
            Some(None) => Known::NoRoom,
            Some(Some(said)) => Known::Said(said.clone()),
        }
    }
}

/// Puts the items there, up to one that can't be read: `None`.
fn gather(bytes: &[u8], known: &mut HashMap<u32, Option<Said>>) -> Option<()> {
    let mut items = Items::of(bytes)?;
    while !items.0.is_empty() {
        let (number, said) = items.take()?;
        known.entry(number).or_insert(said);
    }
    Some(())
}

/// The commits that a record carries by their statements, by the frames that end them, and what is
/// said of each. None, where frames carry them.
///
/// # Errors
///
/// `Corrupt` where what carries them can't be read.
pub(crate) fn carried_in(record: &Record<'_>) -> Result<Vec<(u32, Said)>, Error> {
    if !record.carries() {
        return Ok(Vec::new());
    }
    let known = record.annotation.and_then(carried);
    known.ok_or_else(|| Error::Corrupt("the log is damaged: what carries commits can't be".into()))
}

/// All that an annotation says that carries; `None`: that can't be read, or is not all.
fn carried(bytes: &[u8]) -> Option<Vec<(u32, Said)>> {
    let (mut items, mut all) = (Items::of(bytes)?, Vec::new());
    while !items.0.is_empty() {
        let (frame, said) = items.take()?;
        all.push((frame, said?));
    }
    Some(all)
}

/// The items of an annotation.
struct Items<'a>(&'a [u8]);

impl<'a> Items<'a> {
    fn of(bytes: &'a [u8]) -> Option<Self> {
        let (&version, rest) = bytes.split_first()?;
        (version == VERSION).then_some(Self(rest))
    }

    /// The next one: which frame it is of, and what is said, if there was room; `None`: that can't
    /// be read.
    fn take(&mut self) -> Option<(u32, Option<Said>)> {
        let (&kind, behind) = self.0.split_first()?;
        let (number, behind) = take(behind).map(|(it, rest)| (u32::from_le_bytes(it), rest))?;
        if kind == NO_ROOM {
            self.0 = behind;
            return Some((number, None));
        }
        let (process, behind) = take(behind)?;
        let (connection, behind) = take(behind)?;
        let (time, behind) = take(behind)?;
        let (len, behind) = take(behind)?;
        let len = usize::try_from(u32::from_le_bytes(len)).ok()?;
        let (statements, behind) = behind.split_at_checked(len).filter(|_| kind == SAID)?;
        self.0 = behind;
        let connection = u64::from_le_bytes(connection);
        let said = Said {
            process: u32::from_le_bytes(process),
            connection: (connection != 0).then_some(connection),
            time: i64::from_le_bytes(time),
            statements: statements.to_vec(),
        };
        Some((number, Some(said)))
    }
}

fn take<const N: usize>(bytes: &[u8]) -> Option<([u8; N], &[u8])> {
    bytes.split_first_chunk().map(|(taken, rest)| (*taken, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dash_statement::{Event, Statement, encode};

    fn said(steps: usize) -> Said {
        let sql = b"INSERT INTO t VALUES (1)".as_slice().into();
        let step = Event::Statement(Statement { sql, values: None, clock: None, nested: 0 });
        let known = Transaction { events: vec![step; steps], ..Transaction::default() };
        let connection = steps.is_multiple_of(2).then_some(3);
        Said { process: 7, connection, time: 5, statements: encode(&known) }
    }

    fn of_frame(annotation: Option<&[u8]>, frame: u32) -> Known {
        SaidOf::new(annotation).frame(frame)
    }

    fn room(record: usize, free: usize) -> Room {
        Room { record, block: 512, free, full: 4096 }
    }

    #[test]
    fn what_is_said_is_read_and_nothing_of_others() {
        let items = [(4, Some(said(1)), false), (6, None, false), (9, Some(said(2)), false)];
        let bytes = annotation(&items, room(100, 0));
        let of = |frame| of_frame(Some(&bytes), frame);
        assert_eq!([of(4), of(9)], [1, 2].map(|steps| Known::Said(said(steps))));
        assert_eq!([of(6), of(5)], [Known::NoRoom, Known::Nothing]);
        assert_eq!(of_frame(None, 4), Known::Nothing);
        assert_eq!(of_frame(Some(&[]), 4), Known::NoRoom);
        for end in 1..bytes.len() {
            drop(of_frame(Some(&bytes[..end]), 9));
        }
        assert_eq!(of_frame(Some(&[2, 0]), 9), Known::Unreadable);
    }

    /// WAL-32
    #[test]
    fn one_that_carries_has_all_of_it() {
        let items = [(4, said(1)), (9, said(200))];
        let bytes = carrying(&items).expect("short");
        assert_eq!(carried(&bytes), Some(items.to_vec()));
        assert_eq!(of_frame(Some(&bytes), 9), Known::Said(said(200)));
        for end in 0..bytes.len() {
            assert_ne!(carried(&bytes[..end]), Some(items.to_vec()));
        }
        let large = Said { statements: vec![7; ANNOTATION_MAX - LONG], ..said(1) };
        assert_eq!(carrying(&[(4, large)]), None);
        let bytes = annotation(&[(4, None, true)], room(1, 0));
        assert_eq!(carried(&bytes), None, "there was no room");
    }

    /// WAL-23: no block is added, but where that is wanted.
    #[test]
    fn it_takes_the_slack_and_no_more() {
        for record in 1..=1024 {
            let items = [(4, Some(said(1)), false), (9, Some(said(2)), false)];
            let bytes = annotation(&items, room(record, 0));
            assert!(record + bytes.len() <= record.next_multiple_of(512));
            let bytes = annotation(&items, room(record, 256));
            assert!(bytes.len() <= 256.max(record.next_multiple_of(512) - record));
            let full = items.map(|(frame, said, _)| (frame, said, true));
            let bytes = annotation(&full, room(record, 0));
            assert_eq!(of_frame(Some(&bytes), 9), Known::Said(said(2)), "{record}");
        }
        let endless = [(4, Some(said(900)), true), (9, Some(said(900)), true)];
        assert!(annotation(&endless, room(1, 0)).len() <= 4096);
    }

    #[test]
    fn of_many_steps_the_first_ones_are_there() {
        let bytes = annotation(&[(4, Some(said(200)), false)], room(1, 0));
        let Known::Said(found) = of_frame(Some(&bytes), 4) else { panic!("nothing") };
        let known = decode(&found.statements).expect("whole");
        assert!(known.events.len() > 10 && known.dropped as usize == 200 - known.events.len());
        assert!(known.reasons.has(Reason::NoRoom));
        let bytes = annotation(&[(4, Some(said(200)), false)], room(512 - 20, 0));
        assert_eq!(of_frame(Some(&bytes), 4), Known::NoRoom);
        assert_eq!(annotation(&[(4, Some(said(1)), false)], room(512 - 5, 0)), []);
    }
}
