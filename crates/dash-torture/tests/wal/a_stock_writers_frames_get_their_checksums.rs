//! WAL-52: an older SQLite that writes along commits a frame without a checksum, and leaves a wrong
//! one in the wal-index. Nothing of dash is lost behind it.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex};

use dash_simulated::OperationKind;
use dash_storage::{File as _, OpenMode, SharedMemory, Storage};

use crate::common::{PAGE, Tale};

#[test]
pub(crate) fn from_the_next_writer() {
    for rests in [false, true] {
        let (tale, db) = Tale::begun_beside();
        let stock = tale.open_stock();
        if rests {
            db.ok("PRAGMA rests");
        }
        tale.put_stock_at(&stock, "NORMAL").unwrap();
        forget_sums(&tale);
        // The first attempt finds another header than it has read, and sets it right.
        let is_late = db.begin().is_err_and(|error| error.contains("locked"));
        drop(db.run("ROLLBACK"));
        assert!(is_late);
        tale.survives_all();
        db.put();
        tale.survives_all();
        tale.survives(&tale.machine.killed()).unwrap();
    }
}

/// A connection that makes others' commits durable goes as far as there are checksums, and a
/// checkpoint gives frames that lack them theirs first.
#[test]
pub(crate) fn before_they_are_logged_or_copied() {
    for checkpoints in [false, true] {
        let (tale, db) = Tale::begun_beside();
        let (stock, other) = (tale.open_stock(), tale.open());
        db.begin().unwrap();
        let (seen, sums) = (tale.clone(), Arc::new(Mutex::new(Some(stock))));
        // As soon as WRITER is given up, before the record is written.
        tale.machine.watch(move |_, operation| {
            if operation.kind == OperationKind::Lock && operation.inode == seen.inode("-dash") {
                let Some(stock) = sums.lock().unwrap().take() else { return };
                if seen.put_stock_at(&stock, "NORMAL").is_ok() {
                    forget_sums(&seen);
                } else {
                    *sums.lock().unwrap() = Some(stock);
                }
            }
        });
        db.commit().unwrap();
        tale.machine.watch(|_, _| {});
        if checkpoints {
            drop(other.run("PRAGMA wal_checkpoint(PASSIVE)"));
        }
        tale.survives_all();
        drop(other.begin().and_then(|()| other.run("ROLLBACK")));
        drop(other.run("ROLLBACK"));
        other.put();
        tale.survives_all();
        db.put();
        tale.survives_all();
    }
}

/// What `older.rs` does with the frames of a connection of dash, to the last frame of `-wal`.
fn forget_sums(tale: &Tale) {
    const HEADER: usize = 12;
    let process = tale.machine.process();
    let folder = process.open_directory("/".as_ref()).unwrap();
    let open = |name: &str| {
        dash_storage::Directory::open(&folder, name.as_ref(), OpenMode::ReadWrite).unwrap()
    };
    let (wal, index) = (open("app.db-wal"), open("app.db-shm").shared_region(0, 4096).unwrap());
    // SAFETY: a region has 4,096 words of eight bytes, and is shared memory to all who have it.
    #[expect(unsafe_code, reason = "the index is memory that processes share")]
    let word = |at: usize| unsafe { AtomicU32::from_ptr(index.start().cast::<u32>().add(at)) };
    let mut header: Vec<u32> = (0..HEADER).map(|at| word(at).load(SeqCst)).collect();
    let last = u64::from(header[4]);
    wal.write_at(&[0; 16], 32 + (last - 1) * (24 + PAGE as u64) + 8).unwrap();
    header[6] ^= 0x5AA5_0FF0;
    let (mut one, mut two) = (0_u32, 0_u32);
    for pair in header[..10].chunks_exact(2) {
        one = one.wrapping_add(pair[0]).wrapping_add(two);
        two = two.wrapping_add(pair[1]).wrapping_add(one);
    }
    header[10..].copy_from_slice(&[one, two]);
    for copy in [1, 0] {
        for (at, value) in header.iter().enumerate() {
            word(copy * HEADER + at).store(*value, SeqCst);
        }
    }
}
