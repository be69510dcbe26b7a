//! What the programs of kind `sql` say to SQLite, and how what it answers is compared.

use rusqlite::{Connection, Result};

use crate::random::Dice;
use crate::sim::content::Content;
use crate::sim::explore::Explorer;

/// Settings of every connection. A cache of a few pages makes SQLite write pages before the commit.
pub fn prepare(db: &Connection, explorer: &Explorer) -> Result<()> {
    let page = explorer.setup.page;
    let journal = explorer.subject.sqlite_files().journal_mode();
    let exclusive = if explorer.plan.is_exclusive() { "EXCLUSIVE" } else { "NORMAL" };
    let vacuum = explorer.plan.seed % 3;
    db.set_prepared_statement_cache_capacity(0);
    db.execute_batch(&format!(
        "PRAGMA journal_mode={journal}; PRAGMA temp_store=MEMORY; PRAGMA cache_size=8;
         PRAGMA synchronous=FULL; PRAGMA locking_mode={exclusive};
         PRAGMA page_size={page}; PRAGMA auto_vacuum={vacuum};"
    ))
}

/// Begins a transaction and changes something; the caller ends it.
pub fn transaction(db: &Connection, dice: &mut Dice) -> Result<()> {
    db.execute_batch(
        "BEGIN IMMEDIATE;
         CREATE TABLE IF NOT EXISTS a(k INTEGER PRIMARY KEY, v BLOB, n INT);
         CREATE TABLE IF NOT EXISTS b(k TEXT PRIMARY KEY, v BLOB) WITHOUT ROWID;",
    )?;
    for _ in 0..=dice.below(3) {
        statement(db, dice)?;
    }
    // No two transactions leave the same.
    let stamp = i64::try_from(dice.below(1 << 48)).unwrap_or_default();
    db.execute("INSERT INTO a(v, n) VALUES (zeroblob(10), ?1)", [stamp]).map(drop)
}

fn statement(db: &Connection, dice: &mut Dice) -> Result<()> {
    let (many, size, seed) = (1 + dice.below(20), 10 + dice.below(900), dice.below(1000));
    let text = match dice.below(10) {
        0..=2 => format!(
            "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM c WHERE i<{many})
             INSERT INTO a(v, n) SELECT zeroblob({size}), i*{seed} FROM c"
        ),
        3 => format!("INSERT OR REPLACE INTO b VALUES ('k{seed}', zeroblob({}))", size * 9),
        4 => {
            format!("UPDATE a SET n = n + {seed}, v = zeroblob({size}) WHERE k % 3 = {}", seed % 3)
        }
        5 => format!("DELETE FROM a WHERE k % 4 = {}", seed % 4),
        6 => format!("DELETE FROM b WHERE k < 'k{seed}'"),
        7 => "CREATE INDEX IF NOT EXISTS an ON a(n)".to_owned(),
        8 => "DROP INDEX IF EXISTS an".to_owned(),
        _ => format!(
            "SAVEPOINT s; INSERT INTO a(v, n) VALUES (zeroblob({}), {seed}); UPDATE a SET n = n + 1;
             ROLLBACK TO s; RELEASE s; PRAGMA incremental_vacuum(3)",
            size * 5
        ),
    };
    db.execute_batch(&text)
}

/// What is in the database: nothing, or a number for each row.
pub fn digest(db: &Connection) -> Result<Content> {
    let exists = "SELECT count(*) FROM sqlite_schema WHERE name IN ('a', 'b')";
    if db.query_row(exists, [], |row| row.get::<_, i64>(0))? == 0 {
        return Ok(Content::new());
    }
    let rows = "SELECT k, length(v), n FROM a UNION ALL SELECT k, length(v), -1 FROM b ORDER BY 1";
    let mut statement = db.prepare(rows)?;
    let mut rows = statement.query([])?;
    let mut content = vec![1];
    while let Some(row) = rows.next()? {
        let text = format!("{:?}", [row.get_ref(0)?, row.get_ref(1)?, row.get_ref(2)?]);
        // FNV-1a: nothing here is adversarial.
        let hash = text
            .bytes()
            .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        content.push(hash);
    }
    Ok(content)
}

/// `PRAGMA integrity_check`.
pub fn is_sound(db: &Connection) -> Result<bool> {
    db.query_row("PRAGMA integrity_check(1)", [], |row| Ok(row.get::<_, String>(0)? == "ok"))
}
