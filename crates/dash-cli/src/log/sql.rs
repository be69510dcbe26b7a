//! A commit as SQL that can be run.

use std::fmt::Write;

use dash_statement::Event;
use dash_wal::Known;

use super::{Shown, text, time};

/// Its statements, in a transaction if there are several. What is missing is a comment.
pub fn of(shown: &Shown<'_>) -> String {
    let commit = shown.commit;
    let mut out = format!("-- commit {}.{}", commit.generation, commit.frames.1);
    if let Known::Said(said) = &commit.known {
        let _ = write!(out, ", {}, process {}", time::utc(said.time), said.process);
    }
    for reason in &shown.reasons {
        let _ = write!(out, "\n-- {reason}");
    }
    let events = shown.ran.as_ref().map_or(&[][..], |ran| &ran.events);
    let is_one = events.len() == 1;
    if events.len() > 1 {
        out.push_str("\nBEGIN;");
    }
    for event in events {
        match event {
            Event::Statement(it) if it.values.is_none() && takes_values(&it.sql) => {
                let _ = write!(out, "\n-- its values are not known: {}", commented(event));
            }
            _ => {
                if let Event::Statement(it) = event
                    && let Some(clock) = it.clock
                {
                    let _ = write!(out, "\n-- the clock said {}", time::utc(clock));
                }
                let _ = write!(out, "\n{}", text::statement(event));
            }
        }
    }
    if !events.is_empty() && !is_one {
        out.push_str("\nCOMMIT;");
    }
    out
}

/// Whether a statement has parameters: with another value it is another text.
fn takes_values(sql: &[u8]) -> bool {
    dash_statement::expand(sql, &[]).as_bytes() != sql
}

fn commented(event: &Event) -> String {
    text::statement(event).replace('\n', "\n-- ")
}
