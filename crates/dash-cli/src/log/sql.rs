//! A commit as SQL that the `sqlite3` shell runs.

use dash_statement::{Event, Statement, exact, expand, for_shell, has_parameters};
use dash_wal::Known;

use super::{Shown, time};

/// Its statements, in a transaction if there are several. What is missing is a comment. Bytes: SQL
/// need not be UTF-8.
pub fn of(shown: &Shown<'_>) -> Vec<u8> {
    let commit = shown.commit;
    let gap = shown.gap.as_ref().map_or(String::new(), |gap| format!("-- {}\n", gap.sentence()));
    let name = format!("{gap}-- commit {}.{}", commit.generation, commit.frames.1);
    let mut out = name.into_bytes();
    if let Known::Said(said) = &commit.known {
        let said = format!(", {}, process {}", time::utc(said.time), said.process);
        out.extend(said.into_bytes());
    }
    for reason in &shown.reasons {
        line(&mut out, format!("-- {reason}").as_bytes());
    }
    let events = shown.ran.clone().map_or(Vec::new(), |ran| ran.once().events);
    let is_one = events.len() <= 1;
    if !is_one {
        line(&mut out, b"BEGIN;");
    }
    for event in &events {
        match event {
            Event::Statement(it) => statement(&mut out, it),
            Event::Control(_, sql) => line(&mut out, &for_shell(sql)),
        }
    }
    if !is_one {
        line(&mut out, b"COMMIT;");
    }
    out
}

fn statement(out: &mut Vec<u8>, it: &Statement) {
    if let Some(clock) = it.clock {
        line(out, format!("-- the clock said {}", time::utc(clock)).as_bytes());
    }
    match &it.values {
        None if has_parameters(&it.sql) => {
            line(out, b"-- its values are not known:");
            for part in it.sql.split(|byte| *byte == b'\n') {
                line(out, &[b"-- ", part].concat());
            }
        }
        values => {
            let values = values.as_deref().unwrap_or_default();
            line(out, &for_shell(&expand(&it.sql, values, exact)));
        }
    }
}

fn line(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'\n');
    out.extend(text);
}
