//! Rules 10 and 11: direct I/O, durable writes; and blocks that are written beforehand.

use std::io::IoSlice;
use std::sync::{Arc, Mutex};

use dash_storage::{Blocks, File as _};

use super::{open, root, sector, sector_outcomes, sectors, with_file};
use crate::{Effect, Everything, Fault, Machine, Nothing, OperationKind};

fn blocks(len: usize, byte: u8) -> Blocks {
    let mut blocks = Blocks::try_new(len).unwrap();
    blocks.fill(byte);
    blocks
}

#[test]
fn direct_io_that_is_not_aligned_is_refused() {
    for block in [512, 4096] {
        let (machine, directory, usual) = with_file(16384);
        machine.set_direct(Some(block));
        let file = open(&directory, "db");
        assert_eq!(file.make_direct().unwrap(), Some(block));
        let invalid = |done: std::io::Result<()>| {
            assert_eq!(done.unwrap_err().raw_os_error(), Some(libc::EINVAL));
        };
        let size = usize::try_from(block).unwrap();
        let mut data = blocks(3 * size, b'n');
        for (range, at) in
            [(0..size, 256), (0..size - 1, 0), (1..size + 1, 0), (size / 2..size * 3 / 2, 0)]
        {
            invalid(file.write_at(&data[range.clone()], at));
            invalid(file.write_durable_at(&data[range.clone()], at));
            invalid(file.read_at(&mut data[range.clone()], at).map(drop));
            let good = IoSlice::new(&data[..size]);
            invalid(file.write_vectored_at(&[good, IoSlice::new(&data[range])], at));
        }
        for range in [1..u64::from(block), 0..u64::from(block) + 1] {
            invalid(file.initialize(range));
        }
        assert_eq!(machine.survivor_count(), 1);
        assert!(machine.file_view("db").unwrap().iter().all(|&byte| byte == 0xdd));
        // One description is direct, the file is not.
        usual.write_at(&data[1..20], 77).unwrap();
        file.write_at(&data[size..], u64::from(block)).unwrap();
        file.write_at(&[], 1).unwrap();
        assert_eq!(file.read_at(&mut data[..2 * size], 0).unwrap(), 2 * size);
        assert_eq!((data[77], data[96], data[size]), (b'n', 0xdd, b'n'));
    }
}

#[test]
fn a_machine_without_direct_io_says_so_and_takes_anything() {
    let (machine, _directory, file) = with_file(1024);
    machine.set_direct(None);
    assert_eq!(file.make_direct().unwrap(), None);
    file.write_at(b"any", 1001).unwrap();
}

#[test]
fn what_is_written_directly_waits_for_a_flush() {
    let (machine, _directory, file) = with_file(1024);
    file.make_direct().unwrap();
    file.write_at(&blocks(1024, b'n'), 0).unwrap();
    assert_eq!(sector_outcomes(&machine, "db").len(), 4);
    file.flush().unwrap();
    assert_eq!(sector_outcomes(&machine, "db"), ["nn"]);
}

#[test]
fn a_durable_write_makes_its_own_sectors_durable() {
    let (machine, _directory, file) = with_file(2048);
    file.write_at(&sector(b'a'), 0).unwrap();
    file.write_durable_at(&[b'n'; 1024], 512).unwrap();
    file.write_at(&sector(b'z'), 1536).unwrap();
    let durable = char::from(0xdd);
    let expected = ["?nn?", "ann?", "?nnz", "annz"];
    let mut expected = expected.map(|text| text.replace('?', &durable.to_string())).to_vec();
    expected.sort();
    assert_eq!(sector_outcomes(&machine, "db"), expected);
    file.flush().unwrap();
    assert_eq!(sector_outcomes(&machine, "db"), ["annz"]);
}

#[test]
fn a_durable_write_keeps_a_length_that_has_it() {
    let (machine, _directory, file) = with_file(0);
    file.set_len(100).unwrap();
    file.write_durable_at(&sector(b'n'), 512).unwrap();
    file.set_len(2048).unwrap();
    assert_eq!(sector_outcomes(&machine, "db"), ["\0n", "\0n\0\0"]);
    file.set_len(512).unwrap();
    // Cut off; and written again, where no shorter length may come back.
    file.write_durable_at(&sector(b'm'), 512).unwrap();
    let outcomes = sector_outcomes(&machine, "db");
    assert_eq!(outcomes, ["\0m", "\0m\0\0"]);
    file.flush().unwrap();
    assert_eq!(sector_outcomes(&machine, "db"), ["\0m"]);
}

#[test]
fn the_power_may_go_within_a_durable_write() {
    let (machine, _directory, file) = with_file(1024);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let watcher = Arc::clone(&seen);
    machine.watch(move |machine, operation| {
        let outcomes = sector_outcomes(machine, "db").len();
        watcher.lock().unwrap().push((operation.kind, outcomes));
    });
    file.write_durable_at(&[b'n'; 1024], 0).unwrap();
    let expected = [(OperationKind::Write, 1), (OperationKind::WriteDurable, 4)];
    assert_eq!(*seen.lock().unwrap(), expected);
    assert_eq!(sector_outcomes(&machine, "db"), ["nn"]);
    assert!(machine.crash_points().contains(&(machine.steps() - 1)));
}

#[test]
fn a_durable_write_that_fails_may_leave_any_part() {
    for effect in [Effect::LostFlush(libc::EIO), Effect::Error(libc::EIO)] {
        let (machine, _directory, file) = with_file(512);
        file.write_at(&sector(b'a'), 0).unwrap();
        machine.fail(Fault::new(effect).on(OperationKind::WriteDurable));
        file.write_durable_at(&sector(b'n'), 512).unwrap_err();
        let lost = matches!(effect, Effect::LostFlush(_));
        let durable = char::from(0xdd);
        let has = |text: &str| {
            let text = text.replace('?', &durable.to_string());
            sector_outcomes(&machine, "db").contains(&text)
        };
        assert!(has("?") && has("?\0") && has("?n") && has("an"), "{effect:?}");
        // Its own bytes are lost to a later flush, those of others are not.
        file.flush().unwrap();
        assert_eq!(has("a") && has("a\0"), lost, "{effect:?}");
        assert!(has("an") && !has("?n"), "{effect:?}");
        file.write_durable_at(&sector(b'n'), 512).unwrap();
        assert_eq!(sector_outcomes(&machine, "db"), ["an"]);
    }
}

#[test]
fn a_short_durable_write_is_not_durable() {
    let (machine, _directory, file) = with_file(1024);
    machine.fail(Fault::new(Effect::ShortWrite(512, libc::ENOSPC)).on(OperationKind::Write));
    file.write_durable_at(&[b'n'; 1024], 0).unwrap_err();
    assert_eq!(sector_outcomes(&machine, "db").len(), 2);
    assert_eq!(&machine.file_view("db").unwrap()[511..513], b"n\xdd");
}

#[test]
fn initialized_blocks_are_zeros_in_any_part_until_a_flush() {
    let (machine, _directory, file) = with_file(1024);
    file.initialize(512..1536).unwrap();
    let durable = char::from(0xdd);
    let expected = ["??", "?\0", "??\0", "?\0\0"];
    let mut expected = expected.map(|text| text.replace('?', &durable.to_string())).to_vec();
    expected.sort();
    assert_eq!(sector_outcomes(&machine, "db"), expected);
    file.flush().unwrap();
    let text = sectors(&machine.power_loss(&mut Nothing).file_view("db").unwrap());
    assert_eq!((text, machine.survivor_count()), (format!("{durable}\0\0"), 1));
}

#[test]
fn initializing_writes_again_what_a_failed_flush_lost() {
    let (machine, _directory, file) = with_file(8192);
    file.write_at(&[b'n'; 4000], 0).unwrap();
    file.write_at(&[0; 8192], 0).unwrap();
    machine.fail(Fault::new(Effect::LostFlush(libc::EIO)).on(OperationKind::Flush));
    file.flush().unwrap_err();
    file.flush().unwrap();
    assert!(machine.survivor_count() > 1);
    file.initialize(0..8192).unwrap();
    file.flush().unwrap();
    assert_eq!(sector_outcomes(&machine, "db"), ["\0".repeat(16)]);
}

#[test]
fn initialized_blocks_have_their_space() {
    let machine = Machine::new(1);
    machine.set_capacity(Some(8 * 4096));
    let directory = root(&machine.process());
    let (log, other) = (open(&directory, "log"), open(&directory, "other"));
    log.initialize(0..6 * 4096).unwrap();
    other.write_at(&[1; 2 * 4096], 0).unwrap();
    assert!(other.write_at(&[1; 4096], 2 * 4096).is_err());
    assert!(log.initialize(6 * 4096..7 * 4096).is_err());
    log.write_at(&[2; 6 * 4096], 0).unwrap();
}

#[test]
fn the_new_calls_fail_as_they_are_told() {
    let (machine, _directory, file) = with_file(512);
    for kind in [
        OperationKind::Initialize,
        OperationKind::MakeDirect,
        OperationKind::WriteDurable,
        OperationKind::SharedRegion,
    ] {
        machine.fail(Fault::new(Effect::Error(libc::EDQUOT)).on(kind));
        let results = [
            file.initialize(0..512),
            file.make_direct().map(drop),
            file.write_durable_at(&blocks(512, 1), 0),
            file.shared_region(0, 8).map(drop),
        ];
        let failed = results.iter().filter(|result| result.is_err());
        assert_eq!(failed.count(), 1, "{kind}: {results:?}");
        assert!(machine.journal().to_string().contains(&format!("{kind} inode")));
    }
    assert_eq!(machine.power_loss(&mut Everything).file_view("db").unwrap(), [1; 512]);
}
