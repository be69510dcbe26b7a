//! Flushes and bytes of a commit, exact: on a loop device that nobody else writes to. Checkpoints
//! are among the commits, and the close after the last is counted, too, with all that is left
//! unwritten then.

use rusqlite::Connection;

use super::super::bench::Bench;
use super::super::data::{Dice, with_rows};
use crate::device::Counts;
use crate::failure::{Explain, Result};
use crate::numbers::{count, float, per};
use crate::progress::{Progress, Unit};
use crate::report::{Section, Target};
use crate::row::Row;
use crate::sides::{DASH_WAL, DASH_WAL_BARRIER, DURABLE, WAL};
use crate::volume::Volume;

const COMMITS: usize = 10_000;
/// Commits right after opening that are counted one by one.
const FIRST: usize = 20;
const KIB: f64 = 1024.0;
const SIDES: [&Row; 3] = [DASH_WAL, DASH_WAL_BARRIER, WAL];

/// What a commit does.
#[derive(Clone, Copy)]
enum Work {
    /// An insert of 100 bytes into each of so many tables.
    Insert(usize),
    /// An update of a row, any of so many.
    Update(i64),
}

/// What is done, how large it may be in KiB, and as a share of stock's.
const WORKS: [(Work, &str, Option<f64>, Option<f64>); 4] = [
    (Work::Insert(1), "insert of 100 bytes", Some(4.3), None),
    (Work::Insert(5), "inserts into 5 tables", Some(5.4), None),
    (Work::Update(20_000), "update of one of 20,000 rows", None, Some(0.8)),
    (Work::Update(100_000), "update of one of 100,000 rows", None, Some(1.0)),
];

/// Makes the section.
pub fn measure(bench: &Bench) -> Result<Section> {
    let commits = bench.many(COMMITS);
    let what = format!(
        "{commits} commits each, checkpoints among them, one thread, on B (blocks of 4 KiB) and L (of 512 bytes), ext4 with a journal; {FIRST} commits after opening"
    );
    let mut section = Section::new("wal-counts", what, DURABLE);
    let all = count(2 * commits * SIDES.len() * WORKS.len());
    let mut progress = Progress::new("wal-counts", all, Unit::Count);
    for volume in [bench.volumes.b()?, bench.volumes.l()?] {
        on(volume, commits, &mut section, &mut progress)?;
    }
    Ok(section)
}

fn on(
    volume: &Volume,
    commits: usize,
    section: &mut Section,
    progress: &mut Progress,
) -> Result<()> {
    for side in [DASH_WAL, WAL] {
        first(section, volume, side)?;
    }
    for (work, title, largest, share) in WORKS {
        let title = format!("{}: {title}", volume.label);
        let mut kib = Vec::new();
        for side in SIDES {
            let written = commits_of(volume, side, work, commits, progress)?;
            kib.push(tell(section, (&title, side, largest), &written, count(commits)));
        }
        let [dash, _, stock] = kib[..] else { continue };
        let label = format!("{title}: bytes, dash / stock WAL");
        match share {
            Some(share) => section.target(label, dash / stock, "x", Target::AtMost(share)),
            None => section.figure(label, dash / stock, "x"),
        }
    }
    Ok(())
}

/// What a device was asked to write.
struct Written {
    /// While commits were made.
    during: Counts,
    /// By the close, and by what the file system had kept back.
    after: Counts,
    /// Bytes of it that made dash's log, once for the life of the database.
    log: u64,
}

/// Says what so many commits wrote; KiB of each.
fn tell(
    section: &mut Section,
    (title, side, largest): (&str, &'static Row, Option<f64>),
    written: &Written,
    commits: u64,
) -> f64 {
    let Written { during: counted, after: rest, log } = *written;
    let name = format!("{title}: {}", side.name);
    let kib = per(counted.bytes + rest.bytes, commits) / KIB;
    match largest.filter(|_| side == DASH_WAL) {
        Some(largest) => {
            section.target(format!("{name}: written"), kib, "KiB", Target::AtMost(largest))
        }
        None => section.figure(format!("{name}: written"), kib, "KiB"),
    }
    section.note(format!(
        "{name}: {:.3} flushes, {:.3} writes, {:.2} KiB while it ran, {:.1} KiB in all for the close and afterwards, {:.4} journal commits; {:.2} KiB of each made the log, once",
        per(counted.flushes, commits),
        per(counted.writes, commits),
        per(counted.bytes, commits) / KIB,
        float(rest.bytes) / KIB,
        per(counted.journal_commits, commits),
        per(log, commits) / KIB,
    ));
    kib
}

/// The first commits after opening a database at rest, one by one.
fn first(section: &mut Section, volume: &Volume, side: &'static Row) -> Result<()> {
    let folder = volume.folder("wal-first")?;
    let path = folder.path().join("app.db");
    // Twice: what the very first session makes, such as a log, is there then; and as long as the
    // one that is counted, for after a short one the log is begun later.
    for _ in 0..2 {
        let db = match path.exists() {
            true => side.open(&path)?,
            false => with_rows(side, &path, 1000)?,
        };
        for turn in 0..count(FIRST) {
            update(&db, turn)?;
        }
        db.close().map_err(|(_, error)| error).explain("closing")?;
    }
    let db = side.open(&path)?;
    let read = "SELECT body FROM t WHERE id = 500";
    let _: String = db.query_row(read, [], |row| row.get(0)).explain("a first read")?;
    volume.settle()?;
    let mut each = Vec::new();
    for turn in 0..count(FIRST) {
        let before = volume.counts()?;
        update(&db, turn + 10)?;
        each.push(volume.counts()?.since(before));
    }
    let name = format!("{}: one page, first {FIRST} commits: {}", volume.label, side.name);
    let sum = |figure: fn(&Counts) -> u64| per(each.iter().map(figure).sum(), count(FIRST));
    let figures = [
        ("flushes", sum(|one| one.flushes), "", 1.0),
        ("data writes", sum(|one| one.writes.saturating_sub(one.flushes)), "", 1.0),
        ("written", sum(|one| one.bytes) / KIB, "KiB", 4.2),
        ("journal commits", sum(|one| one.journal_commits), "", 0.0),
    ];
    for (what, value, unit, limit) in figures {
        let label = format!("{name}: {what}");
        match side == DASH_WAL {
            true => section.target(label, value, unit, Target::AtMost(limit)),
            false => section.figure(label, value, unit),
        }
    }
    for (number, one) in each.iter().enumerate().take(4) {
        section.note(format!(
            "{}: {}: commit {}: {} flushes, {} other writes, {:.1} KiB, {} journal commits",
            volume.label,
            side.name,
            number + 1,
            one.flushes,
            one.writes.saturating_sub(one.flushes),
            float(one.bytes) / KIB,
            one.journal_commits
        ));
    }
    Ok(())
}

fn update(db: &Connection, turn: u64) -> Result<()> {
    let body = format!("{turn:0100}");
    let done = db.execute("UPDATE t SET body = ?1 WHERE id = 500", [body]);
    done.map(drop).explain("updating")
}

/// What so many commits had a device write, and what was written afterwards.
fn commits_of(
    volume: &Volume,
    side: &'static Row,
    work: Work,
    commits: usize,
    progress: &mut Progress,
) -> Result<Written> {
    let folder = volume.folder("wal-counts")?;
    let path = folder.path().join("app.db");
    let rows = match work {
        Work::Insert(_) => 1,
        Work::Update(rows) => rows,
    };
    let db = with_rows(side, &path, rows)?;
    let tables = if let Work::Insert(tables) = work { tables } else { 1 };
    for table in 0..tables {
        let sql = format!("CREATE TABLE t{table} (id INTEGER PRIMARY KEY, body TEXT NOT NULL)");
        db.execute_batch(&sql).explain("making a table")?;
    }
    db.close().map_err(|(_, error)| error).explain("closing")?;
    let db = side.open(&path)?;
    let mut dice = Dice::new(7);
    volume.settle()?;
    let log = || folder.path().join("app.db-dashlog").metadata().map_or(0, |found| found.len());
    let (before, made) = (volume.counts()?, log());
    for done in 0..commits {
        commit(&db, work, &mut dice, count(done))?;
        if done % 100 == 0 {
            progress.step(100)?;
        }
    }
    let after = volume.counts()?;
    db.close().map_err(|(_, error)| error).explain("closing")?;
    volume.settle()?;
    let rest = volume.counts()?.since(after);
    let log = log() - made;
    Ok(Written { during: after.since(before), after: rest, log })
}

fn commit(db: &Connection, work: Work, dice: &mut Dice, turn: u64) -> Result<()> {
    let body = format!("{turn:0100}");
    let execute =
        |sql: &str| -> rusqlite::Result<()> { db.prepare_cached(sql)?.execute([]).map(drop) };
    match work {
        Work::Update(rows) => db
            .prepare_cached("UPDATE t SET body = ?1 WHERE id = ?2")
            .and_then(|mut update| update.execute((&body, dice.roll(rows))))
            .map(drop)
            .explain("updating"),
        Work::Insert(tables) => {
            if tables > 1 {
                execute("BEGIN IMMEDIATE").explain("BEGIN")?;
            }
            for table in 0..tables {
                db.prepare_cached(&format!("INSERT INTO t{table} (body) VALUES (?1)"))
                    .and_then(|mut insert| insert.execute([&body]))
                    .explain("inserting")?;
            }
            if tables > 1 { execute("COMMIT").explain("COMMIT") } else { Ok(()) }
        }
    }
}
