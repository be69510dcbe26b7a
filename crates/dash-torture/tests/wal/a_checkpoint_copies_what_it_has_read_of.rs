//! WAL-47: a checkpoint of SQLite before 3.51.3 reads the header of the wal-index under CKPT, and
//! copies what that says under READ(0). Where a writer begins `-wal` anew between the two, frames
//! of the new generation would count as copied that never were ("WAL-reset bug"). The SQLite of
//! these tests looks again by itself, so here a connection of the engine takes the locks by hand.

use std::path::Path;
use std::sync::Arc;

use dash_simulated::Simulated;
use dash_storage::LockKind::Exclusive;
use dash_wal::{Connection, Error, OpenOptions, Process, Tuning};

use crate::common::{DB, Db, Tale};

/// Slots of the wal-index.
const WRITE: std::ops::Range<usize> = 0..1;
const CKPT: std::ops::Range<usize> = 1..2;
const READ_0: std::ops::Range<usize> = 3..4;

/// A connection that begins a checkpoint beside another one.
fn begun() -> (Tale, Db, Connection<Simulated>) {
    let (tale, db) = Tale::begun();
    let options = OpenOptions { tuning: Tuning::tiny(), ..OpenOptions::default() };
    let (machine, process) = (tale.machine.process(), Arc::new(Process::default()));
    let mut old = Connection::open(&machine, Path::new(DB), &options, &process).unwrap();
    old.map_region(0, 32 << 10, true).unwrap();
    old.index_lock(CKPT, Exclusive).unwrap();
    (tale, db, old)
}

fn copy_all(db: &Db, old: &mut Connection<Simulated>) {
    old.index_unlock(CKPT).unwrap();
    db.ok("PRAGMA wal_checkpoint(PASSIVE)");
    old.index_lock(CKPT, Exclusive).unwrap();
}

#[test]
pub(crate) fn not_where_a_writer_has_begun_anew() {
    let (tale, db, mut old) = begun();
    copy_all(&db, &mut old);
    db.put();
    for _ in 0..2 {
        let taken = old.index_lock(READ_0, Exclusive);
        assert!(matches!(taken, Err(Error::Busy)), "{taken:?}");
    }
    // Nobody is kept out by that, and the next checkpoint knows the new generation.
    old.index_unlock(CKPT).unwrap();
    db.ok("PRAGMA wal_checkpoint(PASSIVE)");
    db.put();
    old.index_lock(CKPT, Exclusive).unwrap();
    old.index_lock(READ_0, Exclusive).unwrap();
    old.index_unlock(READ_0).unwrap();
    old.index_unlock(CKPT).unwrap();
    tale.survives_all();
}

#[test]
pub(crate) fn but_where_commits_were_added() {
    let (tale, db, mut old) = begun();
    db.put();
    old.index_lock(READ_0, Exclusive).unwrap();
    old.index_unlock(READ_0).unwrap();
    old.index_unlock(CKPT).unwrap();
    tale.survives_all();
}

/// SQLite reads the header after it has taken WRITER, where it does.
#[test]
pub(crate) fn and_where_it_keeps_writers_out() {
    let (tale, db, mut old) = begun();
    copy_all(&db, &mut old);
    db.put();
    old.index_lock(WRITE, Exclusive).unwrap();
    old.index_lock(READ_0, Exclusive).unwrap();
    for slots in [READ_0, WRITE, CKPT] {
        old.index_unlock(slots).unwrap();
    }
    tale.survives_all();
}
