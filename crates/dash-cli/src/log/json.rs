//! A commit for programs: one object. Values are SQL literals, as numbers of JSON are not exact.

use dash_statement::{Event, Statement, literal};
use dash_wal::Known;
use serde_json::{Value, json};

use super::gaps::Gap;
use super::shown::Shown;

/// The object.
pub fn of(shown: &Shown<'_>) -> Value {
    let commit = shown.commit;
    let said = match &commit.known {
        Known::Said(said) => Some(said),
        _ => None,
    };
    json!({
        "missing_before": shown.gap.as_ref().map(Gap::json),
        "generation": commit.generation,
        "first_frame": commit.frames.0,
        "last_frame": commit.frames.1,
        "pages": shown.pages(),
        "database_pages": commit.database_pages,
        "carried_by_statements": commit.carried,
        "record": commit.record,
        "record_bytes": commit.bytes,
        "record_commits": commit.shared_by,
        "time_ms": said.map(|said| said.time),
        "process": said.map(|said| said.process),
        "connection": said.and_then(|said| said.connection),
        "statements": shown.ran.as_ref().map(|ran| ran.events.iter().map(event).collect::<Vec<_>>()),
        "reasons": shown.reasons,
    })
}

fn event(event: &Event) -> Value {
    match event {
        Event::Statement(Statement { sql, values, clock, nested }) => json!({
            "sql": String::from_utf8_lossy(sql),
            "values": values.as_ref().map(|values| values.iter().map(literal).collect::<Vec<_>>()),
            "clock_ms": clock,
            "nested": nested,
        }),
        Event::Control(_, sql) => json!({ "sql": String::from_utf8_lossy(sql) }),
    }
}
