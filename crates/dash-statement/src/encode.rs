//! A transaction as bytes.

use std::collections::HashMap;

use crate::format::{
    BLOB, HAS_CLOCK, HAS_VALUES, HEAD, INTEGER, NULL, POINTER, REAL, RELEASE, ROLLBACK_TO,
    SAVEPOINT, STATEMENT, TEXT, VERSION, ZEROBLOB,
};
use crate::model::{Control, Event, Sql, Statement, Transaction, Value};

/// The bytes of a transaction, from which all of it can be had again (`STATEMENT-1`). A text that
/// several statements have is there once.
#[must_use]
pub fn encode(transaction: &Transaction) -> Vec<u8> {
    let mut texts = Texts::default();
    let mut events = Vec::new();
    for event in &transaction.events {
        match event {
            Event::Statement(statement) => put_statement(&mut events, &mut texts, statement),
            Event::Control(control, sql) => {
                events.push(match control {
                    Control::Savepoint => SAVEPOINT,
                    Control::Release => RELEASE,
                    Control::RollbackTo => ROLLBACK_TO,
                });
                put_u32(&mut events, texts.number(sql));
            }
        }
    }
    let mut bytes = Vec::with_capacity(HEAD + 8 + texts.bytes + events.len());
    bytes.push(VERSION);
    put_u32(&mut bytes, transaction.reasons.bits());
    put_u32(&mut bytes, transaction.dropped);
    put_u32(&mut bytes, length(texts.list.len()));
    for text in &texts.list {
        put_bytes(&mut bytes, text);
    }
    put_u32(&mut bytes, length(transaction.events.len()));
    bytes.append(&mut events);
    bytes
}

/// Each text once.
#[derive(Default)]
struct Texts<'a> {
    list: Vec<&'a [u8]>,
    known: HashMap<&'a [u8], u32>,
    bytes: usize,
}

impl<'a> Texts<'a> {
    fn number(&mut self, sql: &'a Sql) -> u32 {
        let next = length(self.list.len());
        let number = *self.known.entry(sql).or_insert(next);
        if number == next {
            self.list.push(sql);
            self.bytes += sql.len() + 4;
        }
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
