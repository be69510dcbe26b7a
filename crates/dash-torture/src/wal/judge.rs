//! What the judge of `dash_statement` calls provable by its text is that to SQLite, too: an
//! authorizer sees rows of one table and no function, the program that SQLite makes has no loop and
//! no program inside, and there is one statement. A savepoint's statement asks for that savepoint.

use std::sync::{Arc, Mutex};

use dash_statement::{
    Context, Control, Event, Schema, Sql, Statement, Transaction, Value, provable,
};
use rusqlite::fallible_iterator::FallibleIterator;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::{Batch, Connection};

use super::texts::{self, Table};
use crate::again::{Again, Assignment};
use crate::faults::numbered::{self, Counts};
use crate::faults::part::GoOn;
use crate::random::Dice;
use crate::{Options, Summary};

/// The part's name, and its workers' role.
pub const ROLE: &str = "judge";
/// Texts of a case.
const TEXTS: u64 = 250;

/// The table with `AUTOINCREMENT`.
const COUNTED: &str = "b-c";
/// Instructions of SQLite's that none of them takes.
const AGAINST: [&str; 5] = ["Yield", "Program", "Function", "PureFunc", "VUpdate"];
const LOOPS: [&str; 4] = ["Rewind", "Last", "Next", "Prev"];

/// What may be in a schema, and the table it makes, if statements are to be about that.
static SCHEMA: [(&str, Option<Table>); 14] = [
    ("CREATE TABLE t(k INTEGER PRIMARY KEY, v, x)", Some(texts::T)),
    (
        "CREATE TABLE a(id TEXT, n DEFAULT 1, m REAL DEFAULT - 1.5, PRIMARY KEY (id, n)) WITHOUT ROWID",
        Some(Table { name: "a", columns: &["id", "n", "m"], key: &["id", "n"] }),
    ),
    (
        "CREATE TABLE \"b-c\"(\"order\" INTEGER PRIMARY KEY AUTOINCREMENT, \"a-b\" BLOB UNIQUE NOT NULL)",
        Some(Table { name: COUNTED, columns: &["order", "a-b"], key: &["a-b"] }),
    ),
    (
        "CREATE TABLE d(n INT UNIQUE ON CONFLICT REPLACE, m ANY) STRICT",
        Some(Table { name: "d", columns: &["n", "m"], key: &["n"] }),
    ),
    (
        "CREATE TABLE e(k PRIMARY KEY, v CHECK (v > 0))",
        Some(Table { name: "e", columns: &["k", "v"], key: &["k"] }),
    ),
    (
        "CREATE TABLE f(k PRIMARY KEY, v AS (abs(k)))",
        Some(Table { name: "f", columns: &["k"], key: &["k"] }),
    ),
    (
        "CREATE TABLE g(k PRIMARY KEY, v REFERENCES t)",
        Some(Table { name: "g", columns: &["k", "v"], key: &["k"] }),
    ),
    (
        "CREATE VIRTUAL TABLE h USING fts5(k)",
        Some(Table { name: "h", columns: &["k"], key: &["rowid"] }),
    ),
    (
        "CREATE VIEW u AS SELECT k, v FROM t",
        Some(Table { name: "u", columns: &["k", "v"], key: &["k"] }),
    ),
    ("CREATE UNIQUE INDEX i ON t(v, x)", None),
    ("CREATE INDEX j ON t(abs(v))", None),
    ("CREATE INDEX l ON t(v) WHERE x > 1", None),
    ("CREATE TRIGGER m AFTER UPDATE ON t BEGIN DELETE FROM a; END", None),
    ("CREATE TRIGGER n INSTEAD OF DELETE ON u BEGIN DELETE FROM t; END", None),
];

/// What it asked SQLite for that is not of a list, since this was looked at last.
type Asked = Arc<Mutex<Vec<String>>>;

/// A database with a schema, to SQLite and to the judge.
struct Bench {
    db: Connection,
    schema: Schema,
    tables: Vec<&'static Table>,
    asked: Asked,
    /// Some table's rows have numbers that are used once.
    counts: bool,
}

fn is_allowed(it: &AuthContext<'_>) -> bool {
    let of_main = it.database_name == Some("main") && it.accessor.is_none();
    match it.action {
        AuthAction::Insert { table_name }
        | AuthAction::Delete { table_name }
        | AuthAction::Update { table_name, .. }
        | AuthAction::Read { table_name, .. } => of_main && !table_name.starts_with("sqlite_"),
        AuthAction::Savepoint { .. } => true,
        _ => false,
    }
}

/// An instruction's address, its name, and where it leads.
fn instruction(row: &rusqlite::Row<'_>) -> rusqlite::Result<(i64, String, i64)> {
    Ok((row.get("addr")?, row.get("opcode")?, row.get("p2")?))
}

/// Its schema to the judge.
fn schema_of(db: &Connection) -> rusqlite::Result<Schema> {
    let mut schema = Schema::default();
    let mut rows = db.prepare("SELECT type, tbl_name, sql FROM sqlite_schema")?;
    let mut rows = rows.query([])?;
    while let Some(row) = rows.next()? {
        let text =
            |column: usize| row.get_ref(column)?.as_bytes_or_null().map_err(rusqlite::Error::from);
        schema.add(text(0)?.unwrap_or_default(), text(1)?.unwrap_or_default(), text(2)?);
    }
    Ok(schema)
}

impl Bench {
    fn new(dice: &mut Dice) -> rusqlite::Result<Self> {
        let (mut db, asked) = (Connection::open_in_memory()?, Asked::default());
        let mut tables = Vec::new();
        for (number, (sql, table)) in SCHEMA.iter().enumerate() {
            // The first ones are ordinary.
            let is_there = number == 0 || dice.one_in(if number < 4 { 2 } else { 12 });
            if is_there && db.execute_batch(sql).is_ok() {
                tables.extend(table);
            }
        }
        let schema = schema_of(&db)?;
        let seen = Arc::clone(&asked);
        db.authorizer(Some(move |it: AuthContext<'_>| {
            if !is_allowed(&it)
                && let Ok(mut seen) = seen.lock()
            {
                seen.push(format!("{:?}", it.action));
            }
            Authorization::Allow
        }))?;
        let counts = tables.iter().any(|table| table.name == COUNTED);
        Ok(Self { db, schema, tables, asked, counts })
    }

    fn is_provable(&self, text: &str, control: Option<Control>) -> bool {
        let sql = Sql::from(text.as_bytes());
        let values = Some(vec![Value::Null; 9]);
        let event = match control {
            Some(control) => Event::Control(control, sql),
            None => Event::Statement(Statement { sql, values, clock: None, nested: 0 }),
        };
        let context = Some(Context::default());
        let ran = Transaction { events: vec![event], context, ..Transaction::default() };
        provable(&ran, &self.schema).is_ok()
    }

    /// Everything that a text asks for and must not; `None`: it is no statement.
    fn against(&self, text: &str, control: Option<Control>) -> Option<Vec<String>> {
        self.taken();
        let mut batch = Batch::new(&self.db, text);
        let first = batch.next();
        let mut found = self.taken();
        let changes = first.ok()?.is_some_and(|it| !it.readonly());
        found.extend((control.is_none() && !changes).then(|| "nothing is changed".to_owned()));
        if matches!(batch.next(), Ok(Some(_))) {
            found.push("another statement".to_owned());
        }
        // One with `AUTOINCREMENT` looks for its table's number.
        if !self.counts
            && let Ok(mut program) = self.db.prepare(&format!("EXPLAIN {text}"))
        {
            let (mut rows, mut loops) = (program.raw_query(), true);
            while let Ok(Some(row)) = rows.next() {
                let (at, name, to) = instruction(row).ok()?;
                // They are passed over at once where a part of the condition is never true.
                loops &= !(name == "Goto" && at < 5 && to > at);
                let is_bad = AGAINST.contains(&&name[..]) || loops && LOOPS.contains(&&name[..]);
                found.extend(is_bad.then_some(name));
            }
        }
        Some(found)
    }

    fn taken(&self) -> Vec<String> {
        self.asked.lock().map(|mut asked| std::mem::take(&mut *asked)).unwrap_or_default()
    }
}

fn case(dice: &mut Dice) -> Result<Counts, String> {
    let bench = Bench::new(dice).map_err(|error| format!("a schema: {error}"))?;
    let (mut provable, mut statements) = (0, 0);
    for _ in 0..TEXTS {
        let kinds = [Control::Savepoint, Control::Release];
        let control = if dice.one_in(8) { dice.pick(&kinds) } else { None };
        let valid = match dice.below(8) {
            0 => texts::foreign(dice, "/nowhere"),
            _ if control.is_some() => texts::control(dice),
            _ => {
                let table = bench.tables[dice.index(bench.tables.len())];
                texts::statement(dice, table)
            }
        };
        let text = texts::spoilt(&valid, dice);
        if !bench.is_provable(&text, control) {
            continue;
        }
        provable += 1;
        // Of a savepoint's text another one is made, which is run.
        let made = control.and_then(|it| it.statement(text.as_bytes()));
        for text in [Some(&text), made.as_ref()].into_iter().flatten() {
            let Some(found) = bench.against(text, control) else { continue };
            if !found.is_empty() {
                return Err(format!("called provable, asks for {found:?}: {text:?}"));
            }
            statements += 1;
        }
    }
    Ok(vec![("texts", TEXTS), ("provable", provable), ("asked-of-sqlite", statements)])
}

/// The worker.
pub fn worker(assignment: &Assignment) -> Result<(), String> {
    numbered::worker(assignment, || Ok(Box::new(case)))
}

/// The part.
pub fn run(options: &Options, again: &Again, summary: &mut Summary, go_on: &mut GoOn<'_>) {
    numbered::run(ROLE, options, again, summary, go_on);
}
