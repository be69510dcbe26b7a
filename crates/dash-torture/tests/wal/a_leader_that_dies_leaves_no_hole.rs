//! WAL-7: whoever writes a record may die before it is flushed. Whoever comes next finds the log as
//! it was before, and what it writes does not stand behind a gap.

use dash_simulated::OperationKind;

use crate::common::{Fate, Left, Tale};

/// One process dies at the log's write or flush, others go on, and only their records are there.
fn dies_at(kind: OperationKind, after: bool) {
    let (tale, db) = Tale::begun();
    for _ in 0..3 {
        let log = tale.inode("-dashlog");
        let other = tale.open();
        let died = other.dies(
            after,
            move |operation| operation.kind == kind && operation.inode == log,
            |other| assert!(other.try_put().is_err()),
        );
        assert!(died);
        for _ in 0..3 {
            db.put();
            tale.survives_all();
        }
    }
}

#[test]
pub(crate) fn before_it_wrote() {
    dies_at(OperationKind::Write, false);
}

#[test]
pub(crate) fn after_it_wrote() {
    dies_at(OperationKind::Write, true);
    dies_at(OperationKind::Flush, false);
}

#[test]
pub(crate) fn after_it_flushed() {
    dies_at(OperationKind::Flush, true);
}

/// The record that was torn is the last one that the ring's end has room for.
#[test]
pub(crate) fn wherever_in_the_ring() {
    for commits in 0..20 {
        let (tale, db) = Tale::begun();
        for _ in 0..commits {
            db.put();
        }
        let log = tale.inode("-dashlog");
        let other = tale.open();
        other.dies(
            true,
            move |operation| operation.kind == OperationKind::Write && operation.inode == log,
            |other| drop(other.try_put()),
        );
        for _ in 0..2 {
            db.put();
            let mut fate = Fate { log: Left::Newest, ..Fate::nothing() }.of(&tale.machine);
            tale.survives(&tale.machine.power_loss(&mut fate)).unwrap();
            tale.survives(&tale.machine.power_loss(&mut Fate::nothing())).unwrap();
        }
        // And a generation after it.
        db.restart();
        tale.survives_all();
    }
}
