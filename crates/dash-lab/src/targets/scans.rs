//! Full scans of a 100 MB database, page cache warm, with and without memory-mapped reads.

use std::fs::File;
use std::path::Path;

use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
use rusqlite::Connection;

use super::bench::Bench;
use crate::failure::{Explain, Result};
use crate::interleave::{self, Lane};
use crate::report::{Section, Target};
use crate::sides::{DELETE, READS_ONLY, SINGLE};

const ROUNDS: usize = 25;
/// Rows of 400 bytes that make 100 MB.
const ROWS: i64 = 230_000;
const QUERIES: [(&str, &str); 2] = [
    ("count(*)", "SELECT count(*) FROM t"),
    ("sum(length(body))", "SELECT sum(length(body)) FROM t"),
];
const MAPPINGS: [(&str, &str); 2] =
    [("no mmap", "PRAGMA mmap_size=0"), ("mmap 256 MiB", "PRAGMA mmap_size=268435456")];

/// Makes the section.
pub fn measure(bench: &Bench) -> Result<Section> {
    let mut section = Section::new(
        "scans",
        "full scan of 100 MB, warm; stock unix VFS's time / dash's",
        READS_ONLY,
    );
    let folder = bench.volumes.v()?.folder("scans")?;
    let [seed, stock_path, dash_path] =
        ["seed.db", "stock.db", "dash.db"].map(|name| folder.path().join(name));
    fill(&DELETE.open(&seed)?)?;
    for path in [&stock_path, &dash_path] {
        std::fs::copy(&seed, path).explain("copying the database")?;
    }
    let stock = DELETE.open(&stock_path)?;
    let dash = SINGLE.open(&dash_path)?;
    dash.execute_batch("CREATE TABLE made_by_dash (x)").explain("a first commit by dash")?;
    // How a file was written decides how the page cache holds it, and so what reading costs: let
    // the first scan bring all of them in anew, by reading ahead.
    for path in [&stock_path, &dash_path, &dash_path.with_extension("db-shadow")] {
        forget(path)?;
    }
    for (mapping, pragma) in MAPPINGS {
        for (name, query) in QUERIES {
            let mut lanes = Vec::new();
            for (side, db) in [("dash", &dash), ("stock", &stock)] {
                db.query_row(pragma, [], |_| Ok(())).explain(pragma)?;
                lanes.push(lane(side, db, query)?);
            }
            let samples = interleave::run(
                &format!("scans, {mapping}, {name}"),
                None,
                &mut lanes,
                bench.many(ROUNDS),
                1,
            )?;
            if let [dash, stock] = &samples[..] {
                let ratio = stock.ratio_to(dash, |block| block.mean);
                section.target(
                    format!("{mapping}, {name}: stock / dash"),
                    ratio,
                    "x",
                    Target::AtLeast(0.97),
                );
                section.note(format!(
                    "{mapping}, {name}: dash {:.1} ms, stock {:.1} ms",
                    dash.typical(|block| block.mean) / 1000.0,
                    stock.typical(|block| block.mean) / 1000.0
                ));
            }
        }
    }
    Ok(section)
}

fn fill(db: &Connection) -> Result<()> {
    db.execute_batch(
        "PRAGMA synchronous=OFF; CREATE TABLE t (id INTEGER PRIMARY KEY, body BLOB NOT NULL)",
    )
    .explain("making a table")?;
    let sql = "INSERT INTO t SELECT value, zeroblob(400) FROM (WITH RECURSIVE n(value) AS
               (VALUES(1) UNION ALL SELECT value + 1 FROM n WHERE value < ?1) SELECT value FROM n)";
    db.execute(sql, [ROWS]).map(drop).explain("filling a table")
}

/// Takes a file out of the page cache.
fn forget(path: &Path) -> Result<()> {
    let file = File::open(path).explain(format!("opening {}", path.display()))?;
    file.sync_all().explain("flushing")?;
    posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED).explain("posix_fadvise")
}

fn lane<'a>(side: &str, db: &'a Connection, query: &str) -> Result<Lane<'a>> {
    let mut statement = db.prepare(query).explain("preparing a scan")?;
    let mut step = move || {
        let sum: i64 = statement.query_row([], |row| row.get(0)).explain("scanning")?;
        std::hint::black_box(sum);
        Ok(())
    };
    step()?;
    Ok(Lane::new(side, step))
}
