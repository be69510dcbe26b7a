//! Databases as the ring opens them: through dash, or as stock SQLite in one of its modes. And a
//! hash of their content, which is the same for the same rows in whatever file.

use std::hash::{DefaultHasher, Hasher};
use std::path::Path;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, Result};

use super::ledger::State;

/// How a database is opened and made durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Opened {
    /// Through dash, with this `dash_commit`.
    Dash(&'static str),
    /// Through dash, where stock SQLite writes, too.
    Guests,
    /// By stock SQLite, with this `journal_mode` and `synchronous`.
    Stock(&'static str, &'static str),
}

impl Opened {
    /// All of them: what is to be proved, and what shows that the rig can tell good from bad.
    pub const ALL: [Self; 9] = [
        Self::Dash("single"),
        Self::Dash("paper"),
        Self::Dash("exclusive"),
        Self::Guests,
        Self::Stock("wal", "full"),
        Self::Stock("delete", "extra"),
        Self::Stock("wal", "normal"),
        Self::Stock("delete", "off"),
        Self::Stock("delete", "full"),
    ];

    /// Its name as an engine and variant.
    pub fn name(self) -> String {
        match self {
            Self::Dash(protocol) => format!("shadow/{protocol}"),
            Self::Guests => "shadow/guests".to_owned(),
            Self::Stock(mode, synchronous) => format!("stock/{mode}-{synchronous}"),
        }
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|opened| opened.name() == name)
    }

    /// Whether a database that becomes smaller survives a power cut. With `delete` and `full`
    /// SQLite shortens the file after it has removed the journal and before that is durable; what
    /// it cuts off, it has not copied into the journal. ext4 writes the zeroed rest of the last
    /// block before the transaction that contains both: the journal is back, the page is gone.
    pub fn may_shrink(self) -> bool {
        self != Self::Stock("delete", "full")
    }

    fn uri(self, path: &Path) -> String {
        let path = escaped(path);
        match self {
            Self::Dash(protocol) => format!("file:{path}?vfs=dash&dash_commit={protocol}"),
            Self::Guests => format!("file:{path}?vfs=dash"),
            Self::Stock(..) => format!("file:{path}"),
        }
    }

    /// Opens `app.db` of a folder, and `aux.db` with it; creates what is not there.
    pub fn open(self, folder: &Path, is_attached: bool, settings: &[String]) -> Result<Connection> {
        let db = Connection::open(self.uri(&folder.join("app.db")))?;
        db.set_prepared_statement_cache_capacity(0);
        if is_attached {
            db.execute("ATTACH ? AS aux", [self.uri(&folder.join("aux.db"))])?;
        }
        for setting in settings {
            db.execute_batch(setting)?;
        }
        match self {
            // The modes of stock SQLite that a program may switch to are as durable as dash with
            // this.
            Self::Dash(_) | Self::Guests => db.execute_batch("PRAGMA synchronous = EXTRA")?,
            Self::Stock(mode, synchronous) => db.execute_batch(&format!(
                "PRAGMA journal_mode = {mode}; PRAGMA synchronous = {synchronous}; \
                 PRAGMA wal_autocheckpoint = 60"
            ))?,
        }
        Ok(db)
    }
}

/// Opens a file as a stock reader does that must not change it.
pub fn read_only(path: &Path) -> Result<Connection> {
    Connection::open_with_flags(
        format!("file:{}?mode=ro", escaped(path)),
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI,
    )
}

/// Loads the extension into the SQLite that is linked here; it stays loaded.
#[expect(unsafe_code, reason = "loading a shared library runs its code, and this one is our own")]
pub fn load(library: &Path) -> Result<()> {
    let scratch = Connection::open_in_memory()?;
    // SAFETY: the file is the extension of this project; its entry point follows SQLite's contract.
    unsafe {
        let _guard = rusqlite::LoadExtensionGuard::new(&scratch)?;
        scratch.load_extension(library, Some("sqlite3_dash_init"))
    }
}

fn escaped(path: &Path) -> String {
    let text = path.to_string_lossy();
    let keep = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-~".contains(&byte);
    text.bytes()
        .map(|byte| match keep(byte) {
            true => char::from(byte).to_string(),
            false => format!("%{byte:02X}"),
        })
        .collect()
}

/// A hash of all that is in a database: its schema, and each table's rows with their row numbers.
pub fn content(db: &Connection, database: &str) -> Result<u64> {
    let mut hasher = DefaultHasher::new();
    let mut schema = db.prepare(&format!(
        "SELECT type, name, sql FROM {database}.sqlite_schema WHERE name NOT LIKE 'sqlite_%' ORDER BY name"
    ))?;
    let mut tables = Vec::new();
    let mut rows = schema.query([])?;
    while let Some(row) = rows.next()? {
        let (kind, name, sql): (String, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        hasher.write(sql.as_bytes());
        if kind == "table" {
            tables.push(name);
        }
    }
    for table in tables {
        let mut all =
            db.prepare(&format!("SELECT rowid, * FROM {database}.\"{table}\" ORDER BY 1"))?;
        let columns = all.column_count();
        let mut rows = all.query([])?;
        while let Some(row) = rows.next()? {
            for column in 0..columns {
                match row.get_ref(column)? {
                    ValueRef::Null => hasher.write_u8(0),
                    ValueRef::Integer(number) => hasher.write_i64(number),
                    ValueRef::Real(number) => hasher.write_u64(number.to_bits()),
                    ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
                        hasher.write_usize(bytes.len());
                        hasher.write(bytes);
                    }
                }
            }
        }
    }
    Ok(hasher.finish())
}

/// The content of both databases, in one transaction.
pub fn state(db: &Connection, is_attached: bool) -> Result<State> {
    db.execute_batch("BEGIN")?;
    let state = content(db, "main")
        .and_then(|main| Ok((main, if is_attached { content(db, "aux")? } else { 0 })));
    db.execute_batch("COMMIT")?;
    state
}

/// What `PRAGMA integrity_check` says, unless it is "ok".
pub fn damage(db: &Connection, database: &str) -> Result<Option<String>> {
    let found: String =
        db.query_row(&format!("PRAGMA {database}.integrity_check"), [], |row| row.get(0))?;
    Ok((found != "ok").then_some(found))
}

/// An error as SQLite tells it, with what dash says of it.
pub fn explained(error: &rusqlite::Error) -> String {
    let more = Connection::open_in_memory().and_then(|db| {
        db.query_row("SELECT dash_last_error()", [], |row| row.get::<_, Option<String>>(0))
    });
    match more {
        Ok(Some(more)) if !more.is_empty() => format!("{error}; {more}"),
        _ => error.to_string(),
    }
}
