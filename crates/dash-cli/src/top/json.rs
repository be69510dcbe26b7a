//! A look for programs. What the mode does not know is not there.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::moment::{Moment, Party, Rates, Reader};

/// One object. Times are seconds.
pub fn of(path: &Path, now: Option<&Moment>, rates: &Rates) -> Value {
    let Some(now) = now else {
        return json!({ "file": path.to_string_lossy(), "open": false });
    };
    known([
        ("file", Some(json!(path.to_string_lossy()))),
        ("open", Some(json!(true))),
        ("mode", Some(json!(now.mode))),
        ("connections", Some(json!(now.connections))),
        ("dash_stock", now.stock.map(Value::from)),
        ("commits", Some(json!(now.commits))),
        ("commits_per_second", rates.commits.map(Value::from)),
        ("wal_bytes_per_second", rates.wal_bytes.map(Value::from)),
        ("log_bytes_per_commit", rates.log_bytes_per_commit.map(Value::from)),
        ("group_size", rates.group_size.map(Value::from)),
        ("flush_seconds", rates.flush.map(Value::from)),
        ("writer", now.writer.as_ref().map(party)),
        ("checkpoint", now.checkpoint.as_ref().map(party)),
        ("waiting", Some(now.queue.iter().map(party).collect())),
        ("readers", Some(now.readers.iter().map(reader).collect())),
    ])
}

fn party(party: &Party) -> Value {
    known([
        ("process", party.process.map(Value::from)),
        ("seconds", party.age.map(|age| Value::from(seconds(age)))),
    ])
}

fn reader(reader: &Reader) -> Value {
    known([
        ("process", reader.process.map(Value::from)),
        ("kind", Some(Value::from(reader.kind))),
        ("seconds", reader.age.map(|age| Value::from(seconds(age)))),
        ("kept_bytes", reader.kept_bytes.map(Value::from)),
        ("commits_behind", reader.commits_behind.map(Value::from)),
    ])
}

fn known<const N: usize>(pairs: [(&str, Option<Value>); N]) -> Value {
    let there = pairs.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(there.collect::<Map<_, _>>())
}

/// Of nanoseconds.
pub fn seconds(nanos: u64) -> f64 {
    dash_terminal::numbers::float(nanos) / 1e9
}
