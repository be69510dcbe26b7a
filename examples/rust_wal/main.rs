//! dash's mode wal linked into a Rust program.
//!
//! $ cargo run -p dash-suite --example rust_wal -- app.db
//! journal mode: wal
//! durability: full
//! notes: 2

use std::time::Duration;

use rusqlite::Connection;

/// Opens a connection; one for each thread.
fn connect(path: &str) -> rusqlite::Result<Connection> {
    let db = Connection::open(format!("file:{path}?vfs=dash"))?;
    db.busy_timeout(Duration::from_secs(30))?;
    // The database keeps it.
    db.pragma_update(None, "journal_mode", "WAL")?;
    // NORMAL: a power loss may take the last commits.
    db.pragma_update(None, "synchronous", "FULL")?;
    Ok(db)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "app.db".into());
    // Registers with the SQLite that rusqlite links, for every connection opened from now on.
    dash::register!(rusqlite)?;

    let db = connect(&path)?;
    let one = |sql: &str| db.query_row(sql, [], |row| row.get::<_, String>(0));
    println!("journal mode: {}", one("PRAGMA journal_mode")?);
    println!("durability: {}", one("SELECT value FROM dash_stats WHERE name = 'durability'")?);
    db.execute_batch("CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY, body TEXT)")?;
    for body in ["durable", "when it returns"] {
        db.execute("INSERT INTO notes (body) VALUES (?)", [body])?;
    }
    println!("notes: {}", one("SELECT CAST(count(*) AS TEXT) FROM notes")?);
    Ok(())
}
