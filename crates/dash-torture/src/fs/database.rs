//! Databases as the ring opens them: through dash, or as stock SQLite in one of its modes. And a
//! hash of their content, which is the same for the same rows in whatever file.

use std::hash::{DefaultHasher, Hasher};
use std::path::Path;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, Result};

use super::ledger::State;
use crate::engine::{Engine, GUESTS, Loaded, Statements};
use crate::engines::{ENGINES, named};
use crate::sqlite::{self, stock_uri};
use crate::variant::Variant;

/// How a database is opened and made durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Opened {
    /// Through dash, in a variant of the engine of this name.
    Dash(&'static str, &'static Variant),
    /// Through dash in this engine, where stock SQLite writes, too.
    Guests(&'static str),
    /// By stock SQLite, with this `journal_mode` and `synchronous`.
    Stock(&'static str, &'static str),
}

/// What shows that the rig can tell good from bad.
const STOCK: [Opened; 5] = [
    Opened::Stock("wal", "full"),
    Opened::Stock("delete", "extra"),
    Opened::Stock("wal", "normal"),
    Opened::Stock("delete", "off"),
    Opened::Stock("delete", "full"),
];

impl Opened {
    /// All of them: what is to be proved, and stock SQLite.
    pub fn all() -> Vec<Self> {
        let of = |engine: &&'static dyn Engine| -> Vec<Self> {
            let name = engine.name();
            let variants = engine.loaded_variants().into_iter();
            let guests = engine.loaded().map(|_| Self::Guests(name));
            variants.map(|(variant, _)| Self::Dash(name, variant)).chain(guests).collect()
        };
        ENGINES.iter().flat_map(of).chain(STOCK).collect()
    }

    /// Its name as an engine and variant.
    pub fn name(self) -> String {
        match self {
            Self::Dash(engine, variant) => format!("{engine}/{}", variant.name),
            Self::Guests(engine) => format!("{engine}/{GUESTS}"),
            Self::Stock(mode, synchronous) => format!("stock/{mode}-{synchronous}"),
        }
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::all().into_iter().find(|opened| opened.name() == name)
    }

    /// The engine's name; `None` of stock SQLite.
    pub fn engine(self) -> Option<&'static str> {
        match self {
            Self::Dash(engine, ..) | Self::Guests(engine) => Some(engine),
            Self::Stock(..) => None,
        }
    }

    /// The engine as the extension has it; `None` of stock SQLite.
    pub fn loaded(self) -> Option<&'static dyn Loaded> {
        self.engine().and_then(named).and_then(Engine::loaded)
    }

    /// The endings of the names of the files that content may be in, its own left out.
    pub fn beside(self) -> &'static [&'static str] {
        self.loaded().map_or(&[], Loaded::beside)
    }

    /// What programs say to the engine only.
    pub fn statements(self) -> Option<&'static Statements> {
        self.loaded().map(Loaded::statements)
    }

    /// Whether a transaction over several databases is there in all or in none.
    pub fn joins_databases(self) -> bool {
        let claims = self.engine().and_then(named).map(|engine| engine.subject().claims());
        claims.is_some_and(|claims| claims.several_databases)
    }

    /// What an error says that leaves a choice to the user, if any does.
    pub fn choice(self) -> Option<&'static str> {
        self.loaded().and_then(Loaded::choice)
    }

    /// Whether SQLite's own WAL mode is below, so that several connections of the engine may take
    /// turns, and stock SQLite finds what they have committed.
    pub fn is_wal(self) -> bool {
        let claims = self.engine().and_then(named).map(|engine| engine.subject().claims());
        claims.is_some_and(|claims| claims.wal_mode.is_some())
    }

    /// Whether a database that becomes smaller survives a power cut. With `delete` and `full`
    /// SQLite shortens the file after it has removed the journal and before that is durable; what
    /// it cuts off, it has not copied into the journal. ext4 writes the zeroed rest of the last
    /// block before the transaction that contains both: the journal is back, the page is gone.
    pub fn may_shrink(self) -> bool {
        self != Self::Stock("delete", "full")
    }

    /// Whether `-wal` is in the memory of the process.
    pub fn is_in_memory(self) -> bool {
        let uri = if let Self::Dash(_, variant) = self { variant.uri } else { None };
        uri.is_some_and(|uri| uri.contains(sqlite::IN_MEMORY))
    }

    /// The URI of a database, with more parameters.
    pub fn uri(self, path: &Path, more: &str) -> String {
        match self {
            Self::Dash(_, variant) => {
                sqlite::uri(path, &format!("{}{more}", variant.uri.unwrap_or_default()))
            }
            Self::Guests(engine) => {
                sqlite::uri(path, &format!("{}{more}", parameters_of(engine)[0]))
            }
            Self::Stock(..) => stock_uri(path),
        }
    }

    /// Opens `app.db` of a folder, and `aux.db` with it; creates what is not there.
    pub fn open(self, folder: &Path, is_attached: bool, settings: &[String]) -> Result<Connection> {
        let db = Connection::open(self.uri(&folder.join("app.db"), ""))?;
        db.set_prepared_statement_cache_capacity(0);
        if is_attached {
            db.execute("ATTACH ? AS aux", [self.uri(&folder.join("aux.db"), "")])?;
        }
        for setting in settings {
            // In memory it can be chosen once something was read.
            if self.is_in_memory() && setting.contains("locking_mode") {
                db.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
            }
            db.execute_batch(setting)?;
        }
        match self {
            // The modes of stock SQLite that a program may switch to are as durable as dash with
            // this.
            Self::Dash(..) | Self::Guests(_) => db.execute_batch("PRAGMA synchronous = EXTRA")?,
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
        format!("{}?mode=ro", stock_uri(path)),
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI,
    )
}

/// The URI parameters of the variants of an engine; without the engine, none.
pub fn parameters_of(engine: &str) -> Vec<&'static str> {
    let variants = named(engine).map(Engine::loaded_variants).unwrap_or_default();
    match variants.is_empty() {
        true => vec![""],
        false => variants.into_iter().map(|(_, parameters)| parameters).collect(),
    }
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
    // Some errors end the transaction. What failed first is what there is to tell.
    let ended = if db.is_autocommit() { Ok(()) } else { db.execute_batch("COMMIT") };
    state.and_then(|state| ended.map(|()| state))
}

/// What `PRAGMA integrity_check` says, unless it is "ok".
pub fn damage(db: &Connection, database: &str) -> Result<Option<String>> {
    let found: String =
        db.query_row(&format!("PRAGMA {database}.integrity_check"), [], |row| row.get(0))?;
    Ok((found != "ok").then_some(found))
}

/// An error as SQLite tells it, with what dash says of it.
pub fn explained(error: &rusqlite::Error) -> String {
    match sqlite::last_error() {
        more if more.is_empty() => error.to_string(),
        more => format!("{error}; {more}"),
    }
}
