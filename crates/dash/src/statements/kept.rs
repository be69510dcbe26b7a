//! The last statements of this process's connections to a database, for `dash_statements`.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use dash_ffi::{Row, Value};
use dash_statement::{Event, Reasons, Schema, Transaction, Unprovable, decode, literals, provable};

use super::capturer::Captured;

/// Statements that are kept.
const STATEMENTS: usize = 1000;
/// Bytes that they may take, encoded.
const BYTES: usize = 4 << 20;

/// See the module.
#[derive(Default)]
pub struct Kept(Mutex<State>);

#[derive(Default)]
struct State {
    commits: VecDeque<Commit>,
    /// Commits so far.
    number: u64,
    rows: usize,
    bytes: usize,
}

struct Commit {
    number: u64,
    /// Since 1970, in seconds.
    time: f64,
    /// Rows that it has in the table.
    rows: usize,
    captured: Captured,
}

impl Kept {
    /// A commit has become visible.
    pub fn add(&self, captured: Captured) {
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        let rows = captured.steps.max(1);
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.number += 1;
        state.rows += rows;
        state.bytes += captured.bytes.len();
        let commit = Commit { number: state.number, time, rows, captured };
        state.commits.push_back(commit);
        while let Some(oldest) = state.commits.front() {
            let (rows, bytes) = (oldest.rows, oldest.captured.bytes.len());
            let is_needed = state.rows - rows < STATEMENTS && state.bytes <= BYTES;
            if is_needed || state.commits.len() == 1 {
                return;
            }
            state.commits.pop_front();
            (state.rows, state.bytes) = (state.rows - rows, state.bytes - bytes);
        }
    }

    /// As the table shows them: the newest commit first, and its statements as they ran. Of the
    /// oldest one the last statements only, if it has too many. `schema`: the database's.
    pub fn rows(&self, schema: &Schema) -> Vec<Row> {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rows = Vec::new();
        for commit in state.commits.iter().rev() {
            let of_it = commit.shown(schema);
            let room = STATEMENTS.saturating_sub(rows.len());
            let first = of_it.len().saturating_sub(room);
            rows.extend(of_it.into_iter().skip(first));
        }
        rows
    }
}

impl Commit {
    fn shown(&self, schema: &Schema) -> Vec<Row> {
        let whole = |number: u64| Value::from(i64::try_from(number).unwrap_or(i64::MAX));
        let head = || {
            let connection = self.captured.connection.map(whole);
            vec![whole(self.number), self.time.into(), connection.into()]
        };
        let known = match decode(&self.captured.bytes) {
            Ok(known) => known,
            Err(error) => {
                let nothing = [Value::Null, Value::Null, Value::Null, Value::Null];
                let reason = vec![error.to_string().into(), Value::Null];
                return vec![[head(), nothing.into(), reason].concat()];
            }
        };
        let reason = Value::from(reason(&known));
        let mut steps: Vec<_> = known.events.iter().map(step).collect();
        let judged = provable(&known.once(), schema);
        let replay = Value::from(judged.map_or_else(Unprovable::sentence, |()| "provable"));
        if steps.is_empty() {
            steps.push(vec![Value::Null; 4]);
        }
        steps
            .into_iter()
            .map(|step| [head(), step, vec![reason.clone(), replay.clone()]].concat())
            .collect()
    }
}

/// `sql`, `parameters`, `clock`, `nested`.
fn step(event: &Event) -> Row {
    let text = |sql: &[u8]| Value::from(String::from_utf8_lossy(sql).trim().to_owned());
    match event {
        Event::Statement(statement) => {
            let values = statement.values.as_deref().map(literals);
            #[expect(clippy::cast_precision_loss, reason = "milliseconds of this age are exact")]
            let clock = statement.clock.map(|time| time as f64 / 1000.0);
            let nested = i64::from(statement.nested);
            vec![text(&statement.sql), values.into(), clock.into(), nested.into()]
        }
        Event::Control(_, sql) => vec![text(sql), "".into(), Value::Null, 0.into()],
    }
}

/// Why a transaction may have done more than its steps.
fn reason(known: &Transaction) -> Option<String> {
    let Transaction { reasons, dropped, .. } = known;
    let said: Vec<_> = Reasons::iter(*reasons).map(|reason| reason.sentence().to_owned()).collect();
    let dropped = (*dropped > 0).then(|| format!("{dropped} statements were dropped"));
    let said: Vec<_> = said.into_iter().chain(dropped).collect();
    (!said.is_empty()).then(|| said.join("; "))
}
