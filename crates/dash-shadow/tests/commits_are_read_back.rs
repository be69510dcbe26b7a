//! The plain road, on the real system: commit, read, reopen, two connections; and what is left at
//! rest (SHADOW-10).

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking; its numbers are small"
)]

mod common;

use common::{commit, open, read};
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
