//! Whether a transaction provably replays: whether SQLite, given the same database and these
//! statements, does the same again, whatever else its connection was told (`STATEMENT-6`).
//!
//! Nothing is guessed: a text, a table or an index that is not understood whole is a reason against
//! it. What a connection's settings could change is ruled out by the forms that are allowed, so the
//! settings need not be known: no trigger, no foreign key, no CHECK, no function, no order of rows.
//! Two of them matter to mere values, and are known ([`Circumstance::Settings`]).
//!
//! The source of the idea is SQLite/SSL (VLDB 2017), whose log holds all statements. What makes a
//! replay come to something else was found by trying; `crates/dash-replay` still tries it.
//!
//! | | |
//! |---|---|
//! | `unprovable` | the reasons against it |
//! | `tokens` | a text of SQL as tokens |
//! | `expression` | values and conditions |
//! | `table`, `index` | what the schema says of a table |
//! | `schema` | all of it |
//! | `pages` | where that stands in a database |
//! | `form` | statements |
//! | `made` | what a statement makes of its connection |

mod expression;
mod form;
mod index;
mod made;
mod pages;
mod schema;
mod table;
pub(crate) mod tokens;
mod unprovable;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use crate::context::Circumstance;
use crate::expand::has_parameters;
use crate::model::{Control, Event, Statement, Transaction, Value};

pub use made::writes_schema;
pub use schema::Schema;
pub use unprovable::Unprovable;

/// Bytes of `zeroblob` that a transaction may bind. They take no room in the log, but in memory.
const ZEROS: u64 = 1 << 20;

/// Whether a transaction provably replays on a database with this schema, in which each step is
/// there once ([`Transaction::once`]).
///
/// # Errors
///
/// The first reason against it.
pub fn provable(transaction: &Transaction, schema: &Schema) -> Result<(), Unprovable> {
    let Transaction { events, dropped, reasons, context } = transaction;
    if !reasons.is_empty() || *dropped > 0 || events.is_empty() {
        return Err(Unprovable::Incomplete);
    }
    let context = context.ok_or(Unprovable::Incomplete)?;
    let of_all = |it: &Circumstance| *it != Circumstance::Unconfirmed;
    if let Some(circumstance) = context.iter().find(of_all) {
        return Err(of_connection(circumstance));
    }
    let mut texts = HashMap::new();
    events.iter().try_for_each(|event| match event {
        Event::Statement(it) => {
            statement(it, texts.entry(Arc::as_ptr(&it.sql)).or_default(), schema)
        }
        Event::Control(Control::RollbackTo, _) => Err(Unprovable::RolledBack),
        Event::Control(kind, sql) => kind.statement(sql).map(drop).ok_or(Unprovable::Form),
    })?;
    let mut statements = events.iter().filter(|event| matches!(event, Event::Statement(_)));
    if schema.is_cut && statements.nth(1).is_some() {
        return Err(Unprovable::Vacuum);
    }
    let zeros = events.iter().flat_map(zeros).fold(0, u64::saturating_add);
    if zeros > ZEROS {
        return Err(Unprovable::Form);
    }
    // The last one, as a statement of another form changes no row either, and that says more.
    context.iter().next().map_or(Ok(()), |circumstance| Err(of_connection(circumstance)))
}

fn of_connection(circumstance: Circumstance) -> Unprovable {
    match circumstance {
        Circumstance::Temporary => Unprovable::Temporary,
        Circumstance::OtherDatabase => Unprovable::OtherDatabase,
        Circumstance::Settings => Unprovable::Settings,
        Circumstance::SchemaWritten => Unprovable::Table,
        Circumstance::Unconfirmed => Unprovable::Unconfirmed,
    }
}

/// What is known of a text, which many steps may have.
#[derive(Default)]
struct Text {
    has_parameters: Option<bool>,
    is_judged: bool,
}

fn statement(it: &Statement, text: &mut Text, schema: &Schema) -> Result<(), Unprovable> {
    let Statement { sql, values, clock, nested } = it;
    let mut has_parameters = || *text.has_parameters.get_or_insert_with(|| has_parameters(sql));
    if values.is_none() && has_parameters() {
        return Err(Unprovable::Incomplete);
    }
    if *nested > 0 {
        return Err(Unprovable::Trigger);
    }
    if clock.is_some() {
        return Err(Unprovable::Function);
    }
    match std::mem::replace(&mut text.is_judged, true) {
        true => Ok(()),
        false => form::check(sql, schema),
    }
}

/// The lengths of the values that are so many zeros.
fn zeros(event: &Event) -> impl Iterator<Item = u64> {
    let values = match event {
        Event::Statement(Statement { values: Some(values), .. }) => &values[..],
        _ => &[],
    };
    values.iter().filter_map(|value| match value {
        Value::Zeroblob(count) => Some(*count),
        _ => None,
    })
}
