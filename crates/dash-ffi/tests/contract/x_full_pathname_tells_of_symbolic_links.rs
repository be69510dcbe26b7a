//! The host's answer that a link was followed passes through, so that NOFOLLOW works.

use crate::common::Database;
use rusqlite::{Connection, OpenFlags};

#[test]
fn x_full_pathname_tells_of_symbolic_links() {
    let database = Database::new();
    database.open("").unwrap().execute_batch("CREATE TABLE t(x)").unwrap();
    let link = database.path.with_file_name("link.db");
    std::os::unix::fs::symlink(&database.path, &link).unwrap();

    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE;
    let db = Connection::open_with_flags_and_vfs(&link, flags, c"pass").unwrap();
    db.execute_batch("SELECT * FROM t").unwrap();
    let flags = flags | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    assert!(Connection::open_with_flags_and_vfs(&link, flags, c"pass").is_err());
    Connection::open_with_flags_and_vfs(&database.path, flags, c"pass").unwrap();
}
