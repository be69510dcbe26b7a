//! A log taken apart, and put together again with its checksums, whatever is said in between.

use dash_log::format::{Form, layout as common};
use dash_log::head;
use dash_log::number;
use dash_log::record::{ANNOTATED, COMPACT_MAGIC, MAGIC, Record as Decoded, compact, layout};

/// Bytes of a head, and where the ring begins.
const HEAD: usize = dash_log::format::SECTOR;
const RING: usize = 8 * HEAD;
const _: () = assert!(RING as u64 == dash_log::format::RING_START);

/// A record, each field of which may lie.
#[derive(Debug, Clone)]
pub struct Record {
    pub id: u64,
    pub sequence: u64,
    pub flags: u16,
    pub entries: u32,
    pub unit_bytes: u32,
    pub meta_len: u16,
    pub context: Vec<u8>,
    /// The entries, in bytes.
    pub body: Vec<u8>,
    pub annotation: Vec<u8>,
    /// What is added to the lengths of the whole, the context and the annotation.
    pub lies: [i32; 3],
    /// Whether its checksum is right.
    pub sealed: bool,
}

/// A log.
#[derive(Debug, Clone)]
pub struct Log {
    pub form: Form,
    /// What is before the ring.
    pub heads: Vec<u8>,
    pub records: Vec<Record>,
    pub len: usize,
}

fn u32_of(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    if let Some(place) = bytes.get_mut(at..at + value.len()) {
        place.copy_from_slice(value);
    }
}

/// Puts the checksum of `bytes` into its field.
fn seal(bytes: &mut [u8], field: usize) {
    put(bytes, field, &[0; 4]);
    let sum = crc32fast::hash(bytes);
    put(bytes, field, &sum.to_le_bytes());
}

impl Log {
    /// A log whose records are whole; `None`: it has none.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let heads = bytes.get(..RING)?.to_vec();
        let form = dash_log::heads::Heads::decode(&heads).form;
        let (mut records, mut at) = (Vec::new(), RING);
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            at += match Decoded::decode(rest) {
                Ok(it) => {
                    records.push(Record::of(rest, &it));
                    it.padded as usize
                }
                Err(_) => form.step(),
            };
        }
        records.sort_by_key(|record| record.sequence);
        (!records.is_empty()).then_some(Self { form, heads, records, len: bytes.len() })
    }

    /// As a file of the database with this inode number; 0: of another one.
    pub fn bytes(&self, inode: u64) -> Vec<u8> {
        let mut bytes = self.heads.clone();
        for place in bytes.get_mut(..2 * HEAD).unwrap_or_default().chunks_exact_mut(HEAD) {
            if place.starts_with(&head::MAGIC) {
                if inode != 0 {
                    put(place, head::layout::OWNER, &inode.to_le_bytes());
                }
                seal(place, common::CHECKSUM);
            }
        }
        self.records.iter().for_each(|record| record.put(self.form, &mut bytes));
        bytes.resize(bytes.len().next_multiple_of(RING).max(self.len), 0);
        bytes
    }
}

impl Record {
    fn of(bytes: &[u8], it: &Decoded<'_>) -> Self {
        let annotation = it.annotation.unwrap_or_default().to_vec();
        let begin = it.context.as_ptr() as usize - bytes.as_ptr() as usize + it.context.len();
        let body = bytes[begin..it.length() - annotation.len()].to_vec();
        let meta_len = it.entries().next().map_or(0, |entry| entry.meta.len());
        Self {
            id: it.id,
            sequence: it.sequence,
            flags: it.flags,
            entries: it.count,
            unit_bytes: it.unit_bytes,
            meta_len: u16::try_from(meta_len).unwrap_or(0),
            context: it.context.to_vec(),
            body,
            annotation,
            lies: [0; 3],
            sealed: true,
        }
    }

    fn put(&self, form: Form, out: &mut Vec<u8>) {
        let lie = |len: usize, place: usize| u32_of(len).wrapping_add_signed(self.lies[place]);
        let lens = [lie(self.context.len(), 1), lie(self.annotation.len(), 2)];
        let [context, annotation] = lens.map(|len| u16::try_from(len).unwrap_or(u16::MAX));
        let parts = [&self.context[..], &self.body, &self.annotation].concat();
        let step = form.step();
        let mut bytes =
            vec![0; if form == Form::Lines { compact::NUMBERS } else { layout::CONTEXT }];
        if form == Form::Lines {
            put(&mut bytes, 0, &COMPACT_MAGIC);
            put(&mut bytes, compact::ID, &self.id.to_le_bytes());
            put(&mut bytes, compact::FLAGS, &self.flags.to_le_bytes()[..1]);
            let numbers = [self.sequence, lie(parts.len(), 0).into(), self.entries.into()];
            let more = [self.unit_bytes, self.meta_len.into(), context.into()].map(u64::from);
            let last = (self.flags & ANNOTATED != 0).then_some(annotation.into());
            numbers.into_iter().chain(more).chain(last).for_each(|it| number::put(it, &mut bytes));
            bytes.extend(parts);
            seal(&mut bytes, compact::CHECKSUM);
        } else {
            let len = bytes.len() + parts.len();
            put(&mut bytes, 0, &MAGIC);
            put(&mut bytes, common::VERSION, &1_u32.to_le_bytes());
            put(&mut bytes, common::ID, &self.id.to_le_bytes());
            put(&mut bytes, common::SEQUENCE, &self.sequence.to_le_bytes());
            put(&mut bytes, layout::LENGTH, &lie(len, 0).to_le_bytes());
            put(&mut bytes, layout::PADDED, &u32_of(len.next_multiple_of(step)).to_le_bytes());
            put(&mut bytes, layout::FLAGS, &self.flags.to_le_bytes());
            put(&mut bytes, layout::META_LEN, &self.meta_len.to_le_bytes());
            put(&mut bytes, layout::ENTRIES, &self.entries.to_le_bytes());
            put(&mut bytes, layout::UNIT_BYTES, &self.unit_bytes.to_le_bytes());
            put(&mut bytes, layout::CONTEXT_LEN, &context.to_le_bytes());
            put(&mut bytes, layout::ANNOTATION_LEN, &annotation.to_le_bytes());
            bytes.extend(parts);
            seal(&mut bytes, common::CHECKSUM);
        }
        if !self.sealed {
            bytes.iter_mut().last().into_iter().for_each(|byte| *byte ^= 1);
        }
        out.extend(bytes);
        out.resize(out.len().next_multiple_of(step), 0);
    }
}
