//! The plain road, on the real system: commit, read, reopen, two connections; and what is left at
//! rest (SHADOW-10).

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking; its numbers are small"
)]

use super::common;
use super::common::sim::start;
use super::common::{Content, PAGE, commit, open, read, write};
use dash_shadow::{Connection, LockLevel, OpenOptions};
use dash_simulated::{Machine, OperationKind};
use dash_storage::real::Real;

#[test]
fn commits_are_read_back_by_this_and_other_connections_and_after_reopening() {
    let (_folder, path) = common::real();
    let path = path.to_str().unwrap();
    let mut a = open(&Real, path).unwrap();
    let mut b = open(&Real, path).unwrap();
    assert_eq!(read(&mut a).unwrap(), []);
    let mut content = vec![];
    for i in 0..40u8 {
        if i % 3 == 0 {
            content.push(i);
        }
        let at = usize::from(i) % content.len();
        content[at] = i;
        let (writer, reader) = if i % 2 == 0 { (&mut a, &mut b) } else { (&mut b, &mut a) };
        commit(writer, &content).unwrap();
        assert_eq!(read(reader).unwrap(), content);
        assert_eq!(read(writer).unwrap(), content);
    }
    content.truncate(4);
    commit(&mut a, &content).unwrap();
    assert_eq!(read(&mut b).unwrap(), content);
    println!("{:?}", a.statistics());
    a.close().unwrap();
    b.close().unwrap();
    let mut names: Vec<_> = std::fs::read_dir(std::path::Path::new(path).parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["app.db", "app.db-shadow"]);
    let plain = std::fs::read(path).unwrap();
    for (i, &value) in content.iter().enumerate() {
        assert_eq!(plain[(i + 1) * common::PAGE - 1], value);
    }
    let mut c = open(&Real, path).unwrap();
    assert_eq!(read(&mut c).unwrap(), content);
    content[2] = 99;
    commit(&mut c, &content).unwrap();
    assert_eq!(c.statistics().rebuilds, 0);
    c.close().unwrap();
}

/// Aggregate update: who made the last commit still has its pages.
#[test]
fn what_is_carried_is_read_by_others_only() {
    let machine = Machine::new(1);
    let [(_p, mut a), (_q, mut b)] = [(); 2].map(|()| start(&machine, &OpenOptions::default()));
    let mut content: Content = (0..64).collect();
    let mut reads = |connection: &mut Connection<_>, place: usize| {
        content[place] += 100;
        content[0] ^= 1;
        write(connection, &content).unwrap();
        let before = machine.journal().entries.len();
        connection.prepare(None).unwrap();
        let read: u64 = machine.journal().entries[before..]
            .iter()
            .filter(|entry| entry.operation.kind == OperationKind::Read)
            .filter_map(|entry| entry.operation.range.clone())
            .map(|range| range.end - range.start)
            .sum();
        connection.flush().unwrap();
        connection.publish().unwrap();
        connection.unlock(LockLevel::None).unwrap();
        read
    };
    for place in [10, 20, 30] {
        reads(&mut a, place);
    }
    assert_eq!(reads(&mut a, 50), 0);
    assert!(reads(&mut b, 40) >= PAGE as u64, "it can't know page 51");
    assert!(reads(&mut a, 30) >= PAGE as u64, "nor this one page 41");
    let seen = [&mut a, &mut b].map(|connection| read(connection).unwrap());
    assert_eq!(seen, [content.clone(), content]);
}
