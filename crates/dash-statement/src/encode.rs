//! A transaction as bytes.

use std::collections::HashMap;

use crate::format::{
    BLOB, CONTEXT, HAS_CLOCK, HAS_VALUES, HEAD, INTEGER, NULL, POINTER, REAL, RELEASE, ROLLBACK_TO,
    SAVEPOINT, STATEMENT, TEXT, VERSION, WITH_CONTEXT, ZEROBLOB,
};
use crate::model::{Control, Event, Sql, Statement, Transaction, Value};
use crate::reason::Reason;

/// The bytes of a transaction, from which all of it can be had again (`STATEMENT-1`). A text that
/// several statements have is there once.
#[must_use]
pub fn encode(transaction: &Transaction) -> Vec<u8> {
    encode_first(transaction, usize::MAX).0
}

/// The same in no more than `room` bytes: of the steps the first ones that fit, and
/// [`Reason::NoRoom`] if those are not all (`STATEMENT-4`). `None`: not even one does.
#[must_use]
pub fn encode_within(transaction: &Transaction, room: usize) -> Option<Vec<u8>> {
    let (bytes, steps) = encode_first(transaction, room);
    let says_something = steps > 0 || transaction.events.is_empty();
    (says_something && bytes.len() <= room).then_some(bytes)
}

/// And how many steps these are.
fn encode_first(transaction: &Transaction, room: usize) -> (Vec<u8>, usize) {
    let mut texts = Texts::default();
    let (mut events, mut steps) = (Vec::new(), 0);
    let (version, head) = match transaction.context {
        Some(_) => (WITH_CONTEXT, HEAD + CONTEXT),
        None => (VERSION, HEAD),
    };
    for event in &transaction.events {
        let before = (events.len(), texts.list.len(), texts.bytes);
        put_event(&mut events, &mut texts, event);
        if head + 8 + texts.bytes + events.len() > room {
            events.truncate(before.0);
            texts.list.truncate(before.1);
            texts.bytes = before.2;
            break;
        }
        steps += 1;
    }
    let left = length(transaction.events.len() - steps);
    let mut reasons = transaction.reasons;
    if left > 0 {
        reasons.add(Reason::NoRoom);
    }
    let mut bytes = Vec::with_capacity(head + 8 + texts.bytes + events.len());
    bytes.push(version);
    put_u32(&mut bytes, reasons.bits());
    put_u32(&mut bytes, transaction.dropped.saturating_add(left));
    if let Some(context) = transaction.context {
        put_u32(&mut bytes, context.bits());
    }
    put_u32(&mut bytes, length(texts.list.len()));
    for text in &texts.list {
        put_bytes(&mut bytes, text);
    }
    put_u32(&mut bytes, length(steps));
    bytes.append(&mut events);
    (bytes, steps)
}

fn put_event<'a>(bytes: &mut Vec<u8>, texts: &mut Texts<'a>, event: &'a Event) {
    match event {
        Event::Statement(statement) => put_statement(bytes, texts, statement),
        Event::Control(control, sql) => {
            bytes.push(match control {
                Control::Savepoint => SAVEPOINT,
                Control::Release => RELEASE,
                Control::RollbackTo => ROLLBACK_TO,
            });
            put_u32(bytes, texts.number(sql));
        }
    }
}

/// Each text once.
#[derive(Default)]
struct Texts<'a> {
    list: Vec<&'a [u8]>,
    known: HashMap<&'a [u8], u32>,
    /// The one before, and its number.
    last: Option<(&'a Sql, u32)>,
    bytes: usize,
}

impl<'a> Texts<'a> {
    fn number(&mut self, sql: &'a Sql) -> u32 {
        if let Some((last, number)) = self.last
            && Sql::ptr_eq(last, sql)
        {
            return number;
        }
        let next = length(self.list.len());
        let number = *self.known.entry(sql).or_insert(next);
        if number == next {
            self.list.push(sql);
            self.bytes += sql.len() + 4;
        }
        self.last = Some((sql, number));
        number
    }
}

fn put_statement<'a>(bytes: &mut Vec<u8>, texts: &mut Texts<'a>, statement: &'a Statement) {
    let Statement { sql, values, clock, nested } = statement;
    bytes.push(STATEMENT);
    put_u32(bytes, texts.number(sql));
    let flags = [(values.is_some(), HAS_VALUES), (clock.is_some(), HAS_CLOCK)];
    bytes.push(flags.into_iter().filter(|(is, _)| *is).fold(0, |all, (_, flag)| all | flag));
    put_u32(bytes, *nested);
    if let Some(clock) = clock {
        bytes.extend(clock.to_le_bytes());
    }
    if let Some(values) = values {
        put_u32(bytes, length(values.len()));
        for value in values {
            put_value(bytes, value);
        }
    }
}

fn put_value(bytes: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => bytes.push(NULL),
        Value::Integer(value) => {
            bytes.push(INTEGER);
            bytes.extend(value.to_le_bytes());
        }
        Value::Real(bits) => {
            bytes.push(REAL);
            bytes.extend(bits.to_le_bytes());
        }
        Value::Text(text) => {
            bytes.push(TEXT);
            put_bytes(bytes, text);
        }
        Value::Blob(blob) => {
            bytes.push(BLOB);
            put_bytes(bytes, blob);
        }
        Value::Zeroblob(count) => {
            bytes.push(ZEROBLOB);
            bytes.extend(count.to_le_bytes());
        }
        Value::Pointer => bytes.push(POINTER),
    }
}

/// SQLite's texts, blobs and programs are shorter than 2 GiB, and a [`Buffer`](crate::Buffer) is
/// far smaller.
fn length(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

fn put_u32(bytes: &mut Vec<u8>, value: u32) {
    bytes.extend(value.to_le_bytes());
}

fn put_bytes(bytes: &mut Vec<u8>, content: &[u8]) {
    put_u32(bytes, length(content.len()));
    bytes.extend(content);
}
