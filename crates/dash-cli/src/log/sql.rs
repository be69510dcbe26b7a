//! A commit as SQL that the `sqlite3` shell runs.

use dash_statement::{
    Event, Statement, Unwritten, control_for_shell, exact, expand, for_shell, has_parameters, shown,
};
use dash_wal::Known;

use super::shown::Shown;

/// Its statements, in a transaction if there are several. What is missing is a comment, and so is
/// what is no statement: a log may be anybody's. Bytes: SQL need not be UTF-8.
pub fn of(shown: &Shown<'_>) -> Vec<u8> {
    let commit = shown.commit;
    let gap = shown.gap.as_ref().map_or(String::new(), |gap| format!("-- {}\n", gap.sentence()));
    let name = format!("{gap}-- commit {}.{}", commit.generation, commit.frames.1);
    let mut out = name.into_bytes();
    if let Known::Said(said) = &commit.known {
        let said = format!(", {}, process {}", dash_statement::utc(said.time), said.process);
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
            Event::Control(control, sql) => put(&mut out, control_for_shell(*control, sql), sql),
        }
    }
    if !is_one {
        line(&mut out, b"COMMIT;");
    }
    out
}

fn statement(out: &mut Vec<u8>, it: &Statement) {
    if let Some(clock) = it.clock {
        line(out, format!("-- the clock said {}", dash_statement::utc(clock)).as_bytes());
    }
    match &it.values {
        None if has_parameters(&it.sql) => comment(out, "its values are not known", &it.sql),
        values => {
            let sql = expand(&it.sql, values.as_deref().unwrap_or_default(), exact);
            put(out, for_shell(&sql), &sql);
        }
    }
}

/// What the shell is to run; or a text that it is not to run, with the reason.
fn put(out: &mut Vec<u8>, written: Result<Vec<u8>, Unwritten>, sql: &[u8]) {
    match written {
        Ok(sql) => line(out, &sql),
        Err(reason) => comment(out, &reason.to_string(), sql),
    }
}

/// A text as a comment, each line of it. No line of it ends before the shell's.
fn comment(out: &mut Vec<u8>, what: &str, sql: &[u8]) {
    line(out, format!("-- {what}:").as_bytes());
    for part in shown(sql).split('\n') {
        line(out, format!("-- {part}").as_bytes());
    }
}

fn line(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'\n');
    out.extend(text);
}
