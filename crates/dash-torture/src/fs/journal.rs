//! Rollback journals as they lie on the disk (SQLite's file format, section 3).
//!
//! Some file systems let the name, the length or the blocks of a new file reach the disk before its
//! content. After a power cut the journal that a transaction had just begun may then hold what lay
//! in its place before: the whole journal of a transaction that is long finished. Its checksums are
//! right, so SQLite rolls it back. Stock SQLite has this in every mode that makes a new journal for
//! each transaction, also with `synchronous=EXTRA`; dash has no part in it, as it keeps a journal
//! in plain modes only.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The number that tells a journal from others.
pub type Nonce = [u8; 4];

const MAGIC: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];
/// Where the nonce lies, behind magic and number of records: these are zero until the records are
/// durable.
const NONCE: usize = 12;
/// Magic, number of records, nonce.
const HEAD: usize = NONCE + size_of::<Nonce>();

/// The journal that begins with these bytes, if its records aren't durable yet.
pub fn begun(bytes: &[u8]) -> Option<Nonce> {
    let head: &[u8; HEAD] = bytes.first_chunk()?;
    let nonce = *head.last_chunk()?;
    (head[..NONCE] == [0; NONCE] && nonce != Nonce::default()).then_some(nonce)
}

/// Whether the journal beside a database would be rolled back, and is none of those that were just
/// begun.
pub fn is_of_before(database: &Path, begun: &[Nonce]) -> bool {
    let mut name = database.as_os_str().to_owned();
    name.push("-journal");
    let mut head = [0; HEAD];
    !begun.is_empty()
        && File::open(name).and_then(|mut file| file.read_exact(&mut head)).is_ok()
        && head.starts_with(&MAGIC)
        && !begun.iter().any(|nonce| head.ends_with(nonce))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_of_before_is_told_from_one_that_was_just_begun() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("app.db");
        let new = [&[0; NONCE][..], &[1, 2, 3, 4], &[0; 12]].concat();
        let nonce = begun(&new).unwrap();
        assert_eq!(begun(&[0; HEAD]), None, "a zeroed journal");
        let complete = |nonce: Nonce| [&MAGIC[..], &[0, 0, 0, 1], &nonce].concat();
        assert_eq!(begun(&complete(nonce)), None);
        for (bytes, expected) in
            [(complete(nonce), false), (complete([5; 4]), true), (new, false), (vec![], false)]
        {
            std::fs::write(folder.path().join("app.db-journal"), bytes).unwrap();
            assert_eq!(is_of_before(&database, &[nonce]), expected);
            assert!(!is_of_before(&database, &[]), "none was begun");
        }
    }
}
