//! A machine whose processes have all just been killed.

use std::sync::atomic::Ordering::SeqCst;

use dash_storage::{Directory as _, File as _, LockKind, REGION, SharedMemory as _};

use super::{open, outcomes, root, sector, sector_outcomes, with_file};
use crate::{Effect, Fault, Nothing, OperationKind};

#[test]
fn the_cache_and_what_may_be_lost_of_it_stay() {
    let (machine, directory, file) = with_file(512);
    file.write_at(&sector(b'n'), 0).unwrap();
    open(&directory, "new").write_at(b"new", 0).unwrap();
    let killed = machine.killed();
    assert_eq!(killed.state_hash(), machine.state_hash());
    assert_eq!(outcomes(&killed, "db"), outcomes(&machine, "db"));
    let heir = root(&killed.process());
    let left = open(&heir, "db");
    assert_eq!(killed.file_view("new").unwrap(), b"new");
    let (was, is) = (file.metadata().unwrap(), left.metadata().unwrap());
    assert_eq!((is, left.cache_life()), (was, file.cache_life()));
    // The two machines go their own ways.
    left.write_at(&sector(b'h'), 0).unwrap();
    left.flush().unwrap();
    heir.unlink("new".as_ref()).unwrap();
    file.write_at(&sector(b'o'), 0).unwrap();
    assert_eq!(sector_outcomes(&killed, "db"), ["h"]);
    assert_eq!(sector_outcomes(&machine, "db").len(), 3);
    assert!(machine.exists("new") && !killed.exists("new"));
    assert!(file.id() != open(&heir, "another").id());
}

#[test]
fn a_flush_after_it_covers_what_the_dead_wrote() {
    let (machine, _directory, file) = with_file(512);
    file.write_at(&sector(b'n'), 0).unwrap();
    let killed = machine.killed();
    open(&root(&killed.process()), "db").flush().unwrap();
    assert_eq!(sector_outcomes(&killed, "db"), ["n"]);
    // Nor does what a flush had lost come back by it.
    machine.fail(Fault::new(Effect::LostFlush(libc::EIO)).on(OperationKind::Flush));
    file.flush().unwrap_err();
    let killed = machine.killed();
    open(&root(&killed.process()), "db").flush().unwrap();
    assert_eq!(sector_outcomes(&killed, "db").len(), 2);
}

#[test]
fn locks_descriptors_and_files_without_a_name_are_gone() {
    let (machine, directory, file) = with_file(512);
    let stock = machine.open_stock("db").unwrap();
    assert!(stock.try_lock_shared());
    assert!(file.try_lock(0..10, LockKind::Exclusive).unwrap());
    let unnamed = open(&directory, "unnamed");
    unnamed.write_at(&[1; 4096], 0).unwrap();
    machine.set_capacity(Some(2 * 4096));
    assert!(file.write_at(&[1; 8192], 0).is_err());
    directory.unlink("unnamed".as_ref()).unwrap();
    directory.flush().unwrap();
    let killed = machine.killed();
    let heir = open(&root(&killed.process()), "db");
    assert!(!heir.open_elsewhere().unwrap());
    assert!(heir.try_lock(0..u64::MAX, LockKind::Exclusive).unwrap());
    heir.write_at(&[1; 8192], 0).unwrap();
    // The first machine has it all still.
    assert_eq!(unnamed.metadata().unwrap().len, 4096);
    assert_eq!(stock.read_all().len(), 512);
    assert_eq!(file.lock_conflict(0x4000_0002..0x4000_0003, LockKind::Exclusive).unwrap(), Some(2));
}

#[test]
fn a_name_that_may_come_back_keeps_its_file() {
    let (machine, directory, file) = with_file(512);
    directory.unlink("db".as_ref()).unwrap();
    drop(file);
    let killed = machine.killed();
    assert!(!killed.exists("db"));
    assert_eq!(killed.power_loss(&mut Nothing).file_view("db").unwrap(), [0xdd; 512]);
}

#[test]
fn shared_memory_is_there_and_out_of_reach_of_the_dead() {
    let (machine, directory, _file) = with_file(0);
    let theirs = open(&directory, "shm").shared_region(REGION, 4096).unwrap();
    theirs.word(4095).store(7, SeqCst);
    let killed = machine.killed();
    theirs.word(4095).store(8, SeqCst);
    let ours = open(&root(&killed.process()), "shm").shared_region(REGION, 4096).unwrap();
    assert_eq!(ours.word(4095).load(SeqCst), 7);
    assert_ne!(ours.start(), theirs.start());
    ours.word(0).store(9, SeqCst);
    assert_eq!((theirs.word(0).load(SeqCst), theirs.word(4095).load(SeqCst)), (0, 8));
}

#[test]
fn faults_and_steps_begin_anew_and_numbers_do_not() {
    let (machine, _directory, file) = with_file(0);
    machine.fail(Fault::new(Effect::Error(libc::EIO)).forever());
    assert!(file.metadata().is_err());
    machine.cut_at(machine.steps());
    let killed = machine.killed();
    assert!(killed.is_on() && killed.steps() == 0);
    let process = killed.process();
    let first = dash_storage::Storage::random(&process);
    assert!(root(&process).metadata("db".as_ref()).unwrap().is_some());
    assert_ne!(dash_storage::Storage::random(&process), first);
    let lost = killed.power_loss(&mut Nothing);
    assert_eq!(lost.killed().answers(), lost.answers());
}
