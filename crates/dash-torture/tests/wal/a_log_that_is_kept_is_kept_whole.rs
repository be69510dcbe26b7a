//! WAL-16: a person has the log kept whose `-wal` was removed by hand; and that is cut off at any
//! call, by a kill or a power loss.

use std::ffi::OsStr;
use std::path::Path;

use dash_simulated::OperationKind;
use dash_storage::{Directory, File, OpenMode, Storage};
use dash_wal::{Choice, recover};

use crate::a_log_without_its_wal_is_void::session;
use crate::common::{DB, Tale, losses, remove};

/// All of it is there, or it is refused, and a person can have the log kept.
fn is_kept(tale: &Tale, when: &str) {
    let db = tale.try_open().unwrap_or_else(|why| {
        assert!(why.contains("app.db-wal is missing"), "{when}: {why}");
        recover(&tale.machine.process(), Path::new(DB), Choice::Keep).unwrap();
        tale.open()
    });
    assert_eq!(db.content(), tale.acknowledged(), "{when}");
    assert!(!tale.machine.exists("/app.db-dash-wal"), "{when}");
}

/// Until `-wal` is whole and durable it is missing, and the log is as it was.
#[test]
pub(crate) fn wherever_that_is_cut_off() {
    let kinds = [
        OperationKind::Open,
        OperationKind::Write,
        OperationKind::Flush,
        OperationKind::FlushDirectory,
        OperationKind::Rename,
        OperationKind::Unlink,
    ];
    for at in 0..80_usize {
        let (tale, db) = session();
        db.kill();
        remove(&tale.machine, "-wal");
        let (keeper, mut left) = (tale.machine.process(), at);
        let victim = keeper.clone();
        tale.machine.watch(move |machine, operation| {
            if kinds.contains(&operation.kind) {
                if left == 0 {
                    machine.kill(&victim);
                }
                left = left.wrapping_sub(1);
            }
        });
        let whole = recover(&keeper, Path::new(DB), Choice::Keep).is_ok();
        tale.machine.watch(|_, _| {});
        if whole {
            assert!(at > 20, "{at}");
            return;
        }
        for (lost, machine) in losses(&tale.machine, 3) {
            let tale = tale.after(machine);
            is_kept(&tale, &format!("{at}, power lost, {lost}"));
        }
        is_kept(&tale, &format!("{at}, killed"));
    }
    panic!("it never came to its end");
}

/// Not beside a stock program that goes on with the one which was removed: what it closes with is
/// all that was there.
#[test]
pub(crate) fn but_not_beside_who_has_the_removed_one() {
    let (tale, db) = session();
    let stock = tale.open_stock();
    db.kill();
    remove(&tale.machine, "-wal");
    tale.is_refused("has a lock on app.db since before");
    for choice in [Choice::Keep, Choice::Discard] {
        let refused = recover(&tale.machine.process(), Path::new(DB), choice).unwrap_err();
        assert!(refused.to_string().contains("end it first"), "{refused}");
    }
    stock.db.close().unwrap();
    assert_eq!(tale.open().content(), tale.acknowledged());
}

/// It can be kept where `-wal` was emptied, and a stock survivor that went on has copied the hole.
#[test]
pub(crate) fn where_a_survivor_copied_a_hole() {
    let (tale, db) = Tale::begun();
    db.ok("CREATE TABLE other(x); CREATE TABLE new(x); INSERT INTO new VALUES ('a')");
    db.checkpoint("TRUNCATE");
    ["b", "c"].into_iter().for_each(|to| db.ok(&format!("INSERT INTO new VALUES ('{to}')")));
    let stock = tale.open_stock();
    db.kill();
    let folder = tale.machine.process().open_directory(Path::new("/")).unwrap();
    folder.open(OsStr::new("app.db-wal"), OpenMode::ReadWrite).unwrap().set_len(0).unwrap();
    stock
        .db
        .execute_batch("INSERT INTO other VALUES (1); PRAGMA wal_checkpoint(TRUNCATE)")
        .unwrap();
    tale.machine.kill(&stock.process);
    tale.is_refused("app.db-wal is missing");
    recover(&tale.machine.process(), Path::new(DB), Choice::Keep).unwrap();
    assert_eq!(tale.open().value::<i64>("SELECT count(*) FROM new").unwrap(), 3);
}
