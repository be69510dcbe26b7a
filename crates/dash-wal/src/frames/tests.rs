//! The format, against files that SQLite wrote, and SQLite's own recovery of damaged ones.

use super::*;
use dash_engine::error::Error;
use dash_simulated::Machine;
use dash_storage::real::Real;
use dash_storage::{Directory, OpenMode, Storage};
use proptest::prelude::*;
use std::path::Path;

/// A database and its `-wal`, as SQLite leaves them while it is open: several commits, one of many
/// frames, and behind them a transaction that was spilled and rolled back.
fn made_by_sqlite(page_size: u32) -> (Vec<u8>, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let sqlite = rusqlite::Connection::open(&path).unwrap();
    sqlite.pragma_update(None, "page_size", page_size).unwrap();
    sqlite.pragma_update(None, "journal_mode", "WAL").unwrap();
    sqlite.pragma_update(None, "wal_autocheckpoint", 0).unwrap();
    sqlite.pragma_update(None, "cache_size", 5).unwrap();
    sqlite.execute_batch("CREATE TABLE t(x); CREATE TABLE u(x); INSERT INTO t VALUES (1)").unwrap();
    let many = format!("INSERT INTO u VALUES (randomblob({}))", 12 * page_size);
    sqlite.execute_batch(&many).unwrap();
    sqlite
        .execute_batch("INSERT INTO t VALUES (2); DELETE FROM u; INSERT INTO t VALUES (3)")
        .unwrap();
    let rolled_back =
        format!("BEGIN; INSERT INTO u VALUES (randomblob({})); ROLLBACK", 40 * page_size);
    sqlite.execute_batch(&rolled_back).unwrap();
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    (read("db"), read("db-wal"))
}

/// What SQLite's recovery makes of a database and its `-wal`: mxFrame, and the database's pages.
fn recovered_by_sqlite(db: &[u8], wal: &[u8]) -> (u32, u32) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    std::fs::write(&path, db).unwrap();
    std::fs::write(folder.path().join("db-wal"), wal).unwrap();
    let sqlite = rusqlite::Connection::open(&path).unwrap();
    let number = |sql: &str, column: usize| -> u32 {
        sqlite.query_row(sql, [], |row| row.get(column)).unwrap()
    };
    let pages = number("PRAGMA page_count", 0);
    (number("PRAGMA wal_checkpoint(PASSIVE)", 1), pages)
}

/// The bytes as a file.
fn file(bytes: &[u8]) -> dash_simulated::File {
    let file = crate::testing::open(&Machine::new(1), "db-wal");
    file.write_at(bytes, 0).unwrap();
    file
}

/// The header and the valid frames of these bytes.
fn scan(bytes: &[u8]) -> Option<(WalHeader, Prefix)> {
    let file = file(bytes);
    let header = WalHeader::read(&file, "db-wal").unwrap()?;
    let all = Prefix::before_all(&header);
    Some((header, valid_prefix(&file, &header, all, "db-wal").unwrap()))
}

/// The same frames with checksums in the other byte order.
fn turned(wal: &[u8]) -> Vec<u8> {
    let (header, prefix) = scan(wal).unwrap();
    let order = match header.order {
        ByteOrder::Little => ByteOrder::Big,
        ByteOrder::Big => ByteOrder::Little,
    };
    sealed(wal, order, prefix.last)
}

/// Makes every checksum again, up to a frame.
fn sealed(wal: &[u8], order: ByteOrder, last: u32) -> Vec<u8> {
    let mut wal = wal.to_vec();
    wal[3] = 0x82 + u8::from(order == ByteOrder::Big);
    let put = |bytes: &mut [u8], sums: Checksum| {
        bytes[..4].copy_from_slice(&sums[0].to_be_bytes());
        bytes[4..8].copy_from_slice(&sums[1].to_be_bytes());
    };
    let mut sums = checksum(order, &wal[..24], [0, 0]);
    put(&mut wal[24..], sums);
    let page_size = number(&wal, 8);
    for number in 1..=last {
        let at = usize::try_from(frame_offset(number, page_size)).unwrap();
        let frame = &mut wal[at..at + usize::try_from(frame_size(page_size)).unwrap()];
        sums = checksum(order, &frame[24..], checksum(order, &frame[..8], sums));
        put(&mut frame[16..], sums);
    }
    wal
}

#[test]
fn what_sqlite_wrote_is_valid_up_to_the_frame_that_it_knows() {
    for page_size in [512, 1024, 4096, 65_536] {
        let (db, wal) = made_by_sqlite(page_size);
        for wal in [turned(&wal), wal] {
            let (header, prefix) = scan(&wal).unwrap();
            assert_eq!(header.page_size, page_size);
            assert_eq!((prefix.committed, prefix.pages), recovered_by_sqlite(&db, &wal));
            assert!(prefix.last > prefix.committed, "a rolled back transaction was spilled");
            assert_eq!(u64::from(frames_in(wal.len() as u64, page_size)), u64::from(prefix.last));
        }
    }
}

#[test]
fn a_file_larger_than_the_buffer_is_gone_through() {
    let (_, wal) = made_by_sqlite(65_536);
    assert!(wal.len() as u64 > 3 * STRIDE, "{}", wal.len());
    let (header, prefix) = scan(&wal).unwrap();
    let file = file(&wal);
    let mut numbers = Vec::new();
    let walked =
        walk(&file, &header, Prefix::before_all(&header), "db-wal", |number, frame, page| {
            let at = usize::try_from(frame_offset(number, header.page_size)).unwrap();
            assert_eq!(FrameHeader::decode(wal[at..at + 24].try_into().unwrap()), *frame);
            assert!(page == &wal[at + 24..at + 24 + 65_536]);
            numbers.push(number);
            ControlFlow::Continue(())
        });
    assert_eq!(walked.unwrap(), prefix);
    assert_eq!(numbers, (1..=prefix.last).collect::<Vec<_>>());
}

#[test]
fn a_walk_goes_on_where_another_one_ended() {
    let (_, wal) = made_by_sqlite(512);
    let (header, whole) = scan(&wal).unwrap();
    let file = file(&wal);
    for end in 1..=whole.last {
        let visit = |number, _: &FrameHeader, _: &[u8]| match number >= end {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        let first = walk(&file, &header, Prefix::before_all(&header), "db-wal", visit).unwrap();
        assert_eq!(first.last, end - 1, "the frame that ended it does not count");
        assert_eq!(valid_prefix(&file, &header, first, "db-wal").unwrap(), whole);
    }
}

#[test]
fn frames_of_an_earlier_generation_are_not_valid() {
    let folder = tempfile::tempdir().unwrap();
    let sqlite = rusqlite::Connection::open(folder.path().join("db")).unwrap();
    let batch =
        "PRAGMA journal_mode=WAL; CREATE TABLE t(x); INSERT INTO t VALUES (randomblob(50000));
        PRAGMA wal_checkpoint(RESTART); INSERT INTO t VALUES (1)";
    let header = || WalHeader::read(&real(folder.path()), "db-wal").unwrap().unwrap();
    let (create, rest) = batch.split_at(batch.find("PRAGMA wal_ch").unwrap());
    sqlite.execute_batch(create).unwrap();
    let before = header();
    sqlite.execute_batch(rest).unwrap();
    let after = header();
    let file = real(folder.path());
    let prefix = valid_prefix(&file, &after, Prefix::before_all(&after), "db-wal").unwrap();
    let room = frames_in(file.metadata().unwrap().len, after.page_size);
    assert!(prefix.last < room && prefix.last == prefix.committed, "{prefix:?} of {room}");
    assert_eq!(after.salts[0], before.salts[0].wrapping_add(1));
    assert_eq!(after.sequence, before.sequence + 1);
}

fn real(folder: &Path) -> <Real as Storage>::File {
    Real.open_directory(folder).unwrap().open("db-wal".as_ref(), OpenMode::Read).unwrap()
}

#[test]
fn a_header_that_sqlite_takes_for_none_is_none() {
    let (_, wal) = made_by_sqlite(512);
    assert!(scan(&wal[..31]).is_none() && scan(&[]).is_none() && scan(&[0; 32]).is_none());
    let mut bytes: [u8; HEADER] = wal[..HEADER].try_into().unwrap();
    for bit in 0..HEADER * 8 {
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(WalHeader::decode(&bytes, "db-wal").unwrap(), None, "bit {bit}");
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
    let with = |at: usize, value: u32| {
        let mut bytes = bytes;
        bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
        let order = if bytes[3] & 1 == 1 { ByteOrder::Big } else { ByteOrder::Little };
        let sums = checksum(order, &bytes[..24], [0, 0]);
        bytes[24..28].copy_from_slice(&sums[0].to_be_bytes());
        bytes[28..].copy_from_slice(&sums[1].to_be_bytes());
        WalHeader::decode(&bytes, "db-wal")
    };
    for size in [0, 1, 256, 513, 131_072, u32::MAX] {
        assert_eq!(with(8, size).unwrap(), None, "{size}");
    }
    assert_eq!(with(8, 65_536).unwrap().unwrap().page_size, 65_536);
    let newer = with(4, 3_007_001).unwrap_err();
    assert!(
        matches!(newer, Error::CantOpen(_)) && newer.to_string().contains("3007001"),
        "{newer}"
    );
}

#[test]
fn every_offset_has_its_place() {
    for page_size in [512, 4096, 65_536] {
        let size = frame_size(page_size);
        assert_eq!(place_of(31, page_size), Some(Place::Header));
        for number in [1, 2, 3, 1000, u32::MAX] {
            let at = frame_offset(number, page_size);
            let place = |within| Some(Place::Frame { number, within });
            assert_eq!(place_of(at, page_size), place(0));
            assert_eq!(place_of(at + size - 1, page_size), place(size - 1));
            assert_eq!(
                (frames_in(at, page_size), frames_in(at + size, page_size)),
                (number - 1, number)
            );
        }
        let end = frame_offset(u32::MAX, page_size) + size;
        assert_eq!((place_of(end, page_size), frames_in(u64::MAX, page_size)), (None, u32::MAX));
    }
    assert_eq!((frames_in(0, 512), frames_in(32, 512), frames_in(32 + 535, 512)), (0, 0, 0));
}

#[test]
fn a_frame_that_ends_before_its_page_does_is_none() {
    let (_, wal) = made_by_sqlite(512);
    let (_, whole) = scan(&wal).unwrap();
    let frames = |cut: usize| scan(&wal[..wal.len() - cut]).unwrap().1.last;
    assert_eq!((frames(0), frames(1), frames(536), frames(537)), {
        let last = whole.last;
        (last, last - 1, last - 1, last - 2)
    });
}

#[test]
fn every_bit_of_a_frame_counts() {
    let (_, mut wal) = made_by_sqlite(512);
    let (_, whole) = scan(&wal).unwrap();
    let second = usize::try_from(frame_offset(2, 512)).unwrap();
    for bit in (0..536 * 8).step_by(3) {
        let at = second + bit / 8;
        wal[at] ^= 1 << (bit % 8);
        assert_eq!(scan(&wal).unwrap().1.last, 1, "bit {bit}");
        wal[at] ^= 1 << (bit % 8);
    }
    assert_eq!(scan(&wal).unwrap().1, whole);
}

#[test]
fn a_frame_of_no_page_is_none_whatever_its_checksum() {
    let (db, wal) = made_by_sqlite(512);
    let (_, whole) = scan(&wal).unwrap();
    for page in [1_u32, 0] {
        let mut wal = wal.clone();
        let at = usize::try_from(frame_offset(whole.committed, 512)).unwrap();
        wal[at..at + 4].copy_from_slice(&page.to_be_bytes());
        let wal = sealed(&wal, ByteOrder::NATIVE, whole.last);
        let (_, found) = scan(&wal).unwrap();
        assert_eq!(found.last, if page == 0 { whole.committed - 1 } else { whole.last });
        if page == 0 {
            assert_eq!(found.committed, recovered_by_sqlite(&db, &wal).0);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// SQLite's recovery is the judge.
    #[test]
    fn damage_ends_the_prefix_where_sqlite_ends_it(
        at in any::<prop::sample::Index>(),
        bit in 0..8u32,
        cut in prop::option::of(any::<prop::sample::Index>()),
        turn in any::<bool>(),
    ) {
        static MADE: std::sync::LazyLock<(Vec<u8>, Vec<u8>)> =
            std::sync::LazyLock::new(|| made_by_sqlite(1024));
        let (db, wal) = &*MADE;
        let mut wal = if turn { turned(wal) } else { wal.clone() };
        if let Some(cut) = cut {
            wal.truncate(cut.index(wal.len()));
        }
        if !wal.is_empty() {
            let at = at.index(wal.len());
            wal[at] ^= 1 << bit;
        }
        let found = scan(&wal).map_or(0, |(_, prefix)| prefix.committed);
        prop_assert_eq!(found, recovered_by_sqlite(db, &wal).0);
    }

    #[test]
    fn any_bytes_are_taken(
        bytes in prop::collection::vec(any::<u8>(), 0..2000),
        real in 0..40usize,
    ) {
        static MADE: std::sync::LazyLock<(Vec<u8>, Vec<u8>)> =
            std::sync::LazyLock::new(|| made_by_sqlite(512));
        let mut mixed = MADE.1[..32 + 536 * real].to_vec();
        mixed.extend(bytes);
        let (_, prefix) = scan(&mixed).unwrap();
        prop_assert!(prefix.last >= u32::try_from(real).unwrap());
    }
}
