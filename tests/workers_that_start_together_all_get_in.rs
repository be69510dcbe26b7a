//! Workers of a server open a new database at the same moment, and each puts it into WAL mode, as
//! their framework tells them to.

mod suite;

use std::path::Path;
use std::time::Duration;

use dash_testing::random::Random;
use dash_testing::roles::{Role, python};
use suite::peers::{Part, Session};
use suite::steps::Steps;

const WORKERS: usize = 6;
const ROUNDS: usize = 8;

const WORKER: &str = "
say('ready')
sys.stdin.readline()
def said(): return scratch.execute('SELECT dash_last_error()').fetchone()[0]
try:
    db = open(sys.argv[2])
    mode = db.execute('PRAGMA journal_mode=WAL').fetchone()[0]
    db.execute('CREATE TABLE IF NOT EXISTS t(v)')
    for i in range(20): db.execute('INSERT INTO t VALUES (1)')
    say('done', mode)
except sqlite3.Error as error:
    say('done', '%s; %s' % (error, said()))
";

const COUNT: &str =
    "say('rows', open(sys.argv[2]).execute('SELECT count(*) FROM t').fetchone()[0])";

#[test]
fn and_put_it_into_wal_mode() {
    let folder = tempfile::tempdir().expect("a folder");
    for round in 0..ROUNDS {
        let path = folder.path().join(format!("app{round}.db"));
        let argument: [&Path; 1] = [&path];
        let Some(first) = python(WORKER, &argument) else { return };
        let others = (1..WORKERS).filter_map(|_| python(WORKER, &argument));
        let mut workers: Vec<_> = std::iter::once(first)
            .chain(others)
            .map(|mut command| Role::spawn(&mut command))
            .collect();
        for worker in &mut workers {
            worker.hear("ready");
        }
        for worker in &mut workers {
            worker.tell("go");
        }
        for worker in &mut workers {
            let mode = worker.hear("done");
            assert_eq!(mode, "wal", "round {round}");
        }
        let mut count = python(COUNT, &argument).expect("it ran before");
        assert_eq!(Role::spawn(&mut count).hear("rows"), (WORKERS * 20).to_string());
    }
}

/// Opens each database that it is told, and commits.
const COMMITTER: &str = "
for path in sys.stdin:
    said = 'well'
    try:
        db = open(path.rstrip())
        db.execute('CREATE TABLE IF NOT EXISTS t(v)')
        db.execute('INSERT INTO t VALUES (1)')
        db.close()
    except sqlite3.Error as error:
        why = scratch.execute('SELECT dash_last_error()').fetchone()[0]
        said = '%s; %s' % (error, why)
    say('committed', said)
";

/// The first one puts the second copy aside and makes `app.db` anew, as the others may, too.
#[test]
fn and_where_the_database_was_removed_at_rest() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(first) = python(COMMITTER, &[]) else { return };
    let others = (1..4).filter_map(|_| python(COMMITTER, &[]));
    let mut workers: Vec<_> =
        std::iter::once(first).chain(others).map(|mut command| Role::spawn(&mut command)).collect();
    for round in 0..40 {
        let path = folder.path().join(format!("app{round}.db"));
        suite::sql::run(&suite::open(&path), "CREATE TABLE old(v); INSERT INTO old VALUES (1)");
        std::fs::remove_file(&path).expect("it is there");
        for worker in &mut workers {
            worker.tell(&path.display().to_string());
        }
        for worker in &mut workers {
            assert_eq!(worker.hear("committed"), "well", "round {round}");
        }
        let rows: i64 = suite::one(&suite::stock(&path), "SELECT count(*) FROM t");
        assert_eq!(rows, 4, "round {round}");
    }
}

/// Opens each database that it is told again and again for a moment.
const OPENER: &str = "
import time
for path in sys.stdin:
    ends = time.monotonic() + 0.012
    said = 'well'
    while time.monotonic() < ends:
        try:
            open(path.rstrip()).close()
        except sqlite3.Error as error:
            why = scratch.execute('SELECT dash_last_error()').fetchone()[0]
            said = '%s; %s' % (error, why)
    say('opened', said)
";

/// It finds the database empty, then there is a journal, then it is in WAL mode: it joins the
/// others there, and does not wait for them to leave that.
#[test]
fn and_who_opens_it_while_another_worker_does_that_gets_in_too() {
    suite::load();
    let folder = tempfile::tempdir().expect("a folder");
    let Some(first) = python(OPENER, &[]) else { return };
    let second = python(OPENER, &[]).expect("it ran before");
    let mut openers = [first, second].map(|mut command| Role::spawn(&mut command));
    let mut random = Random(1);
    for round in 0..100 {
        let path = folder.path().join(format!("app{round}.db"));
        for opener in &mut openers {
            opener.tell(path.to_str().expect("text"));
        }
        std::thread::sleep(Duration::from_micros(random.below(6000) as u64));
        let db = suite::open(&path);
        db.busy_timeout(Duration::from_secs(30)).expect("sets");
        assert_eq!(suite::one::<String>(&db, "PRAGMA journal_mode=WAL"), "wal", "round {round}");
        db.execute_batch("CREATE TABLE t(x)").expect("commits");
        for opener in &mut openers {
            assert_eq!(opener.hear("opened"), "well", "round {round}");
        }
    }
}

/// What another process leaves in another mode meanwhile, before any of its calls: it is not
/// refused for that, and does not take the database back into the mode which it found at first.
#[test]
fn and_who_opens_it_while_its_mode_changes_opens_it_in_the_new_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let other = folder.path().join("other.db");
    let mut changed = 0;
    for call in (0..).step_by(5) {
        let path = folder.path().join(format!("app{call}.db"));
        let mut leaves = Session::dash(&path, Part::default()).expect("it opens");
        leaves.must("PRAGMA journal_mode=WAL");
        leaves.must("CREATE TABLE t(v)");
        let mut opens = Session::dash(&other, Part::default()).expect("it opens");
        let (says, said) = std::sync::mpsc::channel();
        let (mut calls, mut leaves) = (0, Some(leaves));
        let steps = Steps::of(opens.id(), move || {
            calls += 1;
            if calls > call
                && let Some(mut leaves) = leaves.take()
            {
                let mode = leaves.sql("PRAGMA journal_mode=shadow");
                leaves.close();
                says.send(mode).expect("it is waited for");
            }
            Vec::new()
        });
        let opened = opens.sql(&format!("ATTACH '{}' AS app", suite::uri(&path, "")));
        let mode = opens.sql("PRAGMA app.journal_mode");
        steps.end(|| drop(opens.must("SELECT 1")));
        if said.recv().expect("it tried").is_err() {
            // The one that opens it has it by then.
            break;
        }
        assert_eq!((opened, mode.as_deref()), (Ok(String::new()), Ok("shadow")), "call {call}");
        changed += 1;
    }
    assert!(changed > 20, "{changed}");
}
