//! A process in a container has another number there than outside. Who is told that it has the
//! database locked gets the number that it has for him.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

mod suite;

use std::path::Path;
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

fn in_a_namespace(path: &Path, parameters: &str) -> Session {
    let inside = again("session", path, Part { parameters, ..Part::default() });
    let mut command = Command::new("unshare");
    command.args(APART).arg(inside.get_program()).args(inside.get_args());
    command.envs(inside.get_envs().filter_map(|(name, value)| Some((name, value?))));
    Session::begin(command).unwrap()
}
