//! The rows of `sqlite_schema`, read out of a database's pages, so that nobody has to run SQL for
//! them (SQLite's file format, "B-tree Pages" and "Record Format").
//!
//! Nothing is believed. A schema of which a part can't be read, or that is too large, is taken for
//! none: a trigger may stand in that part.

use super::schema::Schema;

/// Bytes that are looked at, of pages and of rows: the same ones may be named many times.
const BYTES: usize = 8 << 20;
/// Pages that wait to be looked at, each of 512 bytes at least.
const PAGES: usize = BYTES / 512;
/// Bytes of a row: more than the longest statement that SQLite takes as a rule.
const ROW: usize = 1 << 20;

/// On page 1: where the tree begins, the bytes of each page that are reserved, what is zero without
/// `auto_vacuum`, and the encoding.
const TREE: usize = 100;
const RESERVED: usize = 20;
const AUTO_VACUUM: usize = 52;
const ENCODING: usize = 56;
const UTF_8: u32 = 1;

/// What a row may be of.
const TYPES: [&[u8]; 4] = [b"table", b"index", b"view", b"trigger"];

/// Kinds of a page of a table.
const INTERIOR: u8 = 5;
const LEAF: u8 = 13;

impl Schema {
    /// Reads it. `page` answers a page by its number from 1; `None`: there is no such page.
    ///
    /// # Errors
    ///
    /// Those of `page`.
    pub fn of_pages<E>(page: impl FnMut(u32) -> Result<Option<Vec<u8>>, E>) -> Result<Self, E> {
        let mut reader = Reader { page, left: BYTES };
        let mut schema = Self::default();
        let Some(first) = reader.page(1)? else { return Ok(schema) };
        if number(&first, ENCODING) != Some(UTF_8) {
            schema.is_not_utf8();
            return Ok(schema);
        }
        schema.is_cut = number(&first, AUTO_VACUUM) != Some(0);
        let reserved = first.get(RESERVED).copied().map_or(0, usize::from);
        let usable = first.len().saturating_sub(reserved);
        let mut waiting = children(&first, TREE);
        let mut read = reader.rows(&first, TREE, usable, &mut schema)?;
        while let (true, Some(number)) = (read, waiting.pop()) {
            let Some(page) = reader.page(number)? else { return Ok(Self::unreadable()) };
            waiting.extend(children(&page, 0));
            read = waiting.len() <= PAGES && reader.rows(&page, 0, usable, &mut schema)?;
        }
        Ok(if read { schema } else { Self::unreadable() })
    }
}

/// Whoever has the pages.
struct Reader<F> {
    page: F,
    /// Bytes that may still be looked at.
    left: usize,
}

impl<E, F: FnMut(u32) -> Result<Option<Vec<u8>>, E>> Reader<F> {
    fn page(&mut self, number: u32) -> Result<Option<Vec<u8>>, E> {
        if number == 0 {
            return Ok(None);
        }
        let page = (self.page)(number)?;
        Ok(page.filter(|page| self.takes(page.len())))
    }

    /// Whether so many bytes more are looked at.
    fn takes(&mut self, bytes: usize) -> bool {
        let left = self.left.checked_sub(bytes.max(1));
        self.left = left.unwrap_or(0);
        left.is_some()
    }

    /// Adds the rows of a leaf whose tree begins at `at`; whether each could be read.
    fn rows(
        &mut self,
        page: &[u8],
        at: usize,
        usable: usize,
        schema: &mut Schema,
    ) -> Result<bool, E> {
        if !matches!(page.get(at), Some(&(LEAF | INTERIOR))) {
            return Ok(false);
        }
        for cell in leaves(page, at) {
            let row = self.row(page, cell, usable)?.filter(|row| self.takes(row.len()));
            let Some(Row { kind, table, sql }) = row.as_deref().and_then(columns) else {
                return Ok(false);
            };
            schema.add(kind, table, sql);
        }
        Ok(true)
    }

    /// The row in a cell of a leaf; the end of a long one is in a chain of pages.
    fn row(&mut self, page: &[u8], cell: usize, usable: usize) -> Result<Option<Vec<u8>>, E> {
        let Some((mut row, size, mut next)) = local(page, cell, usable) else { return Ok(None) };
        while row.len() < size {
            let Some(page) = self.page(next)? else { return Ok(None) };
            let more = page.get(4..usable).unwrap_or_default();
            row.extend(&more[..more.len().min(size - row.len())]);
            next = number(&page, 0).unwrap_or(0);
        }
        Ok(Some(row))
    }
}

/// A big-endian number of four bytes.
fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn short(bytes: &[u8], at: usize) -> Option<usize> {
    Some(usize::from(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?)))
}

/// SQLite's varint, and its bytes.
fn varint(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let mut value = 0_u64;
    for (count, byte) in bytes.get(at..)?.iter().take(9).enumerate() {
        if count == 8 {
            value = value << 8 | u64::from(*byte);
            return Some((usize::try_from(value).ok()?, 9));
        }
        value = value << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some((usize::try_from(value).ok()?, count + 1));
        }
    }
    None
}

/// Where the cells of a page are whose tree begins at `at`, if it is of that kind.
fn cells(page: &[u8], at: usize, kind: u8, head: usize) -> impl Iterator<Item = usize> {
    let is_it = page.get(at) == Some(&kind);
    let count = short(page, at + 3).filter(|_| is_it).unwrap_or(0);
    (0..count).map_while(move |cell| short(page, at + head + 2 * cell))
}

fn leaves(page: &[u8], at: usize) -> impl Iterator<Item = usize> {
    cells(page, at, LEAF, 8)
}

fn children(page: &[u8], at: usize) -> Vec<u32> {
    let left = cells(page, at, INTERIOR, 12).filter_map(|cell| number(page, cell));
    let last = number(page, at + 8).filter(|_| page.get(at) == Some(&INTERIOR));
    left.chain(last).collect()
}

/// What of a row is in its cell, the bytes of the whole row, and the page where it goes on.
fn local(page: &[u8], cell: usize, usable: usize) -> Option<(Vec<u8>, usize, u32)> {
    let (size, bytes) = varint(page, cell)?;
    let (_, more) = varint(page, cell + bytes)?;
    let start = cell + bytes + more;
    if size > ROW {
        return None;
    }
    let most = usable.checked_sub(35)?;
    let here = match size <= most {
        true => size,
        false => {
            let least = (usable.checked_sub(12)? * 32 / 255).checked_sub(23)?;
            let wanted = least + (size.checked_sub(least)?) % usable.checked_sub(4)?;
            if wanted <= most { wanted } else { least }
        }
    };
    let row = page.get(start..start + here)?.to_vec();
    let next = if here < size { number(page, start + here)? } else { 0 };
    Some((row, size, next))
}

/// What is said by a row as SQLite writes it.
struct Row<'a> {
    kind: &'a [u8],
    table: &'a [u8],
    sql: Option<&'a [u8]>,
}

/// The columns of a row; `None`: SQLite does not write it so. It takes a blob for a text, ends each
/// at a zero byte, and knows a type in capitals.
fn columns(row: &[u8]) -> Option<Row<'_>> {
    let (mut value, mut at) = varint(row, 0)?;
    let mut columns = [None; 5];
    for column in &mut columns {
        let (kind, bytes) = varint(row, at)?;
        at += bytes;
        let size = match kind {
            0 | 8 | 9 => 0,
            1..=4 => kind,
            5 => 6,
            6 | 7 => 8,
            _ => kind.checked_sub(12)? / 2,
        };
        let bytes = row.get(value..value.checked_add(size)?)?;
        let is_text = kind > 12 && kind % 2 == 1 && !bytes.contains(&0);
        *column = is_text.then_some(bytes);
        value += size;
        if kind > 9 && !is_text {
            return None;
        }
    }
    let [kind, name, table, _, sql] = columns;
    let is_known = TYPES.contains(&kind?) && name.is_some();
    is_known.then_some(Row { kind: kind?, table: table?, sql })
}
