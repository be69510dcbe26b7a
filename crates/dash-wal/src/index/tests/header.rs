//! The shared header, as SQLite writes it.

use super::super::Index;
use super::super::header::{HEADER_WORDS, copy, decode};
use super::{Connection, Machine, OsStr};
use crate::frames::{ByteOrder, Prefix, WalHeader, checksum, valid_prefix};
use dash_storage::real::Real;
use dash_storage::{Directory, OpenMode, Storage};
use std::sync::atomic::Ordering::SeqCst;

#[test]
fn the_header_says_what_sqlite_means() {
    for page_size in [512_u32, 4096, 32_768, 65_536] {
        let folder = tempfile::tempdir().unwrap();
        let sqlite = rusqlite::Connection::open(folder.path().join("db")).unwrap();
        sqlite.pragma_update(None, "page_size", page_size).unwrap();
        sqlite.pragma_update(None, "journal_mode", "WAL").unwrap();
        sqlite.pragma_update(None, "wal_autocheckpoint", 0).unwrap();
        let number = |sql: &str, column: usize| -> u32 {
            sqlite.query_row(sql, [], |row| row.get(column)).unwrap()
        };
        let directory = Real.open_directory(folder.path()).unwrap();
        let open = |name: &str| directory.open(OsStr::new(name), OpenMode::ReadWrite).unwrap();
        let look = || {
            let name = OsStr::new("db-shm");
            let mut index = Index::open(&Real, &directory, name, &open("db"), true).unwrap();
            index.map_region(0, false).unwrap().unwrap();
            index.header().unwrap()
        };
        sqlite.execute_batch("CREATE TABLE t(x)").unwrap();
        let before = look();
        sqlite.execute_batch("INSERT INTO t VALUES (randomblob(100000))").unwrap();
        let header = look();
        assert!(header.mx_frame > before.mx_frame);
        assert_eq!(header.change, before.change + 1);
        let wal = open("db-wal");
        let wal_header = WalHeader::read(&wal, "db-wal").unwrap().unwrap();
        let all = Prefix::before_all(&wal_header);
        let prefix = valid_prefix(&wal, &wal_header, all, "db-wal").unwrap();
        assert_eq!((header.page_size, header.salts), (page_size, wal_header.salts));
        assert_eq!((header.order, wal_header.order), (ByteOrder::NATIVE, ByteOrder::NATIVE));
        assert_eq!(header.mx_frame, prefix.committed);
        assert_eq!(header.frame_checksum, prefix.committed_checksum);
        assert_eq!((header.pages, prefix.pages), {
            let pages = number("PRAGMA page_count", 0);
            (pages, pages)
        });
        assert_eq!(number("PRAGMA wal_checkpoint(PASSIVE)", 1), header.mx_frame);
        assert_eq!(look(), header, "a checkpoint changes nothing in it");
    }
}

/// A header as SQLite would write it.
fn made(version: u32) -> [u8; 48] {
    let mut bytes = [0; 48];
    bytes[..4].copy_from_slice(&version.to_ne_bytes());
    bytes[12] = 1;
    bytes[14..16].copy_from_slice(&4096_u16.to_ne_bytes());
    bytes[16..20].copy_from_slice(&77_u32.to_ne_bytes());
    bytes[32..40].copy_from_slice(&[0, 0, 0, 1, 0, 0, 0, 2]);
    let sums = checksum(ByteOrder::NATIVE, &bytes[..40], [0, 0]);
    bytes[40..44].copy_from_slice(&sums[0].to_ne_bytes());
    bytes[44..].copy_from_slice(&sums[1].to_ne_bytes());
    bytes
}

#[test]
fn a_torn_or_damaged_header_is_none() {
    let mut connection = Connection::open(&Machine::new(1)).unwrap();
    connection.index.map_region(0, true).unwrap();
    for (index, word) in made(3_007_000).as_chunks::<8>().0.iter().enumerate() {
        for copy in [0, HEADER_WORDS] {
            connection.word(0, copy + index).store(u64::from_ne_bytes(*word), SeqCst);
        }
    }
    let header = connection.index.header().unwrap();
    assert_eq!((header.mx_frame, header.page_size, header.salts), (77, 4096, [1, 2]));
    for bit in 0..HEADER_WORDS * 64 {
        let flip = |copy: usize| {
            connection.word(0, copy + bit / 64).fetch_xor(1 << (bit % 64), SeqCst);
        };
        flip(0);
        assert_eq!(connection.index.header(), None, "the first copy is torn at bit {bit}");
        flip(HEADER_WORDS);
        assert_eq!(connection.index.header(), None, "both have another bit {bit}");
        flip(0);
        assert_eq!(connection.index.header(), None, "the second copy is torn at bit {bit}");
        flip(HEADER_WORDS);
    }
    assert_eq!(connection.index.header(), Some(header));
}

#[test]
fn a_header_that_nobody_wrote_is_none() {
    let mut connection = Connection::open(&Machine::new(1)).unwrap();
    connection.index.map_region(0, true).unwrap();
    assert_eq!(connection.index.header(), None);
    assert_eq!(copy(connection.index.regions[0].as_ref().unwrap(), 0), [0; 48]);
    let mut bytes = made(3_007_000);
    assert!(decode(&bytes).is_some());
    bytes[12] = 0;
    let sums = checksum(ByteOrder::NATIVE, &bytes[..40], [0, 0]);
    bytes[40..44].copy_from_slice(&sums[0].to_ne_bytes());
    bytes[44..].copy_from_slice(&sums[1].to_ne_bytes());
    assert_eq!(decode(&bytes), None, "not initialised");
}

#[test]
fn a_header_of_another_format_is_none() {
    assert_eq!(decode(&made(3_007_001)), None);
}
