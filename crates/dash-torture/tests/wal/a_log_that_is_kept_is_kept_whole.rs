//! WAL-16: a person has the log kept whose `-wal` was removed by hand; and that is cut off at any
//! call, by a kill or a power loss.

use std::path::Path;

use dash_simulated::OperationKind;
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
    assert!(!tale.machine.exists("/app.db-wal-new"), "{when}");
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
