//! A folder that a user may search and write, and not list (mode 0333), is enough for stock SQLite,
//! and for dash: in each mode commits are made, survive a kill, and are there at rest.

mod suite;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use dash_testing::machine::root_for;
use suite::peers::{Part, Session};
use suite::{check, one, stock};

/// Neither root nor the folder's owner.
const OTHER: u32 = 65_534;

#[test]
fn in_every_mode() {
    if !root_for("becoming another user") {
        return;
    }
    for parameters in
        ["", "&journal_mode=wal", "&journal_mode=statement", "&journal_mode=wal&dash_wal=memory"]
    {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("app.db");
        stock(&path).execute_batch("CREATE TABLE t(n)").expect("makes a table");
        fs::set_permissions(&path, Permissions::from_mode(0o666)).expect("ours");
        fs::set_permissions(folder.path(), Permissions::from_mode(0o333)).expect("ours");

        let part = Part { parameters, user: Some(OTHER), ..Part::default() };
        let begun =
            || Session::dash(&path, part).unwrap_or_else(|error| panic!("{parameters:?}: {error}"));
        let mut killed = begun();
        for _ in 0..12 {
            killed.must("INSERT INTO t VALUES(1)");
        }
        killed.kill();
        let mut next = begun();
        assert_eq!(next.must("SELECT count(*) FROM t"), "12", "{parameters:?}");
        next.must("INSERT INTO t VALUES(2)");
        next.close();

        let db = stock(&path);
        assert_eq!(one::<i64>(&db, "SELECT count(*) FROM t"), 13, "{parameters:?}");
        check(&db);
    }
}
