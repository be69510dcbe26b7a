//! Transactions of several connections in mode wal, statement by statement in turn: those that
//! were committed are run again, one after the other, on a stock database in memory, and each
//! statement gives what it gave. A failure names its seed; `DASH_SUITE_SEED=n` runs that one alone,
//! and more histories than usual are run with `DASH_SUITE_HISTORIES=n`.

mod suite;

use std::collections::VecDeque;
use std::path::Path;
use std::time::{Duration, Instant};

use dash_testing::names::beside;
use dash_testing::random::Random;
use dash_testing::roles::{Role, python};
use rusqlite::{Connection, ErrorCode};
use suite::sql::{content, gives, refused, run, stat};

/// Histories that are run when nothing else is asked for, and the transactions of one.
const HISTORIES: u64 = 8;
const TRANSACTIONS: usize = 250;

const TABLES: usize = 4;
const ROWS: usize = 300;

/// A transaction that was committed.
struct Committed {
    /// When: of one that only read, when it did so first.
    at: usize,
    ran: Vec<(String, u64)>,
}

/// A connection, and the transaction that it is in.
struct Actor {
    db: Connection,
    plan: VecDeque<String>,
    is_open: bool,
    began: Option<usize>,
    writes: bool,
    ran: Vec<(String, u64)>,
}

fn statement(random: &mut Random) -> String {
    let (table, a, b) = (random.below(TABLES), 1 + random.below(ROWS), 1 + random.below(ROWS));
    let (other, size) = ((table + 1) % TABLES, random.below(90));
    match random.below(16) {
        0 => format!("SELECT sum(v), count(*) FROM t{table} WHERE id BETWEEN {a} AND {a} + 20"),
        1 => format!(
            "UPDATE t{table} SET v = v + (SELECT v FROM t{other} WHERE id = {b}) % 1000 WHERE id = {a}"
        ),
        2 => format!(
            "UPDATE t{table} SET v = v - 1 WHERE id = {a} AND (SELECT sum(v) FROM t{table} WHERE id BETWEEN {a} AND {a} + 4) > 10"
        ),
        3 => format!(
            "INSERT INTO t{table}(v, x) VALUES ((SELECT max(id) FROM t{other}), hex(zeroblob({size})))"
        ),
        4 => format!("DELETE FROM t{table} WHERE id = {a}"),
        5 => format!("SELECT id FROM t{table} WHERE v = {}", random.below(1000)),
        6 => format!("REPLACE INTO t{table} VALUES ({a}, {b}, hex(zeroblob({size} * {size})))"),
        7 if random.below(8) == 0 => match random.below(3) {
            0 => format!("CREATE TABLE IF NOT EXISTS z{table}(a, b)"),
            1 => format!("DROP TABLE IF EXISTS z{table}"),
            _ => format!("CREATE INDEX IF NOT EXISTS j{table} ON t{table}(x)"),
        },
        7 => "SELECT count(*) FROM sqlite_master".to_owned(),
        8 => format!("SELECT count(*), max(id), min(v) FROM t{table}"),
        9 => format!("DELETE FROM t{table} WHERE length(x) > 1000"),
        10 => format!("SELECT v FROM t{table} WHERE id = {a}"),
        _ => format!("UPDATE t{table} SET v = v + 1 WHERE id = {a}"),
    }
}

/// What a transaction is to run; the first one is its beginning, unless it is one statement alone.
fn plan(random: &mut Random) -> VecDeque<String> {
    let mut plan: VecDeque<_> = (0..1 + random.below(6)).map(|_| statement(random)).collect();
    if plan.len() > 1 || random.below(2) == 0 {
        if plan.len() > 2 && random.below(3) == 0 {
            let end = random.one_of(&["ROLLBACK TO s", "ROLLBACK TO s", "RELEASE s"]);
            let at = random.below(plan.len() - 1);
            plan.insert(at, "SAVEPOINT s".to_owned());
            plan.insert(at + 1 + random.below(plan.len() - at), end.to_owned());
        }
        plan.push_front(random.one_of(&["BEGIN", "BEGIN", "BEGIN", "BEGIN IMMEDIATE"]).to_owned());
        plan.push_back("COMMIT".to_owned());
    }
    plan
}

impl Actor {
    fn open(path: &Path, random: &mut Random) -> Self {
        let db = suite::open_dash(path.as_os_str(), "").expect("opens");
        db.busy_timeout(Duration::ZERO).expect("sets");
        let (cache, every) = (random.one_of(&["3", "8", "200"]), random.one_of(&["30", "1000"]));
        let level = random.one_of(&["OFF", "NORMAL", "FULL"]);
        let mapped = random.one_of(&["0", "0", "10000000"]);
        run(&db, &format!("PRAGMA cache_size = {cache}; PRAGMA wal_autocheckpoint = {every}"));
        run(&db, &format!("PRAGMA synchronous = {level}; PRAGMA mmap_size = {mapped}"));
        let (plan, ran) = (VecDeque::new(), Vec::new());
        Self { db, plan, is_open: false, began: None, writes: false, ran }
    }

    /// The next statement of its transaction, which is a new one if there is none; the transaction
    /// that was committed with it.
    fn step(&mut self, now: usize, random: &mut Random) -> Option<Committed> {
        if self.plan.is_empty() {
            self.plan = plan(random);
        }
        let sql = self.plan.pop_front()?;
        let gave = match gives(&self.db, &sql) {
            Ok(gave) => gave,
            Err(error) => {
                let code = error.sqlite_error_code();
                assert_eq!(code, Some(ErrorCode::DatabaseBusy), "{sql}: {error}");
                assert_ne!(sql, "COMMIT", "is granted to one that has written");
                if !self.db.is_autocommit() {
                    run(&self.db, "ROLLBACK");
                }
                (self.plan, self.is_open, self.began) = (VecDeque::new(), false, None);
                (self.writes, self.ran) = (false, Vec::new());
                return None;
            }
        };
        if sql.starts_with("BEGIN") {
            (self.is_open, self.writes) = (true, sql.ends_with("IMMEDIATE"));
        } else if sql == "COMMIT" {
            self.is_open = false;
        } else {
            self.writes |= !sql.starts_with("SELECT") && !sql.ends_with(" s");
            self.began = self.began.or((!sql.ends_with(" s")).then_some(now));
            self.ran.push((sql, gave));
        }
        if self.is_open {
            return None;
        }
        let (writes, began) = (std::mem::take(&mut self.writes), self.began.take());
        let at = began.filter(|_| !writes).unwrap_or(now);
        Some(Committed { at, ran: std::mem::take(&mut self.ran) })
    }
}

fn made(db: &Connection) {
    for table in 0..TABLES {
        run(
            db,
            &format!(
                "CREATE TABLE t{table}(id INTEGER PRIMARY KEY, v INTEGER, x TEXT); CREATE INDEX i{table} ON t{table}(v); \
                 WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < {ROWS}) \
                 INSERT INTO t{table} SELECT n, n * 7919 % 1000, hex(zeroblob(40)) FROM c"
            ),
        );
    }
}

/// What stock SQLite makes of the database and `-wal` alone, as after a kill, is what they have.
fn recovers(path: &Path, db: &Connection, context: &str) {
    let copy = path.with_extension("copy");
    std::fs::copy(path, &copy).expect("copies");
    std::fs::copy(beside(path, "-wal"), beside(&copy, "-wal")).expect("copies");
    let stock = suite::stock(&copy);
    for table in 0..TABLES {
        let all = format!("SELECT * FROM t{table} ORDER BY id");
        assert_eq!(content(&stock, &all), content(db, &all), "{context}");
    }
}

/// How many transactions went on to write though others had committed since they began.
fn history(seed: u64, path: &Path) -> i64 {
    let mut random = Random(seed);
    let model = Connection::open_in_memory().expect("opens");
    let db = suite::open_dash(path.as_os_str(), "").expect("opens");
    run(&db, &format!("PRAGMA page_size = {}", random.one_of(&["512", "4096", "4096", "65536"])));
    run(&db, "PRAGMA journal_mode = WAL");
    made(&db);
    made(&model);
    let count = 2 + random.below(4);
    let mut actors: Vec<_> = (0..count).map(|_| Actor::open(path, &mut random)).collect();
    let (mut history, mut upgrades) = (Vec::new(), 0);
    let mut steps = 0..;
    while history.len() < TRANSACTIONS {
        let now = steps.next().unwrap_or_default();
        let which = random.below(actors.len());
        let actor = &mut actors[which];
        if !actor.is_open && actor.plan.is_empty() && random.below(60) == 0 {
            let how = random.one_of(&["PASSIVE", "FULL", "RESTART", "TRUNCATE"]);
            drop(gives(&actor.db, &format!("PRAGMA wal_checkpoint({how})")));
            if random.below(3) == 0 {
                upgrades += stat(&actor.db, "upgrades");
                actors[which] = Actor::open(path, &mut random);
            }
        } else {
            let committed = actor.step(now, &mut random);
            let is_time = committed.is_some() && history.len() % 10 == 0;
            history.extend(committed);
            if is_time {
                recovers(path, &db, &format!("seed {seed}, transaction {}", history.len()));
            }
        }
    }
    upgrades += actors.iter().map(|actor| stat(&actor.db, "upgrades")).sum::<i64>();
    drop((actors, db));
    history.sort_by_key(|transaction| transaction.at);
    for (number, transaction) in history.iter().enumerate() {
        run(&model, "BEGIN");
        for (sql, gave) in &transaction.ran {
            assert_eq!(gives(&model, sql), Ok(*gave), "seed {seed}, transaction {number}: {sql}");
        }
        run(&model, "COMMIT");
    }
    let found = suite::stock(path);
    suite::check(&found);
    for table in 0..TABLES {
        let all = format!("SELECT * FROM t{table} ORDER BY id");
        assert_eq!(content(&found, &all), content(&model, &all), "seed {seed}");
    }
    upgrades
}

#[test]
fn whatever_they_do_meanwhile() {
    let number = |name| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let seeds = match number("DASH_SUITE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("DASH_SUITE_HISTORIES").unwrap_or(HISTORIES),
    };
    let mut upgrades = 0;
    for seed in seeds.clone() {
        let folder = tempfile::tempdir().expect("a folder");
        upgrades += history(seed, &folder.path().join("app.db"));
    }
    println!("{upgrades} upgrades in {seeds:?}");
    assert!(upgrades > 0, "none went on to write on an old snapshot");
}

/// One that has read waits for a writer, as long as its `busy_timeout` says, and goes on.
#[test]
fn and_wait_for_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let open = || suite::open_dash(path.as_os_str(), "&journal_mode=wal").unwrap();
    let (writer, db) = (open(), open());
    made(&writer);
    db.busy_timeout(Duration::from_secs(60)).unwrap();
    run(&db, "BEGIN; SELECT v FROM t0 WHERE id = 1");
    run(&writer, "BEGIN IMMEDIATE; UPDATE t1 SET v = v + 1 WHERE id = 1");
    std::thread::scope(|scope| {
        scope.spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            run(&writer, "COMMIT");
        });
        run(&db, "UPDATE t0 SET v = v + 1 WHERE id = 1; COMMIT");
    });
    assert_eq!(stat(&db, "upgrades"), 1);
    // One that then changes nothing was not refused. Other tests of this process have errors too.
    let says = || suite::parts::last_error().contains(path.to_str().unwrap());
    assert!(!says());
    let writer = open();
    for end in ["COMMIT", "ROLLBACK"] {
        run(&writer, "UPDATE t1 SET v = v + 1 WHERE id = 1");
        run(&db, "BEGIN; SELECT v FROM t0 WHERE id = 1");
        run(&writer, "UPDATE t1 SET v = v + 1 WHERE id = 1");
        run(&db, &format!("UPDATE t0 SET v = 0 WHERE id < 0; {end}"));
        assert!(!says(), "{end}: {}", suite::parts::last_error());
    }
    assert_eq!(stat(&db, "upgrades"), 3);
    drop(writer);
    // In one thread nobody else can go on: not for longer than it says.
    let other = open();
    run(&other, "BEGIN IMMEDIATE");
    db.busy_timeout(Duration::from_millis(20)).unwrap();
    run(&db, "BEGIN; SELECT v FROM t0 WHERE id = 1");
    let begun = Instant::now();
    assert_eq!(refused(&db, "UPDATE t0 SET v = v + 1 WHERE id = 1").0, 5);
    assert!(begun.elapsed() < Duration::from_secs(5));
}

/// Pages in mapped memory are read without a call: such a connection is refused as in stock SQLite.
#[test]
fn and_see_mapped_pages() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let open = || suite::open_dash(path.as_os_str(), "&journal_mode=wal").unwrap();
    let other = open();
    made(&other);
    run(&other, "PRAGMA wal_checkpoint(TRUNCATE)");
    let db = open();
    run(&db, "PRAGMA mmap_size = 100000000; SELECT sum(v) FROM t1");
    for row in [300, 290, 280] {
        run(&other, "UPDATE t3 SET v = v + 1 WHERE id = 1; PRAGMA wal_checkpoint(PASSIVE)");
        run(&db, &format!("BEGIN; SELECT v FROM t0 WHERE id IN (1, 100, 200, {row})"));
        run(&other, &format!("UPDATE t0 SET v = v + 1 WHERE id = {row}"));
        assert_eq!(refused(&db, "UPDATE t1 SET v = v + 1 WHERE id = 1").0, 517);
        run(&db, "ROLLBACK");
    }
}

/// Two connections of one cache share a snapshot: one reads by a cursor, and one that is in no
/// transaction writes on it.
#[test]
fn and_share_a_cache() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let open = |more| suite::open_dash(path.as_os_str(), more).unwrap();
    let other = open("&journal_mode=wal");
    made(&other);
    let before: i64 = suite::one(&other, "SELECT sum(v) FROM t3");
    let (reads, writes) = (open("&cache=shared"), open("&cache=shared"));
    run(&writes, "SELECT * FROM t1");
    let mut statement = reads.prepare("SELECT id FROM t0 WHERE id < 10").unwrap();
    let mut rows = statement.query([]).unwrap();
    rows.next().unwrap();
    let count = |by| run(&other, &format!("UPDATE t3 SET v = v + {by} WHERE id = 1"));
    count(1);
    run(&reads, "UPDATE t2 SET v = v + 1 WHERE id = 1");
    count(3);
    run(&writes, "UPDATE t1 SET v = v + 1 WHERE id = 300");
    drop(rows);
    drop(statement);
    for db in [&other, &reads, &writes] {
        assert_eq!(suite::one::<i64>(db, "SELECT sum(v) FROM t3"), before + 4);
    }
    suite::check(&other);
}

/// A child reads what the cache had before the fork, and another process writes that.
const FORKS: &str = "
db = open(sys.argv[2], '&journal_mode=wal')
def v():
    return db.execute('SELECT v FROM t0 WHERE id = 1').fetchone()[0]
before, (heard, says), (written, goes_on) = v(), os.pipe(), os.pipe()
if (child := os.fork()) == 0:
    try:
        db.execute('BEGIN')
        found = v()
        os.write(goes_on, b'x')
        os.read(heard, 1)
        db.execute('UPDATE t1 SET v = 1')
        db.execute('UPDATE t0 SET v = ? WHERE id = 1', (found + 10,))
        db.execute('COMMIT')
    except sqlite3.OperationalError as error:
        os._exit(0 if 'locked' in str(error) else 1)
    os._exit(1)
os.read(written, 1)
open(sys.argv[2], '').execute('UPDATE t0 SET v = v + 1 WHERE id = 1')
os.write(says, b'x')
assert os.waitpid(child, 0)[1] == 0
assert v() == before + 1, v()
";

#[test]
fn and_fork() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    made(&suite::open_dash(path.as_os_str(), "&journal_mode=wal").unwrap());
    if let Some(mut command) = python(FORKS, &[&path]) {
        Role::spawn(&mut command).finish();
    }
}

/// What others have read and counted is not counted twice.
#[test]
fn and_lose_no_count() {
    const THREADS: i64 = 4;
    const TIMES: i64 = 60;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let open = || suite::open_dash(path.as_os_str(), "&journal_mode=wal").unwrap();
    let db = open();
    made(&db);
    let before: i64 = suite::one(&db, "SELECT sum(v) FROM t0");
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                let db = open();
                db.busy_timeout(Duration::from_secs(60)).unwrap();
                let mut random = Random(thread as u64);
                let mut done = 0;
                while done < TIMES {
                    let row = 1 + random.below(ROWS);
                    run(&db, "BEGIN");
                    let v: i64 = suite::one(&db, &format!("SELECT v FROM t0 WHERE id = {row}"));
                    let write = format!("UPDATE t0 SET v = {v} + 1 WHERE id = {row}");
                    match gives(&db, &write) {
                        Ok(_) => {
                            run(&db, "COMMIT");
                            done += 1;
                        }
                        Err(error) => {
                            let code = error.sqlite_error().map(|error| error.extended_code);
                            assert_eq!(code, Some(517), "{error}");
                            run(&db, "ROLLBACK");
                        }
                    }
                }
            });
        }
    });
    let after: i64 = suite::one(&db, "SELECT sum(v) FROM t0");
    assert_eq!(after - before, THREADS * TIMES);
}
