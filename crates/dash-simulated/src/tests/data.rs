//! Rules 2, 3 and 5: sectors, flushes, lengths.

use dash_storage::{Directory as _, File as _};

use super::{open, root, sector, sector_outcomes, sectors, with_file};
use crate::{Everything, Machine, Nothing};

#[test]
fn unflushed_sectors_survive_in_any_subset() {
    let (machine, _directory, file) = with_file(1536);
    file.write_at(&sector(b'a'), 0).unwrap();
    file.write_at(&sector(b'b'), 1024).unwrap();
    let durable = char::from(0xdd);
    let expected = ["a?b", "a??", "??b", "???"].map(|text| text.replace('?', &durable.to_string()));
    let mut expected = expected.to_vec();
    expected.sort();
    assert_eq!(sector_outcomes(&machine, "db"), expected);
}

#[test]
fn any_value_since_the_flush_may_survive() {
    let (machine, _directory, file) = with_file(0);
    file.write_at(&sector(b'x'), 0).unwrap();
    file.flush().unwrap();
    for byte in *b"abca" {
        file.write_at(&sector(byte), 0).unwrap();
    }
    assert_eq!(sector_outcomes(&machine, "db"), ["a", "b", "c", "x"]);
    assert_eq!(sectors(&machine.power_loss(&mut Everything).file_view("db").unwrap()), "a");
    file.write_at(&sector(b'x'), 0).unwrap();
    assert_eq!(sectors(&machine.power_loss(&mut Everything).file_view("db").unwrap()), "x");
    assert_eq!(sector_outcomes(&machine, "db"), ["a", "b", "c", "x"]);
    file.flush().unwrap();
    assert_eq!(sector_outcomes(&machine, "db"), ["x"]);
}

#[test]
fn writing_what_is_there_changes_nothing() {
    let (machine, _directory, file) = with_file(4096);
    let before = machine.state_hash();
    file.write_at(&[0xdd; 4096], 0).unwrap();
    assert_eq!(machine.survivor_count(), 1);
    assert_eq!(machine.state_hash(), before);
}

#[test]
fn a_write_within_a_sector_is_all_or_nothing() {
    let (machine, _directory, file) = with_file(512);
    file.write_at(b"abc", 100).unwrap();
    assert_eq!(machine.survivor_count(), 2);
    let all = machine.power_loss(&mut Everything).file_view("db").unwrap();
    assert_eq!((&all[98..105], all.len()), (&b"\xdd\xddabc\xdd\xdd"[..], 512));
}

#[test]
fn a_cut_may_survive_as_a_whole_or_not_at_all() {
    let (machine, _directory, file) = with_file(1024);
    machine.set_whole_cuts(true);
    file.write_at(&sector(b'a'), 0).unwrap();
    file.set_len(0).unwrap();
    let (old, cut) = (char::from(0xdd).to_string().repeat(2), String::new());
    let before = [old.clone(), old.replacen(char::from(0xdd), "a", 1)];
    let mut expected = before.to_vec();
    expected.push(cut.clone());
    expected.sort();
    assert_eq!(sector_outcomes(&machine, "db"), expected);
    // What is written after it is on a file that was cut.
    file.write_at(&sector(b'b'), 0).unwrap();
    expected.extend(["b", "\0"].map(str::to_owned));
    expected.sort();
    assert_eq!(sector_outcomes(&machine, "db"), expected);
    file.flush().unwrap();
    assert_eq!(sector_outcomes(&machine, "db"), ["b"]);
}

#[test]
fn writes_tear_in_pages_if_told_so() {
    let machine = Machine::new(1);
    machine.set_tearing_unit(4096);
    let directory = root(&machine.process());
    let file = open(&directory, "db");
    directory.flush().unwrap();
    file.set_len(8192).unwrap();
    file.flush().unwrap();
    file.write_at(&[b'a'; 8192], 0).unwrap();
    assert_eq!(machine.survivor_count(), 4);
}

#[test]
fn flush_covers_one_file_only() {
    let (machine, directory, file) = with_file(512);
    let other = open(&directory, "other");
    directory.flush().unwrap();
    other.write_at(&sector(b'o'), 0).unwrap();
    file.write_at(&sector(b'n'), 0).unwrap();
    file.flush().unwrap();
    assert_eq!(sector_outcomes(&machine, "db"), ["n"]);
    assert_eq!(sector_outcomes(&machine, "other"), ["", "\0", "o"]);
}

#[test]
fn any_length_since_the_flush_may_survive() {
    let (machine, _directory, file) = with_file(512);
    file.set_len(1024).unwrap();
    file.set_len(2048).unwrap();
    file.set_len(0).unwrap();
    let durable = char::from(0xdd);
    let expected = ["", "\0", "\0\0", "\0\0\0\0", "?", "?\0", "?\0\0\0"];
    let mut expected = expected.map(|text| text.replace('?', &durable.to_string())).to_vec();
    expected.sort();
    assert_eq!(sector_outcomes(&machine, "db"), expected);
    assert!(machine.power_loss(&mut Everything).file_view("db").unwrap().is_empty());
    assert_eq!(machine.power_loss(&mut Nothing).file_view("db").unwrap().len(), 512);
    file.flush().unwrap();
    assert_eq!(sector_outcomes(&machine, "db"), [""]);
}

#[test]
fn a_new_length_may_survive_without_what_was_written() {
    let (machine, _directory, file) = with_file(0);
    file.write_at(&sector(b'a'), 0).unwrap();
    assert_eq!(sector_outcomes(&machine, "db"), ["", "\0", "a"]);
}

#[test]
fn what_was_cut_does_not_come_back() {
    let (machine, _directory, file) = with_file(1536);
    file.set_len(700).unwrap();
    file.set_len(1536).unwrap();
    let mut content = vec![1; 2000];
    assert_eq!(file.read_at(&mut content, 0).unwrap(), 1536);
    assert_eq!((content[699], content[700], content[1535]), (0xdd, 0, 0));
    file.flush().unwrap();
    assert_eq!(machine.power_loss(&mut Nothing).file_view("db").unwrap(), content[..1536]);
}

#[test]
fn after_a_power_loss_nothing_is_behind_the_end() {
    let (machine, _directory, file) = with_file(4096);
    file.set_len(1000).unwrap();
    file.flush().unwrap();
    file.write_at(&[b'n'; 3000], 1000).unwrap();
    let mut short = crate::Replay::new(vec![0, 1]);
    let machine = machine.power_loss(&mut short);
    assert_eq!(machine.file_view("db").unwrap().len(), 1000);
    let file = open(&root(&machine.process()), "db");
    file.set_len(4000).unwrap();
    let content = machine.file_view("db").unwrap();
    assert!(content[..1000].iter().all(|&byte| byte == 0xdd));
    assert!(content[1000..].iter().all(|&byte| byte == 0));
}

#[test]
fn many_small_writes_read_back_and_flush_as_they_were_written() {
    let (machine, _directory, file) = with_file(10_000);
    let mut expected = vec![0xdd; 10_000];
    for step in 0..500_usize {
        let (at, len) = (step * 97 % 9_000, step * 31 % 1_000);
        let byte = step.to_le_bytes()[0];
        expected[at..at + len].fill(byte);
        file.write_at(&vec![byte; len], at as u64).unwrap();
        if step % 50 == 49 {
            assert_eq!(machine.file_view("db").unwrap(), expected);
            assert_eq!(machine.power_loss(&mut Everything).file_view("db").unwrap(), expected);
            file.flush().unwrap();
            assert_eq!(machine.power_loss(&mut Nothing).file_view("db").unwrap(), expected);
        }
    }
}
