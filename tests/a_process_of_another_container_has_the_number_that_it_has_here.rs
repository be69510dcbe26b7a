//! A process in a container has another number there than outside. Who is told that it has the
//! database locked gets the number that it has for him.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

mod suite;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use dash_testing::machine::runs;
use dash_testing::{Need, skip};
use suite::parts::{Part, again, last_error};
use suite::peers::Session;
use suite::sql::{refused, run};

const ADD: &str = "INSERT INTO t VALUES (1)";
const APART: [&str; 3] = ["--pid", "--fork", "--mount-proc"];

#[test]
fn a_process_of_another_container_has_the_number_that_it_has_here() {
    if !runs("unshare", &[&APART[..], &["true"]].concat()) {
        skip(Need::Root, "no pid namespace can be made");
        return;
    }
    for mode in ["wal", "shadow"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.db");
        let parameters = format!("&journal_mode={mode}");
        let db = suite::open_dash(path.as_os_str(), &parameters).unwrap();
        run(&db, "CREATE TABLE t(x)");
        db.busy_timeout(Duration::ZERO).unwrap();
        let mut inside = in_a_namespace(&path, &parameters);
        inside.must("BEGIN IMMEDIATE");
        inside.must(ADD);
        assert_eq!(refused(&db, ADD).0, 5);
        let said = last_error();
        let number = said.split("process ").nth(1).unwrap().split(' ').next().unwrap();
        assert!(number.parse::<u32>().unwrap() > inside.id(), "{said}");
        assert!(said.contains("on dash, has been writing for 0."), "{said}");
        inside.must("ROLLBACK");
        // From inside nobody sees who is outside.
        run(&db, "BEGIN IMMEDIATE");
        run(&db, ADD);
        inside.must("PRAGMA busy_timeout=0");
        inside.sql(ADD).unwrap_err();
        let said = inside.must("SELECT dash_last_error()");
        let own = format!("knows itself as {} (of another user or container", std::process::id());
        assert!(said.contains(&own), "{said}");
    }
}

/// Each is number 1 to itself.
#[test]
fn two_first_processes_of_containers_are_not_taken_for_one() {
    if !runs("unshare", &[&APART[..], &["true"]].concat()) {
        skip(Need::Root, "no pid namespace can be made");
        return;
    }
    for mode in ["wal", "statement", "shadow"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.db");
        let parameters = format!("&journal_mode={mode}");
        let mut holder = in_a_namespace(&path, &parameters);
        holder.must("CREATE TABLE t(x)");
        holder.must("BEGIN IMMEDIATE");
        holder.must(ADD);
        let mut waiter = in_a_namespace(&path, &parameters);
        waiter.must("PRAGMA busy_timeout=0");
        waiter.sql(ADD).unwrap_err();
        let said = waiter.must("SELECT dash_last_error()");
        assert!(said.contains("process 1 of another container"), "{mode}: {said}");
        assert!(!said.contains("this process"), "{mode}: {said}");
        // Of such a one no connection says anything.
        waiter.close();
        holder.must("COMMIT");
        holder.must("PRAGMA locking_mode=EXCLUSIVE");
        holder.must(ADD);
        // No statement can be prepared on that connection, nor be asked there.
        match try_in_a_namespace(&path, &parameters) {
            Err(said) => assert!(said.contains("locked"), "{mode}: {said}"),
            Ok(mut waiter) => drop(waiter.sql(ADD).unwrap_err()),
        }
        let said = std::fs::read_to_string(errors(&path)).unwrap();
        let said = said.lines().last().unwrap();
        assert!(said.contains("another container"), "{mode}: {said}");
    }
}

fn in_a_namespace(path: &Path, parameters: &str) -> Session {
    try_in_a_namespace(path, parameters).unwrap()
}

fn try_in_a_namespace(path: &Path, parameters: &str) -> Result<Session, String> {
    let inside = again("session", path, Part { parameters, ..Part::default() });
    let mut command = Command::new("unshare");
    command.args(APART).arg(inside.get_program()).args(inside.get_args());
    command.envs(inside.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.env("DASH_ERRORS", errors(path));
    Session::begin(command)
}

fn errors(path: &Path) -> PathBuf {
    path.with_extension("errors")
}
