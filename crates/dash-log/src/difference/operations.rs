//! How the operations of a difference are written.

/// Equal bytes that are not worth ending a run for: two tags would take as many.
pub(super) const GAP: usize = 2;

/// Runs of new bytes up to this length are not looked for in the old image.
pub(super) const SHORT_RUN: usize = 48;
/// The same where copies are shorter.
pub(super) const SHORT_RUN_EVERYWHERE: usize = 24;

pub(super) const KEEP: u8 = 0b0000_0000;
pub(super) const DATA: u8 = 0b0100_0000;
pub(super) const COPY: u8 = 0b1000_0000;
pub(super) const COPY_EVERYWHERE: u8 = 0b1100_0000;
pub(super) const KIND: u8 = 0b1100_0000;
/// Lengths up to this one are in the tag.
pub(super) const IN_TAG: usize = 60;
pub(super) const ONE_BYTE: u8 = 60;
pub(super) const TWO_BYTES: u8 = 61;
/// Lengths up to this one take one byte behind the tag.
const IN_BYTE: usize = IN_TAG + 256;
/// Longest of one operation.
const LONGEST: usize = 1 << 16;

/// The most that a difference of an image of `len` bytes takes.
#[must_use]
pub fn longest(len: usize) -> usize {
    len + len / 32 + 16
}

/// Operations, in the order of the new image.
pub(super) struct Writer<'a> {
    pub(super) out: &'a mut Vec<u8>,
    pub(super) at: usize,
}

impl Writer<'_> {
    pub(super) fn keep_to(&mut self, place: usize) {
        let mut len = place - self.at;
        while len > 0 {
            let part = len.min(LONGEST);
            self.tag(KEEP, part);
            len -= part;
        }
        self.at = place;
    }

    pub(super) fn data(&mut self, place: usize, bytes: &[u8]) {
        self.keep_to(place);
        for part in bytes.chunks(LONGEST) {
            self.tag(DATA, part.len());
            self.out.extend_from_slice(part);
        }
        self.at += bytes.len();
    }

    pub(super) fn copy(&mut self, place: usize, from: usize, len: usize) {
        self.keep_to(place);
        let (from, less) = (from.to_le_bytes(), (len - 1).to_le_bytes());
        self.out.extend_from_slice(&[COPY, from[0], from[1], less[0], less[1]]);
        self.at += len;
    }

    pub(super) fn copy_everywhere(&mut self, place: usize, from: usize, len: usize) {
        self.keep_to(place);
        self.tag(COPY_EVERYWHERE, len);
        let from = from.to_le_bytes();
        self.out.extend_from_slice(&[from[0], from[1]]);
        self.at += len;
    }

    /// `len` is 1 to [`LONGEST`].
    fn tag(&mut self, kind: u8, len: usize) {
        let less = (len - 1).to_le_bytes();
        if len <= IN_TAG {
            self.out.push(kind | less[0]);
        } else if len <= IN_BYTE {
            let less = (len - 1 - IN_TAG).to_le_bytes();
            self.out.extend_from_slice(&[kind | ONE_BYTE, less[0]]);
        } else {
            self.out.extend_from_slice(&[kind | TWO_BYTES, less[0], less[1]]);
        }
    }
}
