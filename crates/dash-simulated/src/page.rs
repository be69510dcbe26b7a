//! Sparse contents made of shared pages: copying a file costs a pointer, changing it one page.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, LazyLock, OnceLock};

use crate::mix;

/// Bytes of a page of the cache.
pub(crate) const PAGE: u64 = 4096;
const BYTES: usize = 4096;

/// One page, which remembers its hash until it changes.
pub(crate) struct Page {
    bytes: [u8; BYTES],
    hash: OnceLock<u64>,
}

static ZEROS: LazyLock<Arc<Page>> =
    LazyLock::new(|| Arc::new(Page { bytes: [0; BYTES], hash: OnceLock::new() }));

impl Clone for Page {
    /// A copy is made to be changed, so it has no hash.
    fn clone(&self) -> Self {
        Self { bytes: self.bytes, hash: OnceLock::new() }
    }
}

impl Page {
    /// `len` bytes from a byte offset of the file that lies in this page.
    pub(crate) fn slice(&self, offset: u64, len: usize) -> &[u8] {
        let start = within(offset);
        &self.bytes[start..start + len]
    }

    fn hash(&self) -> u64 {
        *self.hash.get_or_init(|| hash(&self.bytes))
    }
}

/// Where in its page a byte of the file lies.
fn within(offset: u64) -> usize {
    usize::try_from(offset % PAGE).unwrap_or_default()
}

fn hash(bytes: &[u8]) -> u64 {
    let words = bytes.as_chunks::<8>().0.iter();
    words.fold(0, |hash, word| mix(hash ^ u64::from_le_bytes(*word)))
}

/// A file's contents; pages that are not there are zeros.
#[derive(Clone, Default)]
pub(crate) struct Pages(Arc<BTreeMap<u64, Arc<Page>>>);

impl Pages {
    /// Page `number`, if it was ever written.
    pub(crate) fn get(&self, number: u64) -> Option<&Arc<Page>> {
        self.0.get(&number)
    }

    /// Page `number`, zeros if it was never written.
    pub(crate) fn page(&self, number: u64) -> &Arc<Page> {
        self.get(number).unwrap_or(&ZEROS)
    }

    /// Takes over a page that another file or time has.
    pub(crate) fn share(&mut self, number: u64, page: Option<&Arc<Page>>) {
        let pages = Arc::make_mut(&mut self.0);
        match page {
            Some(page) => drop(pages.insert(number, Arc::clone(page))),
            None => drop(pages.remove(&number)),
        }
    }

    /// Writes bytes that lie in one page.
    pub(crate) fn write_in_page(&mut self, data: &[u8], offset: u64) {
        let pages = Arc::make_mut(&mut self.0);
        let page = pages.entry(offset / PAGE).or_insert_with(|| Arc::clone(&ZEROS));
        let page = Arc::make_mut(page);
        page.hash = OnceLock::new();
        let start = within(offset);
        page.bytes[start..start + data.len()].copy_from_slice(data);
    }

    /// Makes zeros of bytes that lie in one page.
    pub(crate) fn zero_in_page(&mut self, range: Range<u64>) {
        let len = usize::try_from(range.end - range.start).unwrap_or(BYTES);
        if len == BYTES {
            self.share(range.start / PAGE, None);
        } else {
            self.write_in_page(&ZEROS.bytes[..len], range.start);
        }
    }

    /// Reads; the caller knows the length of the file.
    pub(crate) fn read(&self, buffer: &mut [u8], offset: u64) {
        for (place, part) in spans(offset, buffer.len()) {
            let len = part.len();
            buffer[part].copy_from_slice(self.page(place / PAGE).slice(place, len));
        }
    }

    /// Makes everything from `len` on zeros.
    pub(crate) fn cut(&mut self, len: u64) {
        let first = len.div_ceil(PAGE);
        if self.0.last_key_value().is_some_and(|(&last, _)| last >= first) {
            Arc::make_mut(&mut self.0).split_off(&first);
        }
        let rest = BYTES - within(len);
        let torn = self.get(len / PAGE).map(|page| page.slice(len, rest));
        if torn.is_some_and(|bytes| bytes.iter().any(|&byte| byte != 0)) {
            self.write_in_page(&ZEROS.bytes[..rest], len);
        }
    }

    /// Numbers of the pages from `first` on that were ever written.
    pub(crate) fn numbers(&self, first: u64) -> impl Iterator<Item = u64> {
        self.0.range(first..).map(|(&number, _)| number)
    }

    /// A hash of the contents; unwritten pages and pages of zeros are the same.
    pub(crate) fn hash(&self) -> u64 {
        let pages = self.0.iter().filter(|(_, page)| page.hash() != ZEROS.hash());
        pages.fold(1, |hash, (number, page)| mix(mix(hash ^ number) ^ page.hash()))
    }
}

/// Splits `len` bytes at `offset` into parts that lie in one page each, with their place.
pub(crate) fn spans(offset: u64, len: usize) -> impl Iterator<Item = (u64, Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let place = offset + done as u64;
        let part = done..len.min(done + BYTES - within(place));
        done = part.end;
        (!part.is_empty()).then_some((place, part))
    })
}
