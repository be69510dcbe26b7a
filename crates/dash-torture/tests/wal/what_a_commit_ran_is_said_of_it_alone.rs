//! WAL-23, WAL-24: what commits say of themselves in the log is each one's own, and costs nothing.

use std::ops::Range;
use std::path::Path;

use dash_simulated::OperationKind;
use dash_wal::Known;
use dash_wal::history::{Commit, History};

use crate::common::{DB, Db, Tale};

/// The commits that the log has, as far as they are not overwritten.
fn logged(tale: &Tale) -> Vec<Commit> {
    let history = History::read(&tale.machine.process(), Path::new(DB)).unwrap();
    history.unwrap().commits_behind(0).unwrap()
}

/// By whom, as far as that is said: the number is that of the bytes which were said.
fn by(commits: &[Commit]) -> Vec<Option<u64>> {
    let by = |commit: &Commit| match &commit.known {
        Known::Said(said) => said.connection.filter(|it| said.statements.len() as u64 == *it),
        _ => None,
    };
    commits.iter().map(by).collect()
}

fn last<T: Clone>(commits: &[T], count: usize) -> Vec<T> {
    commits[commits.len().checked_sub(count).unwrap()..].to_vec()
}

fn says(db: &Db, bytes: usize) {
    db.ok(&format!("PRAGMA says={bytes}"));
}

/// Every write and flush of every file.
fn calls(tale: &Tale) -> Vec<(OperationKind, u64, Option<Range<u64>>)> {
    let entries = tale.machine.journal().entries.into_iter();
    let of = entries.map(|it| (it.operation.kind, it.operation.inode, it.operation.range));
    let changes = of.filter(|(kind, ..)| {
        matches!(kind, OperationKind::Write | OperationKind::WriteDurable | OperationKind::Flush)
    });
    changes.collect()
}

#[test]
pub(crate) fn at_the_cost_of_nothing() {
    let all = [0, 40, 300, 5000].map(|bytes| {
        let (tale, db) = Tale::begun();
        says(&db, bytes);
        for _ in 0..30 {
            db.put();
        }
        let commits = logged(&tale);
        let commits = last(&commits, 6);
        match bytes {
            0 => assert!(commits.iter().all(|commit| commit.known == Known::Nothing)),
            // As far as there was room in the last block, which is 512 bytes.
            40 => assert!(by(&commits).iter().any(Option::is_some)),
            300 => {}
            _ => assert!(commits.iter().all(|commit| commit.known == Known::NoRoom)),
        }
        tale.survives_all();
        calls(&tale)
    });
    assert!(all[0].len() > 100);
    for with in &all[1..] {
        assert!(all[0] == *with, "what is said changes what is written");
    }
}

#[test]
pub(crate) fn where_one_writes_the_record_of_several() {
    let (tale, db) = Tale::begun();
    let other = db.another();
    other.synchronous("NORMAL");
    says(&other, 11);
    other.put();
    // One of them is of another process, whose memory nobody sees.
    let stranger = tale.open();
    stranger.synchronous("NORMAL");
    says(&stranger, 13);
    stranger.put();
    says(&db, 14);
    db.put();
    let commits = last(&logged(&tale), 3);
    assert!(
        commits.iter().all(|commit| (commit.record, commit.shared_by) == (commits[0].record, 3))
    );
    assert_eq!(by(&commits), [Some(11), None, Some(14)]);
    assert_eq!(commits[1].known, Known::Nothing);
    // What it had to say is in no later record.
    stranger.synchronous("FULL");
    says(&stranger, 0);
    stranger.put();
    assert_eq!(by(&last(&logged(&tale), 1)), [None]);
    tale.survives_all();
}

#[test]
pub(crate) fn and_nothing_of_what_was_rolled_back() {
    let (tale, db) = Tale::begun();
    let other = db.another();
    says(&db, 17);
    db.fails_late();
    other.scribble(1).unwrap();
    other.ok("COMMIT");
    assert_eq!(by(&last(&logged(&tale), 1)), [None]);
}
