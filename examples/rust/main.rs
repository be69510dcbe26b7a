//! dash linked into a Rust program: no library file, any version of rusqlite.
//!
//! $ cargo run -p dash-suite --example rust -- app.db
//! journal mode: shadow
//! notes: 2
//! flushes of the last commit: 1

use rusqlite::Connection;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "app.db".into());
    // Registers with the SQLite that rusqlite links, for every connection opened from now on.
    dash::register!(rusqlite)?;

    let db = Connection::open(format!("file:{path}?vfs=dash"))?;
    let mode: String = db.query_row("PRAGMA journal_mode", [], |row| row.get(0))?;
    println!("journal mode: {mode}");
    db.execute_batch("CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY, body TEXT)")?;
    db.execute("INSERT INTO notes (body) VALUES ('durable')", [])?;
    let before = flushes(&db)?;
    db.execute("INSERT INTO notes (body) VALUES ('when it returns')", [])?;
    let after = flushes(&db)?;
    let notes: i64 = db.query_row("SELECT count(*) FROM notes", [], |row| row.get(0))?;
    println!("notes: {notes}");
    println!("flushes of the last commit: {}", after - before);
    Ok(())
}

fn flushes(db: &Connection) -> rusqlite::Result<i64> {
    db.query_row("SELECT value FROM dash_stats WHERE name = 'flushes'", [], |row| row.get(0))
}
