//! With `mmap_size` SQLite holds pages of the copy it read until the lock falls, also after it has
//! itself committed into the other copy: others must not overwrite that copy meanwhile.

mod suite;

#[test]
fn through_a_commit_of_its_own_and_commits_of_others() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let b = suite::open(&path);
    b.execute_batch(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, v INT); CREATE TABLE u(x);
         WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
         INSERT INTO t SELECT i, 1 FROM n",
    )
    .unwrap();
    b.busy_timeout(std::time::Duration::ZERO).unwrap();
    let a = suite::open(&path);
    a.execute_batch("PRAGMA mmap_size = 100000000; PRAGMA cache_size = 0").unwrap();
    let mut statement = a.prepare("SELECT v FROM t").unwrap();
    let mut rows = statement.query([]).unwrap();
    for _ in 0..5 {
        rows.next().unwrap().unwrap();
    }
    a.execute_batch("INSERT INTO u VALUES (1)").unwrap();
    let mut passed = 0;
    for value in 2..5 {
        passed += i64::from(b.execute("UPDATE t SET v = ?1", [value]).is_ok());
    }
    let mut seen = std::collections::BTreeSet::new();
    while let Some(row) = rows.next().unwrap() {
        seen.insert(row.get::<_, i64>(0).unwrap());
    }
    assert_eq!(Vec::from_iter(seen), [1], "{passed} commits passed");
    drop(rows);
    b.execute("UPDATE t SET v = 9", []).unwrap();
    suite::check(&b);
}
