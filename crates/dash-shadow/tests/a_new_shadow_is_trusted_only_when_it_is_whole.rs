//! A3, A5: a shadow that is being made, and readers of the one before.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking; its numbers are small"
)]

use super::common;
use std::path::Path;
use std::sync::{Arc, Mutex};

use super::common::sim::{Without, start, tiny};
use super::common::{Content, PAGE, commit, read, read_locked};
use dash_shadow::{Error, LockLevel, OpenOptions, Protocol};
use dash_simulated::{Effect, Fault, Machine, OperationKind};
use dash_storage::{Directory, Storage};

/// A3: the power goes while the flush of a new, large shadow is under way.
#[test]
fn a3_a_large_shadow_that_was_cut_while_it_was_made() {
    let machine = Machine::new(1);
    let pages = 3 * 1024 + 64; // 3 MiB and a bit; the real limit is `intent_all`, 64 MiB
    let mut content: Content = (0..pages).map(|i| (i % 199) as u8 + 1).collect();
    {
        let process = machine.process();
        let root = process.open_directory(Path::new("/")).unwrap();
        use dash_storage::{File, OpenMode};
        let file = root.open("app.db".as_ref(), OpenMode::Create { permissions: 0o644 }).unwrap();
        for (i, &value) in content.iter().enumerate() {
            file.write_at(&common::page(i + 1, value, pages, 7), (i * PAGE) as u64).unwrap();
        }
        file.flush().unwrap();
        root.flush().unwrap();
    }
    let cut: Arc<Mutex<Option<Machine>>> = Arc::default();
    let (_p, mut a) = start(&machine, &tiny());
    let put = cut.clone();
    machine.watch(move |machine, operation| {
        let root = machine.process().open_directory(Path::new("/")).unwrap();
        let shadow = root.metadata("app.db-shadow".as_ref()).unwrap();
        if operation.kind == OperationKind::Flush
            && shadow.is_some_and(|shadow| shadow.id.inode == operation.inode)
        {
            let mut cut = put.lock().unwrap();
            if cut.is_none() {
                let middle = 1 << 20..2 << 20;
                *cut = Some(machine.power_loss(&mut Without(operation.inode, middle)));
            }
        }
    });
    let mut next = content.clone();
    next[0] = 9;
    commit(&mut a, &next).unwrap();
    let after = cut.lock().unwrap().take().unwrap();
    let (_q, mut b) = start(&after, &tiny());
    assert!(read(&mut b).unwrap() == content);
    content[0] = 33;
    commit(&mut b, &content).unwrap();
    assert!(read(&mut b).unwrap() == content, "pages of the database are gone");
}

/// A5: a reader keeps the file it pinned; what is put aside of the new shadow is not for it.
#[test]
fn a5_a_reader_whose_copy_was_made_anew() {
    let machine = Machine::new(1);
    let (p, mut a) = start(&machine, &tiny());
    let (_q, mut reader) = start(&machine, &tiny());
    commit(&mut a, &[1, 1, 1, 1]).unwrap();
    commit(&mut a, &[2, 2, 2, 2]).unwrap();
    reader.lock(LockLevel::Shared).unwrap();
    commit(&mut a, &[3, 3, 3, 3]).unwrap();
    // Somebody removes the shadow; the next writer makes another one.
    p.open_directory(Path::new("/")).unwrap().unlink("app.db-shadow".as_ref()).unwrap();
    // The new one is made once nobody reads the file it takes the place of.
    assert!(matches!(commit(&mut a, &[4, 4, 3, 3]), Err(Error::Busy)));
    assert_eq!(read_locked(&mut reader).unwrap(), [2, 2, 2, 2]);
    reader.unlock(LockLevel::None).unwrap();
    commit(&mut a, &[4, 4, 3, 3]).unwrap();
    assert_eq!(read(&mut reader).unwrap(), [4, 4, 3, 3]);
}

/// A5 without anybody removing anything: the flush of the paper's version reset fails.
#[test]
fn a5_a_reader_whose_copy_is_written_anew_after_a_failed_version_reset() {
    let machine = Machine::new(1);
    let options = OpenOptions { protocol: Protocol::Exclusive, ..tiny() };
    let (_p, mut a) = start(&machine, &options);
    let (_q, mut reader) = start(&machine, &options);
    commit(&mut a, &[1, 1, 1, 1]).unwrap();
    commit(&mut a, &[2, 2, 2, 2]).unwrap();
    reader.lock(LockLevel::Shared).unwrap();
    let db = {
        let root = machine.process().open_directory(Path::new("/")).unwrap();
        root.metadata("app.db".as_ref()).unwrap().unwrap().id.inode
    };
    machine.fail(Fault::new(Effect::LostFlush(5)).on(OperationKind::Flush).of_inode(db));
    commit(&mut a, &[3, 3, 3, 3]).unwrap();
    machine.stop_failing();
    // It stays the file that it is, as others have it open, and what they read is kept for them.
    commit(&mut a, &[4, 4, 3, 3]).unwrap();
    assert_eq!(read_locked(&mut reader).unwrap(), [2, 2, 2, 2]);
    reader.unlock(LockLevel::None).unwrap();
    assert_eq!(read(&mut reader).unwrap(), [4, 4, 3, 3]);
}
