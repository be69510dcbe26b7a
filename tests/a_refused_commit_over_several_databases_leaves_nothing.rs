//! A COMMIT over several databases that is refused leaves nothing of the transaction in any of
//! them: not in the connection, not for others, not on disk; whatever their modes, with
//! `locking_mode=EXCLUSIVE`, too, where SQLite keeps its pages, and where pages had been spilled.

mod suite;

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use suite::sql::run;

const SCHEMAS: [&str; 3] = ["main", "b", "c"];
const BEFORE: i64 = 20;
const AFTER: i64 = 80;
/// Open through SQLite's own VFS.
const STOCK: &str = "stock";
/// And in WAL mode: it commits by itself, before the others.
const STOCK_WAL: &str = "stock in WAL mode";
const COUNT: &str = "SELECT count(*) FROM t";

/// What is tried of a transaction over three databases.
#[derive(Clone, Copy, Debug)]
struct Case {
    modes: [&'static str; 3],
    exclusive: bool,
    /// The cache holds few pages: they are written before the COMMIT. There are savepoints, too.
    spills: bool,
    /// The connection has written nothing before: no name is fenced.
    is_first: bool,
}

impl Case {
    fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for modes in modes() {
            for bits in [0, 1, 2, 3, 5, 7] {
                let [exclusive, spills, is_first] = [1, 2, 4].map(|bit| bits & bit != 0);
                all.push(Self { modes, exclusive, spills, is_first });
            }
        }
        all
    }

    /// A journal that stock SQLite would recover, beside a database of mode shadow.
    fn is_mixed(self) -> bool {
        let plain = self.modes.iter().any(|mode| ["delete", STOCK].contains(mode));
        self.modes.contains(&"shadow") && plain
    }

    fn open(self, paths: &[PathBuf; 3]) -> Connection {
        suite::load();
        let uris: [String; 3] = std::array::from_fn(|number| match self.modes[number] {
            STOCK | STOCK_WAL => format!("file:{}?vfs=unix", paths[number].display()),
            mode => suite::uri(&paths[number], &format!("&journal_mode={mode}")),
        });
        let db = Connection::open(&uris[0]).expect("opens");
        for (uri, schema) in uris[1..].iter().zip(&SCHEMAS[1..]) {
            db.execute(&format!("ATTACH ? AS {schema}"), [uri]).expect("attaches");
        }
        if self.modes[0] == STOCK_WAL {
            run(&db, "PRAGMA main.journal_mode = wal");
        }
        for schema in SCHEMAS {
            if self.exclusive {
                run(&db, &format!("PRAGMA {schema}.locking_mode = exclusive"));
            }
            if self.spills {
                run(&db, &format!("PRAGMA {schema}.cache_size = 5"));
            }
        }
        db
    }
}

fn modes() -> Vec<[&'static str; 3]> {
    let all = ["shadow", "delete", "wal"];
    // Another VFS makes the super-journal where the first one is open through that.
    let firsts = ["shadow", "delete", "wal", STOCK, STOCK_WAL];
    let pairs = firsts.iter().flat_map(|first| all.map(|second| [*first, second]));
    let thirds = ["shadow", "delete", "wal", STOCK];
    let all = pairs.flat_map(|[first, second]| thirds.map(|third| [first, second, third]));
    // The others are SQLite's own.
    // SQLite asks nobody before the one in WAL mode is committed, where it makes the super-journal.
    let is_late = |modes: &[&str; 3]| {
        modes[0] == STOCK_WAL && ["delete", STOCK].iter().any(|mode| modes.contains(mode))
    };
    all.filter(|modes| modes.contains(&"shadow") && !is_late(modes)).collect()
}

fn fill(db: &Connection, schema: &str, rows: i64) {
    run(
        db,
        &format!(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
             INSERT INTO {schema}.t(x) SELECT randomblob(900) FROM n"
        ),
    );
}

fn counts(db: &Connection) -> [i64; 3] {
    SCHEMAS.map(|schema| suite::one(db, &format!("SELECT count(*) FROM {schema}.t")))
}

/// A transaction that is to bring each from [`BEFORE`] rows to [`AFTER`].
fn change(db: &Connection, case: Case) {
    run(db, "BEGIN");
    for schema in SCHEMAS {
        fill(db, schema, AFTER - BEFORE);
        if case.spills {
            run(db, &format!("SAVEPOINT s; DELETE FROM {schema}.t WHERE rowid % 3 = 0"));
            fill(db, schema, 30);
            run(db, "ROLLBACK TO s; RELEASE s");
        }
    }
}

/// What the others see, and what is there after closing.
fn at_rest(path: &Path) -> i64 {
    let db = suite::stock(path);
    suite::check(&db);
    suite::one(&db, COUNT)
}

fn prepared(case: Case, paths: &[PathBuf; 3]) -> Connection {
    let db = case.open(paths);
    for schema in SCHEMAS {
        run(&db, &format!("CREATE TABLE {schema}.t(k INTEGER PRIMARY KEY, x)"));
        run(&db, &format!("CREATE INDEX {schema}.i ON t(x)"));
        fill(&db, schema, BEFORE);
    }
    match case.is_first {
        true => {
            drop(db);
            case.open(paths)
        }
        false => db,
    }
}

/// What goes wrong with it.
fn tried(case: Case) -> Vec<String> {
    let mut wrong = Vec::new();
    let folder = tempfile::tempdir().expect("a folder");
    let paths = ["a.db", "b.db", "c.db"].map(|name| folder.path().join(name));
    let db = prepared(case, &paths);
    change(&db, case);
    let committed = db.execute_batch("COMMIT");
    let mut expect = |holds: bool, what: String| {
        if !holds {
            wrong.push(format!("{case:?}: {what}, COMMIT: {committed:?}"));
        }
    };
    expect(committed.is_err() == case.is_mixed(), "refused or not".to_owned());
    expect(db.is_autocommit(), "it goes on".to_owned());
    let expected = if committed.is_ok() { AFTER } else { BEFORE };
    let own = counts(&db);
    expect(own == [expected; 3], format!("the connection sees {own:?}"));
    if !case.exclusive {
        let others: Vec<i64> = paths
            .iter()
            .map(|path| {
                let other = if [STOCK, STOCK_WAL].contains(&case.modes[0]) && path == &paths[0] {
                    suite::stock(path)
                } else {
                    suite::open(path)
                };
                suite::one(&other, COUNT)
            })
            .collect();
        expect(others == [expected; 3], format!("others see {others:?}"));
    }
    // What comes next is written on what was there.
    for schema in SCHEMAS {
        fill(&db, schema, 1);
        let checked: String = suite::one(&db, &format!("PRAGMA {schema}.integrity_check"));
        expect(checked == "ok", format!("{schema}: {checked}"));
    }
    drop(db);
    let kept = paths.each_ref().map(|path| at_rest(path));
    expect(kept == [expected + 1; 3], format!("at rest there are {kept:?}"));
    wrong
}

#[test]
fn in_any_modes() {
    let wrong: Vec<_> = Case::all().into_iter().flat_map(tried).collect();
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// SQLite asks nobody before it commits what it has in WAL mode through its own VFS, wherever that
/// stands before a database of dash: a program that does all of it again would do that part twice.
#[test]
fn but_what_stock_sqlite_has_in_wal_mode_and_that_is_said() {
    for modes in [[STOCK_WAL, "shadow", "delete"], [STOCK_WAL, "delete", "wal"]] {
        let case = Case { modes, exclusive: false, spills: false, is_first: false };
        let folder = tempfile::tempdir().expect("a folder");
        let paths = ["a.db", "b.db", "c.db"].map(|name| folder.path().join(name));
        let db = prepared(case, &paths);
        let third = folder.path().join("d.db");
        let shadow = suite::uri(&third, "&journal_mode=shadow");
        db.execute("ATTACH ? AS d", [shadow]).expect("attaches");
        run(&db, "CREATE TABLE d.t(x)");
        change(&db, case);
        run(&db, "INSERT INTO d.t VALUES (1)");
        db.execute_batch("COMMIT").expect_err("they could not be recovered together");
        assert_eq!(counts(&db), [AFTER, BEFORE, BEFORE], "{modes:?}");
        let said: String = suite::one(&db, "SELECT dash_last_error()");
        let words = "a.db, in WAL mode on stock SQLite, has been committed all the same";
        assert!(said.contains(words), "{modes:?}: {said}");
    }
}
