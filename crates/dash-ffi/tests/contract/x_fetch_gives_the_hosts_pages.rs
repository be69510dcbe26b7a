//! With mmap_size set, pages come mapped from the host's file and go back to it.

use crate::common::Database;

#[test]
fn x_fetch_gives_the_hosts_pages() {
    let database = Database::new();
    let db = database.open("").unwrap();
    db.execute_batch(
        "PRAGMA mmap_size=1000000; PRAGMA cache_size=3; CREATE TABLE t(x);
         INSERT INTO t SELECT randomblob(3000) FROM pragma_function_list LIMIT 50;",
    )
    .unwrap();
    database.probe.take("");
    let rows: i64 = db
        .query_row("SELECT count(*) FROM t WHERE length(x) = 3000", [], |row| row.get(0))
        .unwrap();
    assert_eq!(rows, 50);
    let events = database.probe.events();
    let count = |event: &str| events.iter().filter(|e| *e == event).count();
    assert!(count("xFetch true") > 10, "{events:?}");
    assert!(count("xUnfetch true") > 10, "{events:?}");
}
