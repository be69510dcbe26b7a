//! AndroBench (Kim and Kim, ICISTM 2012), from its published source: a table of 17 columns without
//! an index; 1,024 autocommit inserts, 1,024 updates of 15 columns and 1,024 deletes, each finding
//! its row by a scan.

use rusqlite::{Connection, Statement, params_from_iter, types::Value};

use super::data::Permutation;
use super::session::{Session, Step, Worker, Workload};
use crate::failure::{Explain, Result};

/// Operations of each kind.
const EACH: i64 = 1024;
/// The columns between the two keys, those that an update sets.
const COLUMNS: [&str; 15] = [
    "photo_id",
    "custom_ringtone",
    "send_to_voicemail",
    "times_contacted",
    "last_time_contacted",
    "starred",
    "in_visible_group",
    "has_phone_number",
    "lookup",
    "status_update_id",
    "single_is_restricted",
    "ext_account_Type",
    "ext_photo_url",
    "vip",
    "display_name",
];
/// Those of them that are text.
const TEXTS: [&str; 4] = ["custom_ringtone", "lookup", "ext_photo_url", "display_name"];

/// The workload.
pub struct Androbench;

impl Workload for Androbench {
    fn about(&self) -> String {
        "AndroBench: 1,024 autocommit inserts, then 1,024 updates of 15 columns, then 1,024 deletes, rows found by a scan".into()
    }

    fn size(&self) -> u64 {
        300 << 10
    }

    fn steps(&self) -> Option<usize> {
        usize::try_from(3 * EACH).ok()
    }

    fn connections(&self) -> Option<usize> {
        Some(1)
    }

    fn block(&self) -> usize {
        64
    }

    fn build(&self, db: &Connection) -> Result<()> {
        let columns: Vec<_> = COLUMNS
            .iter()
            .map(|name| format!("{name} {}", if TEXTS.contains(name) { "TEXT" } else { "INTEGER" }))
            .collect();
        db.execute_batch(&format!(
            "CREATE TABLE contacts (_id INTEGER PRIMARY KEY AUTOINCREMENT, name_raw_contact_id INTEGER, {})",
            columns.join(", ")
        ))
        .explain("making a table")
    }

    fn session<'a>(&'a self, worker: &Worker<'a>) -> Result<Box<dyn Session + 'a>> {
        let db = worker.db()?;
        let prepare = |sql: String| db.prepare(&sql).explain("preparing an operation");
        let sets: Vec<_> = COLUMNS.iter().map(|name| format!("{name} = ?")).collect();
        Ok(Box::new(Running {
            insert: prepare(format!(
                "INSERT INTO contacts ({}, name_raw_contact_id) VALUES ({}?)",
                COLUMNS.join(", "),
                "?, ".repeat(COLUMNS.len())
            ))?,
            update: prepare(format!(
                "UPDATE contacts SET {} WHERE name_raw_contact_id = ?",
                sets.join(", ")
            ))?,
            delete: prepare("DELETE FROM contacts WHERE name_raw_contact_id = ?".into())?,
            shuffled: Permutation::new(EACH),
            done: 0,
        }))
    }
}

struct Running<'a> {
    insert: Statement<'a>,
    update: Statement<'a>,
    delete: Statement<'a>,
    shuffled: Permutation,
    done: i64,
}

impl Session for Running<'_> {
    fn step(&mut self) -> Result<Step> {
        let phase = self.done / EACH;
        if phase > 2 {
            return Ok(Step::End);
        }
        self.done += 1;
        let id = if phase == 0 { self.done } else { self.shuffled.next() };
        let row = values(self.done).chain([Value::Integer(id)]);
        match phase {
            0 => self.insert.execute(params_from_iter(row)),
            1 => self.update.execute(params_from_iter(row)),
            _ => self.delete.execute([id]),
        }
        .explain("an operation")?;
        Ok(Step::Wrote)
    }
}

fn values(turn: i64) -> impl Iterator<Item = Value> {
    COLUMNS.iter().map(move |name| match TEXTS.contains(name) {
        true => Value::Text(format!("{name}, entry {turn:06}")),
        false => Value::Integer(turn),
    })
}
