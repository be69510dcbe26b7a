//! Transactions over several dash databases (ATTACH) are atomic: in one folder and in several, when
//! a later database fails (T3, T4), and when the process is killed. With a plain file among them
//! they are refused.

mod suite;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use dash_testing::names::beside;
use dash_testing::roles::{Role, cast, role, say};
use rusqlite::Connection;
use suite::sql::{at_rest, refused, run, stat_of};

/// `paths` attached to the first, as `b`, `c` …
fn attached(paths: &[PathBuf]) -> Connection {
    let db = suite::open(&paths[0]);
    for (path, name) in paths[1..].iter().zip(["b", "c", "d"]) {
        db.execute(&format!("ATTACH ? AS {name}"), [suite::uri(path, "")]).expect("attaches");
    }
    db
}

/// Everything beside the databases and their shadows: a super-journal that was left, for example.
fn strays(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut names: Vec<_> = entries
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .filter(|name| !name.ends_with(".db") && !name.ends_with(".db-shadow"))
        .collect();
    names.sort();
    names
}

fn value(path: &Path) -> i64 {
    suite::one(&suite::open(path), "SELECT v FROM t")
}

#[test]
fn in_one_folder_and_in_several() {
    let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::create_dir(folder.path().join("below")).unwrap();
    let paths = [
        folder.path().join("a.db"),
        folder.path().join("b.db"),
        folder.path().join("below").join("c.db"),
        elsewhere.path().join("d.db"),
    ];
    let db = attached(&paths);
    run(
        &db,
        "BEGIN; CREATE TABLE main.t(v); CREATE TABLE b.t(v); CREATE TABLE c.t(v); CREATE TABLE d.t(v); COMMIT",
    );
    for (number, schema) in ["main", "b", "c", "d"].iter().enumerate() {
        run(&db, &format!("INSERT INTO {schema}.t VALUES ({number})"));
    }
    for _ in 0..5 {
        run(
            &db,
            "BEGIN; UPDATE main.t SET v = v + 10; UPDATE b.t SET v = v + 10; UPDATE c.t SET v = v + 10; UPDATE d.t SET v = v + 10; COMMIT",
        );
        run(&db, "BEGIN; UPDATE main.t SET v = v + 1000; UPDATE d.t SET v = v + 1000; ROLLBACK");
        run(
            &db,
            "SAVEPOINT s; DELETE FROM b.t; DELETE FROM c.t; ROLLBACK TO s; UPDATE d.t SET v = v + 1; RELEASE s",
        );
    }
    for (path, expected) in paths.iter().zip([50, 51, 52, 58]) {
        assert_eq!(value(path), expected, "{}", path.display());
    }
    drop(db);
    for (path, expected) in paths.iter().zip([50, 51, 52, 58]) {
        assert_eq!(suite::one::<i64>(&at_rest(path), "SELECT v FROM t"), expected);
    }
    for each in [folder.path(), elsewhere.path()] {
        assert_eq!(strays(each), if each == folder.path() { vec!["below"] } else { vec![] });
    }
}

#[test]
fn but_not_together_with_a_plain_file() {
    let folder = tempfile::tempdir().unwrap();
    let (path, plain) = (folder.path().join("app.db"), folder.path().join("plain.db"));
    run(&suite::stock(&plain), "CREATE TABLE t(v); INSERT INTO t VALUES (1)");
    let db = suite::open(&path);
    run(&db, "CREATE TABLE t(v); INSERT INTO t VALUES (1)");
    let plain_uri = format!("file:{}?vfs=unix", plain.display());
    db.execute("ATTACH ? AS plain", [&plain_uri]).unwrap();
    assert_eq!(suite::one::<String>(&db, "SELECT dash_engine('plain')"), "none");
    assert_eq!(
        suite::one::<i64>(
            &db,
            "SELECT sum(v) FROM (SELECT v FROM main.t UNION ALL SELECT v FROM plain.t)"
        ),
        2
    );
    for both in [
        "BEGIN; UPDATE main.t SET v = v + 1; UPDATE plain.t SET v = v + 1",
        "BEGIN; UPDATE plain.t SET v = v + 1; UPDATE main.t SET v = v + 1",
    ] {
        run(&db, both);
        let (_, message) = refused(&db, "COMMIT");
        let message =
            format!("{message} {}", suite::one::<String>(&db, "SELECT dash_last_error()"));
        assert!(message.contains("plain.db"), "the message names the file: {message}");
        if !db.is_autocommit() {
            run(&db, "ROLLBACK");
        }
        for schema in ["main", "plain"] {
            assert_eq!(suite::one::<i64>(&db, &format!("SELECT v FROM {schema}.t")), 1, "{both}");
        }
    }
    // Each by itself is written, also after reading the other in the same transaction.
    run(&db, "BEGIN; INSERT INTO main.t SELECT v + 1 FROM plain.t; COMMIT");
    run(&db, "BEGIN; INSERT INTO plain.t SELECT v + 2 FROM main.t; COMMIT");
    drop(db);
    let rows = |db: &Connection| suite::one::<String>(db, "SELECT group_concat(v) FROM t");
    assert_eq!(rows(&at_rest(&path)), "1,2");
    assert_eq!(rows(&suite::stock(&plain)), "1,3,4");
    assert_eq!(strays(folder.path()), Vec::<String>::new());
}

/// T3, T4: a database that is prepared and flushed already is rolled back because a later one
/// fails; here that one grows past the limit that the shell sets (`ulimit -f`). T3: without
/// synchronous there is no super-journal.
#[test]
fn all_are_rolled_back_when_a_later_one_fails() {
    for settings in ["FULL normal", "OFF normal", "FULL exclusive", "OFF exclusive"] {
        let folder = tempfile::tempdir().unwrap();
        let paths = ["a.db", "b.db", "c.db"].map(|name| folder.path().join(name));
        let db = attached(&paths);
        run(&db, "CREATE TABLE main.t(v, data); CREATE TABLE b.t(v, data); CREATE TABLE c.t(v, data);
            INSERT INTO main.t VALUES (1, ''); INSERT INTO b.t VALUES (1, ''); INSERT INTO c.t VALUES (1, '')");
        drop(db);
        let argument = format!("{settings} {}", folder.path().display());
        let mut limited = Command::new("sh");
        limited.args(["-c", "trap '' XFSZ; ulimit -f 8192; exec \"$0\" \"$@\""]);
        limited.arg(std::env::current_exe().unwrap());
        cast(&mut limited, "a_process_that_may_not_write_large_files", argument);
        Role::spawn(&mut limited).finish();
        for path in &paths {
            assert_eq!(value(path), 2, "{settings}: {}", path.display());
            at_rest(path);
        }
        assert_eq!(strays(folder.path()), Vec::<String>::new(), "{settings}");
    }
}

#[test]
#[ignore = "a role of the test above"]
fn a_process_that_may_not_write_large_files() {
    let Some(argument) = role("a_process_that_may_not_write_large_files") else { return };
    let mut words = argument.splitn(3, ' ');
    let [synchronous, locking, folder] = [(); 3].map(|()| words.next().expect("three words"));
    let paths = ["a.db", "b.db", "c.db"].map(|name| Path::new(folder).join(name));
    let db = attached(&paths);
    for schema in ["main", "b", "c"] {
        run(&db, &format!("PRAGMA {schema}.synchronous = {synchronous}"));
        run(&db, &format!("PRAGMA {schema}.locking_mode = {locking}"));
    }
    for large in ["c", "b", "main"] {
        // 7 MiB stay in memory until the commit, and with the rest of the file are more than the
        // limit of 4 or 8 MiB.
        run(
            &db,
            "BEGIN; UPDATE main.t SET v = 100; UPDATE b.t SET v = 100; UPDATE c.t SET v = 100",
        );
        run(
            &db,
            &format!(
                "UPDATE {large}.t SET data = zeroblob(7900000); CREATE TABLE {large}.more(x); INSERT INTO {large}.more VALUES (zeroblob(500000))"
            ),
        );
        let failed = db.execute_batch("COMMIT");
        assert!(failed.is_err(), "{large}: {failed:?}");
        if !db.is_autocommit() {
            run(&db, "ROLLBACK");
        }
        for schema in ["main", "b", "c"] {
            assert_eq!(
                suite::one::<i64>(&db, &format!("SELECT v FROM {schema}.t")),
                1,
                "{large} {schema}"
            );
        }
    }
    run(&db, "BEGIN; UPDATE main.t SET v = 2; UPDATE b.t SET v = 2; UPDATE c.t SET v = 2; COMMIT");
    for schema in ["main", "b", "c"] {
        assert_eq!(suite::one::<String>(&db, &format!("PRAGMA {schema}.integrity_check")), "ok");
    }
}

#[test]
fn all_or_none_when_the_process_is_killed() {
    let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let paths =
        [folder.path().join("a.db"), elsewhere.path().join("b.db"), folder.path().join("c.db")];
    let db = attached(&paths);
    run(
        &db,
        "CREATE TABLE main.t(v); CREATE TABLE b.t(v); CREATE TABLE c.t(v);
        INSERT INTO main.t VALUES (0); INSERT INTO b.t VALUES (0); INSERT INTO c.t VALUES (0)",
    );
    drop(db);
    let mut reached = 0;
    for round in 0..12_u64 {
        let argument = paths.each_ref().map(|path| path.display().to_string()).join("\n");
        let mut child = Role::start("a_process_that_counts_in_three_databases", argument);
        let acknowledged = loop {
            let acknowledged: i64 = child.hear("acknowledged").parse().expect("a number");
            if acknowledged >= reached + 3 {
                break acknowledged;
            }
        };
        // Somewhere in one of the next commits.
        std::thread::sleep(std::time::Duration::from_micros(round * 137 % 1000));
        child.kill();
        // The order of opening must not matter: whoever is opened first undoes or completes for
        // all.
        let mut order: Vec<_> = paths.iter().collect();
        order.rotate_left(usize::try_from(round % 3).unwrap());
        let values: Vec<_> = order.iter().map(|path| value(path)).collect();
        assert!(values.iter().all(|value| *value == values[0]), "round {round}: {values:?}");
        assert!(
            values[0] >= acknowledged,
            "round {round}: {values:?}, acknowledged {acknowledged}"
        );
        reached = values[0];
        run(
            &attached(&paths),
            "UPDATE main.t SET v = v; UPDATE b.t SET v = v; UPDATE c.t SET v = v",
        );
    }
    for path in &paths {
        at_rest(path);
    }
    // One whose list was not written yet may be left; no database depends on it.
    for super_journal in strays(folder.path()) {
        assert!(super_journal.starts_with("a.db-mj"), "{super_journal} is left");
        for file in paths.iter().flat_map(|path| [path.clone(), beside(path, "-shadow")]) {
            let bytes = fs::read(&file).unwrap();
            let named =
                bytes.windows(super_journal.len()).any(|name| name == super_journal.as_bytes());
            assert!(!named, "{} still names {super_journal}", file.display());
        }
    }
}

#[test]
#[ignore = "a role of the test above"]
fn a_process_that_counts_in_three_databases() {
    let Some(argument) = role("a_process_that_counts_in_three_databases") else { return };
    let paths: Vec<_> = argument.lines().map(PathBuf::from).collect();
    let db = attached(&paths);
    loop {
        run(
            &db,
            "BEGIN IMMEDIATE; UPDATE main.t SET v = v + 1; UPDATE b.t SET v = v + 1; UPDATE c.t SET v = v + 1; COMMIT",
        );
        say("acknowledged", suite::one::<i64>(&db, "SELECT v FROM main.t"));
        assert!(stat_of(&db, "b", "commits") > 0);
    }
}

/// SQLite lists them in the super-journal like the others.
#[test]
fn databases_in_memory_may_be_among_them() {
    let folder = tempfile::tempdir().unwrap();
    let paths = ["a.db", "b.db"].map(|name| folder.path().join(name));
    for path in &paths {
        run(&suite::open(path), "CREATE TABLE t(v INT); INSERT INTO t VALUES (0)");
    }
    let db = attached(&paths);
    run(&db, "ATTACH ':memory:' AS m; CREATE TABLE m.t(v INT)");
    run(
        &db,
        "BEGIN; UPDATE main.t SET v = 1; UPDATE b.t SET v = 1; INSERT INTO m.t VALUES (1); COMMIT",
    );
    assert_eq!(suite::one::<i64>(&db, "SELECT v FROM m.t"), 1);
    drop(db);
    assert_eq!(paths.each_ref().map(|path| value(path)), [1, 1]);
    assert_eq!(strays(folder.path()), [""; 0]);
}

/// One that has read several databases, of one time, goes on with all of them or with none.
#[test]
fn one_that_has_read_several_goes_on_in_none_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let paths: Vec<PathBuf> = ["a.db", "b.db"].map(|name| folder.path().join(name)).to_vec();
    for path in &paths {
        run(&suite::open_dash(path.as_os_str(), "&journal_mode=wal").expect("opens"), ROWS);
    }
    let (db, other) = (attached(&paths), attached(&paths));
    run(&db, "BEGIN; SELECT * FROM main.t WHERE k = 1; SELECT * FROM b.t WHERE k = 1");
    run(&other, "BEGIN; UPDATE main.t SET v = 1 WHERE k = 200; UPDATE b.t SET v = 1; COMMIT");
    assert_eq!(refused(&db, "UPDATE main.t SET v = 2 WHERE k = 100").0, 517);
    run(&db, "ROLLBACK; BEGIN; SELECT * FROM main.t WHERE k = 1");
    run(&other, "UPDATE main.t SET v = 1 WHERE k = 200");
    run(&db, "UPDATE main.t SET v = 2 WHERE k = 100; COMMIT");
}

const ROWS: &str = "
    CREATE TABLE t(k INTEGER PRIMARY KEY, v, x);
    WITH c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 200)
    INSERT INTO t SELECT i, 0, zeroblob(500) FROM c";
