//! What differs between two databases: their schema, the rows of their tables, and what the header
//! holds for programs.

use rusqlite::Connection;
use rusqlite::types::{Value, ValueRef};

use crate::Result;
use crate::guarded::reader;
use crate::image::Image;
use crate::limits::Limits;

/// Of page 1: `PRAGMA user_version`, and `PRAGMA application_id`.
const PROGRAMS: [(usize, &str); 2] = [(60, "user_version"), (68, "application_id")];

/// The first difference; `None`: they have the same content.
pub fn difference(target: &Image, copy: &Image, limits: &Limits) -> Result<Option<String>> {
    let [one, two] = [target.get(1)?, copy.get(1)?].map(Option::unwrap_or_default);
    for (at, name) in PROGRAMS {
        if one.get(at..at + 4) != two.get(at..at + 4) {
            return Ok(Some(format!("PRAGMA {name} is another one")));
        }
    }
    let (one, two) = (reader(target, limits)?, reader(copy, limits)?);
    limits.during(|| content(&one, &two)).0
}

/// The first difference in what SQLite reads.
fn content(one: &Connection, two: &Connection) -> Result<Option<String>> {
    let schema = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name, type";
    let (mine, theirs) = (rows(one, schema)?, rows(two, schema)?);
    if mine != theirs {
        return Ok(Some("the schema is another one".to_owned()));
    }
    for row in mine {
        let [Value::Text(kind), Value::Text(name), _, sql] = &row[..] else { continue };
        let is_virtual = matches!(sql, Value::Text(sql) if is_virtual(sql));
        if kind != "table" || is_virtual {
            continue;
        }
        let query = query(one, name)?;
        if let Some(number) = first_difference(one, two, &query)? {
            return Ok(Some(format!("table {name} differs from its row {number} on")));
        }
    }
    Ok(None)
}

fn is_virtual(sql: &str) -> bool {
    sql.trim_start().get(..14).is_some_and(|start| start.eq_ignore_ascii_case("CREATE VIRTUAL"))
}

/// All of a table: rows in their order, with their number where they have one. Statistics have
/// none that means anything.
fn query(db: &Connection, table: &str) -> Result<String> {
    let quoted = table.replace('"', "\"\"");
    if table.starts_with("sqlite_stat") {
        return Ok(format!("SELECT * FROM \"{quoted}\" ORDER BY 1, 2, 3"));
    }
    let numbered = format!("SELECT rowid, * FROM \"{quoted}\" ORDER BY rowid");
    match db.prepare(&numbered) {
        Ok(_) => Ok(numbered),
        Err(_) => Ok(format!("SELECT * FROM \"{quoted}\"")),
    }
}

fn rows(db: &Connection, sql: &str) -> Result<Vec<Vec<Value>>> {
    let mut prepared = db.prepare(sql)?;
    let columns = prepared.column_count();
    let row = |row: &rusqlite::Row<'_>| (0..columns).map(|column| row.get(column)).collect();
    Ok(prepared.query_map([], row)?.collect::<rusqlite::Result<_>>()?)
}

/// The number of the first row that is another one, from 1.
fn first_difference(one: &Connection, two: &Connection, sql: &str) -> Result<Option<u64>> {
    let (mut one, mut two) = (one.prepare(sql)?, two.prepare(sql)?);
    let columns = one.column_count();
    let (mut one, mut two) = (one.query([])?, two.query([])?);
    for number in 1.. {
        let (mine, theirs) = (one.next()?, two.next()?);
        let (mine, theirs) = match (mine, theirs) {
            (None, None) => return Ok(None),
            (Some(mine), Some(theirs)) => (mine, theirs),
            _ => return Ok(Some(number)),
        };
        for column in 0..columns {
            if !is_same(mine.get_ref(column)?, theirs.get_ref(column)?) {
                return Ok(Some(number));
            }
        }
    }
    Ok(None)
}

fn is_same(one: ValueRef<'_>, two: ValueRef<'_>) -> bool {
    match (one, two) {
        (ValueRef::Real(one), ValueRef::Real(two)) => one.to_bits() == two.to_bits(),
        _ => one == two,
    }
}
