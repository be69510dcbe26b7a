//! A commit for people.

use std::fmt::Write;

use dash_statement::{Event, expand, literal, shown};
use dash_wal::Known;

use super::shown::Shown;

/// A line of what it is, one for each statement, and why some may be missing.
pub fn of(shown: &Shown<'_>) -> String {
    let commit = shown.commit;
    let mut out = String::new();
    if let Some(gap) = &shown.gap {
        let _ = writeln!(out, "-- {}", gap.sentence());
    }
    let _ = write!(out, "commit {}.{}", commit.generation, commit.frames.1);
    if let Known::Said(said) = &commit.known {
        let _ = write!(out, "  {}  process {}", dash_statement::utc(said.time), said.process);
        if let Some(connection) = said.connection {
            let _ = write!(out, "  connection {connection}");
        }
    }
    let plural = |count: u32| if count == 1 { "" } else { "s" };
    let _ = write!(
        out,
        "  {} page{}  record {} of {} bytes",
        shown.pages(),
        plural(shown.pages()),
        commit.record,
        commit.bytes
    );
    if commit.shared_by > 1 {
        let _ = write!(out, " for {} commits", commit.shared_by);
    }
    if commit.carried {
        let _ = write!(out, "  carried by its statements");
    }
    for event in shown.ran.iter().flat_map(|ran| &ran.events) {
        // A line of a text is none of this program's.
        let _ = write!(out, "\n    {}", statement(event).replace('\n', "\n      "));
    }
    for reason in &shown.reasons {
        let _ = write!(out, "\n    -- {reason}");
    }
    out
}

/// With its values. What a terminal obeys, and what is no UTF-8, is written as something else.
fn statement(event: &Event) -> String {
    let (sql, values) = match event {
        Event::Statement(statement) => (&statement.sql, statement.values.as_deref()),
        Event::Control(_, sql) => (sql, None),
    };
    let text = match values {
        Some(values) => expand(sql, values, literal),
        None => sql.to_vec(),
    };
    let text = shown(&text);
    format!("{};", text.trim().trim_end_matches(';').trim_end())
}
