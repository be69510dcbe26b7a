//! Rule 4, and every other way an operation can fail.

use dash_storage::{Directory as _, File as _};

use super::{open, root, sector, sector_outcomes, with_file};
use crate::{Effect, Fault, Machine, Nothing, OperationKind};

fn lost_flush() -> Fault {
    Fault::new(Effect::LostFlush(libc::EIO)).on(OperationKind::Flush)
}

#[test]
fn a_failed_flush_is_not_repaired_by_the_next() {
    let (machine, _directory, file) = with_file(0);
    file.write_at(&sector(b'o'), 0).unwrap();
    file.flush().unwrap();
    file.write_at(&sector(b'n'), 0).unwrap();
    machine.fail(lost_flush());
    assert_eq!(file.flush().unwrap_err().raw_os_error(), Some(libc::EIO));
    file.flush().unwrap();
    assert_eq!(machine.file_view("db").unwrap(), sector(b'n'));
    assert_eq!(sector_outcomes(&machine, "db"), ["n", "o"]);
}

#[test]
fn writing_again_and_flushing_repairs_what_a_failed_flush_lost() {
    let (machine, _directory, file) = with_file(1024);
    machine.fail(lost_flush());
    file.write_at(&[b'n'; 1024], 0).unwrap();
    file.flush().unwrap_err();
    file.write_at(&sector(b'n'), 0).unwrap();
    file.flush().unwrap();
    assert_eq!(sector_outcomes(&machine, "db").len(), 2);
    file.write_at(&sector(b'n'), 512).unwrap();
    file.flush().unwrap();
    assert_eq!(sector_outcomes(&machine, "db"), ["nn"]);
}

#[test]
fn a_failed_flush_loses_the_length_too() {
    let (machine, _directory, file) = with_file(0);
    file.set_len(512).unwrap();
    machine.fail(lost_flush());
    file.flush().unwrap_err();
    file.flush().unwrap();
    assert_eq!(sector_outcomes(&machine, "db"), ["", "\0"]);
    file.write_at(&sector(b'n'), 0).unwrap();
    file.flush().unwrap();
    assert_eq!(sector_outcomes(&machine, "db"), ["n"]);
}

#[test]
fn a_plain_error_of_a_flush_leaves_everything_dirty() {
    let (machine, _directory, file) = with_file(512);
    file.write_at(&sector(b'n'), 0).unwrap();
    machine.fail(Fault::new(Effect::Error(libc::EINTR)).on(OperationKind::Flush));
    file.flush().unwrap_err();
    file.flush().unwrap();
    assert_eq!(sector_outcomes(&machine, "db"), ["n"]);
}

#[test]
fn a_failed_directory_flush_makes_nothing_durable() {
    let machine = Machine::new(1);
    let directory = root(&machine.process());
    open(&directory, "a");
    let effect = Effect::LostFlush(libc::EIO);
    machine.fail(Fault::new(effect).on(OperationKind::FlushDirectory));
    directory.flush().unwrap_err();
    assert_eq!(machine.power_loss(&mut Nothing).file_view("a"), None);
}

#[test]
fn the_nth_operation_fails_once_or_for_ever() {
    let (machine, directory, file) = with_file(0);
    machine.fail(Fault::new(Effect::Error(libc::ENOSPC)).on(OperationKind::Write).after(2));
    let results: Vec<bool> = (0..5).map(|_| file.write_at(b"x", 0).is_ok()).collect();
    assert_eq!(results, [true, true, false, true, true]);
    let fault = Fault::new(Effect::Error(libc::EIO)).of_inode(file.id().inode);
    machine.fail(fault.after(1).forever());
    assert!(file.metadata().is_ok());
    assert!(file.metadata().is_err() && file.flush().is_err());
    assert!(directory.metadata("db".as_ref()).is_ok());
    machine.stop_failing();
    assert!(file.metadata().is_ok());
}

#[test]
fn short_reads_and_writes_do_a_part() {
    let (machine, _directory, file) = with_file(10);
    machine.fail(Fault::new(Effect::ShortRead(3)).on(OperationKind::Read));
    machine.fail(Fault::new(Effect::ShortWrite(4, libc::ENOSPC)).on(OperationKind::Write));
    assert_eq!(file.read_at(&mut [0; 8], 0).unwrap(), 3);
    let error = file.write_at(b"abcdefgh", 1).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
    assert_eq!(machine.file_view("db").unwrap(), b"\xddabcd\xdd\xdd\xdd\xdd\xdd");
}
