//! A process that has databases open, through dash or as stock SQLite, does what it is told, and
//! dies where it is told to: before the n-th call from then on that changes a file or flushes one.
//! What it had done until then stays in the system's cache.
//!
//! | request | what it asks for |
//! |---|---|
//! | `{"open": NAME, "uri": URI}` | a connection of that name |
//! | `{"run": SQL, "on": NAME}` | statements; the answer is the first value of the last one that has rows |
//! | `{"state": NAME}` | a hash of the content |
//! | `{"close": NAME}` | the connection closed |
//! | `{"die": N}` | the end, N calls later |

use std::collections::HashMap;
use std::io::Result;
use std::path::Path;
use std::process::Child;
use std::time::Duration;

use rusqlite::fallible_iterator::FallibleIterator;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};

use super::database::{self, explained};
use super::parts::{self, Link};
use crate::{deadly, sqlite};

/// A call takes longer only if it hangs.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a connection waits for a lock.
const TIMEOUT: Duration = Duration::from_millis(100);

/// What came of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// It was done, and this is the answer, if it has one.
    Done(Value),
    /// SQLite's code, and what it and dash say.
    Refused(i32, String),
    /// The process is gone, as it was told to be.
    Died,
}

/// The process, as its master sees it.
#[derive(Debug)]
pub struct Actor {
    child: Child,
    link: Link,
    is_dead: bool,
}

impl Actor {
    /// Starts one that has loaded the extension.
    pub fn start(library: &Path) -> Result<Self> {
        let (child, link) = parts::start("actor", library)?;
        link.patience(PATIENCE)?;
        let mut actor = Self { child, link, is_dead: false };
        match actor.link.receive()? {
            Some(_) => Ok(actor),
            None => Err(std::io::Error::other("an actor does not start")),
        }
    }

    fn ask(&mut self, request: &Value) -> std::result::Result<Said, String> {
        if self.is_dead || self.link.send(request).is_err() {
            self.is_dead = true;
            return Ok(Said::Died);
        }
        match self.link.receive() {
            Ok(None) => {
                self.is_dead = true;
                let status = self.child.wait().map_err(|error| error.to_string())?;
                match std::os::unix::process::ExitStatusExt::signal(&status) {
                    Some(libc::SIGKILL) => Ok(Said::Died),
                    _ => Err(format!("{request}: the process ended by itself ({status})")),
                }
            }
            Ok(Some(answer)) => match answer.get("code").and_then(Value::as_i64) {
                None => Ok(Said::Done(answer)),
                Some(code) => {
                    let text = answer.get("text").and_then(Value::as_str).unwrap_or_default();
                    Ok(Said::Refused(i32::try_from(code).unwrap_or(-1), text.to_owned()))
                }
            },
            Err(error) => Err(format!("{request} hangs ({error})")),
        }
    }

    /// Opens `app.db` of a folder.
    pub fn open(&mut self, name: &str, uri: &str) -> std::result::Result<Said, String> {
        self.ask(&json!({ "open": name, "uri": uri }))
    }

    /// Runs statements.
    pub fn run(&mut self, name: &str, sql: &str) -> std::result::Result<Said, String> {
        self.ask(&json!({ "run": sql, "on": name }))
    }

    /// The content's hash.
    pub fn state(&mut self, name: &str) -> std::result::Result<Said, String> {
        self.ask(&json!({ "state": name }))
    }

    /// Closes a connection.
    pub fn close(&mut self, name: &str) -> std::result::Result<Said, String> {
        self.ask(&json!({ "close": name }))
    }

    /// It dies before so many more calls that change something.
    pub fn die(&mut self, calls: u64) -> std::result::Result<(), String> {
        self.ask(&json!({ "die": calls })).map(|_| ())
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        let _may_be_gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// Plays the part.
pub fn play(link: Link, library: &Path) -> Result<()> {
    sqlite::load(library).map_err(std::io::Error::other)?;
    deadly::run(move || serve(link))
}

fn serve(mut link: Link) {
    let mut open: HashMap<String, Connection> = HashMap::new();
    let mut answer = json!("ready");
    while link.send(&answer).is_ok() {
        let Ok(Some(request)) = link.receive() else { return };
        if let Some(calls) = request.get("die").and_then(Value::as_i64) {
            deadly::die_after(calls);
            answer = json!({});
            continue;
        }
        answer = match carry_out(&mut open, &request) {
            Ok(value) => value,
            Err(error) => {
                let code = sqlite::code(&error) & 0xff;
                json!({ "code": code, "text": explained(&error) })
            }
        };
    }
}

fn carry_out(open: &mut HashMap<String, Connection>, request: &Value) -> rusqlite::Result<Value> {
    let text = |key: &str| request.get(key).and_then(Value::as_str).unwrap_or_default();
    if request.get("open").is_some() {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_URI;
        let db = Connection::open_with_flags(text("uri"), flags)?;
        db.busy_timeout(TIMEOUT)?;
        db.set_prepared_statement_cache_capacity(0);
        open.insert(text("open").to_owned(), db);
        return Ok(json!({}));
    }
    if request.get("close").is_some() {
        if let Some(db) = open.remove(text("close")) {
            db.close().map_err(|(_, error)| error)?;
        }
        return Ok(json!({}));
    }
    let name = if request.get("state").is_some() { text("state") } else { text("on") };
    let Some(db) = open.get(name) else { return Err(rusqlite::Error::InvalidQuery) };
    if request.get("state").is_some() {
        // Inside of a transaction it is what that one sees.
        let is_free = db.is_autocommit();
        if is_free {
            db.execute_batch("BEGIN")?;
        }
        let content = database::content(db, "main");
        if is_free {
            let ended = db.execute_batch("COMMIT");
            if content.is_ok() {
                ended?;
            }
        }
        return Ok(json!({ "state": content? }));
    }
    let ran = last_value(db, text("run"));
    if ran.is_err() && !db.is_autocommit() {
        let _may_have_rolled_back = db.execute_batch("ROLLBACK");
    }
    Ok(json!({ "value": ran? }))
}

/// Runs all statements; the first value of the last row there was.
fn last_value(db: &Connection, sql: &str) -> rusqlite::Result<Value> {
    let mut value = Value::Null;
    let mut batch = rusqlite::Batch::new(db, sql);
    while let Some(mut statement) = batch.next()? {
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next()? {
            value = match row.get_ref(0)? {
                ValueRef::Integer(number) => json!(number),
                ValueRef::Text(text) => json!(String::from_utf8_lossy(text)),
                _ => Value::Null,
            };
        }
    }
    Ok(value)
}
