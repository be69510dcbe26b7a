//! Whoever an extension chooses is told of the statements of a connection, and reads their values;
//! until the host sets its own hook, which stays the host's. A panic of who is told ends nothing.

use core::ffi::{c_int, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, Weak};

use crate::common::{Database, tell};
use dash_ffi::{Bound, Capture, TracedStatement, Unread, last_error};
use rusqlite::ffi;

/// Notes what it is told.
#[derive(Default)]
struct Listener {
    heard: Mutex<Vec<String>>,
    values: Mutex<Vec<Result<Vec<Bound>, Unread>>>,
    room: Mutex<Option<usize>>,
    panics: bool,
}

impl Listener {
    fn note(&self, what: &str, statement: &TracedStatement<'_>) {
        let sql = String::from_utf8_lossy(statement.sql().unwrap()).into_owned();
        self.heard.lock().unwrap().push(format!("{what} {sql}"));
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.heard.lock().unwrap())
    }
}

impl Capture for Listener {
    fn begins(&self, statement: &TracedStatement<'_>) {
        assert!(!self.panics, "100% of %s");
        self.note("begins", statement);
    }

    fn runs_inside(&self, statement: &TracedStatement<'_>) {
        self.note("inside", statement);
    }

    fn ends(&self, statement: &TracedStatement<'_>) {
        self.note("ends", statement);
        if let Some(room) = *self.room.lock().unwrap() {
            self.values.lock().unwrap().push(statement.values(room));
        }
    }

    fn panicked(&self) {
        self.heard.lock().unwrap().push("panicked".to_owned());
    }
}

fn listened(listener: &Arc<Listener>) -> (Database, rusqlite::Connection) {
    let database = Database::new();
    tell(&database, Arc::clone(listener) as Arc<dyn Capture>);
    let db = database.open("").unwrap();
    (database, db)
}

#[test]
fn programs_are_told_in_their_order_and_triggers_inside_of_theirs() {
    let listener = Arc::new(Listener::default());
    let (database, db) = listened(&listener);
    db.execute_batch(
        "CREATE TABLE t(x); CREATE TABLE u(x); \
         CREATE TRIGGER g AFTER INSERT ON t BEGIN INSERT INTO u VALUES (new.x); END",
    )
    .unwrap();
    listener.take();
    // A comment of the user's own is no sign of a nested program.
    db.execute_batch("-- mine\nINSERT INTO t VALUES (1)").unwrap();
    let sql = "-- mine\nINSERT INTO t VALUES (1)";
    let heard = listener.take();
    assert_eq!(heard.first(), Some(&format!("begins {sql}")));
    assert_eq!(heard.last(), Some(&format!("ends {sql}")));
    assert!(heard[1..heard.len() - 1].iter().all(|line| *line == format!("inside {sql}")));
    assert!(heard.len() > 2, "{heard:?}");
    // Another connection was not asked for.
    let other = database.open("").unwrap();
    other.execute_batch("INSERT INTO t VALUES (2)").unwrap();
    assert!(listener.take().is_empty());
}

#[test]
fn values_are_read_exactly_and_stay_the_statements() {
    let listener = Arc::new(Listener::default());
    let (_database, db) = listened(&listener);
    db.execute_batch("CREATE TABLE t(a, b, c, d, e)").unwrap();
    *listener.room.lock().unwrap() = Some(1000);
    let mut insert = db.prepare("INSERT INTO t VALUES (?, ?, ?, ?, ?)").unwrap();
    let values = rusqlite::params![-5, -0.0, "a\0b", [7_u8, 0], rusqlite::types::Null];
    insert.execute(values).unwrap();
    assert_eq!(insert.raw_execute().unwrap(), 1, "they are there for another time");
    let expected = vec![
        Bound::Integer(-5),
        Bound::Real(-0.0),
        Bound::Text(b"a\0b".to_vec()),
        Bound::Blob(vec![7, 0]),
        Bound::Null,
    ];
    let read = std::mem::take(&mut *listener.values.lock().unwrap());
    assert_eq!(read[0], Ok(expected));
    let Ok([_, Bound::Real(zero), ..]) = read[0].as_deref() else { panic!("{read:?}") };
    assert!(zero.is_sign_negative());
    drop(insert);
    // Nothing of ours is left on the connection, or the host could not close it.
    // SAFETY: an open connection.
    assert!(unsafe { ffi::sqlite3_next_stmt(db.handle(), null_mut()) }.is_null());
    *listener.room.lock().unwrap() = Some(4);
    db.execute("INSERT INTO t(a, b) VALUES (?, ?)", ["abc", "de"]).unwrap();
    assert_eq!(listener.values.lock().unwrap().pop(), Some(Err(Unread::TooLarge)));
    db.execute("INSERT INTO t(a) VALUES (?)", [rusqlite::blob::ZeroBlob(100_000_000)]).unwrap();
    assert_eq!(listener.values.lock().unwrap().pop(), Some(Err(Unread::TooLarge)));
    // The statement by which they are read is told to nobody.
    assert!(!listener.take().iter().any(|line| line.contains("SELECT")));
}

extern "C" fn count(_: c_uint, counter: *mut c_void, _: *mut c_void, _: *mut c_void) -> c_int {
    // SAFETY: the counter that the test passes, in its own thread.
    unsafe { *counter.cast::<u32>() += 1 };
    0
}

#[test]
fn a_hook_that_the_host_has_set_stays_its_own() {
    let listener = Arc::new(Listener::default());
    let (_database, db) = listened(&listener);
    let mut counted = 0_u32;
    // SAFETY: an open connection, and a counter that outlives it here.
    let code =
        unsafe { ffi::sqlite3_trace_v2(db.handle(), 1, Some(count), (&raw mut counted).cast()) };
    assert_eq!(code, 0);
    listener.take();
    db.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (1)").unwrap();
    assert!(listener.take().is_empty());
    assert!(counted >= 2);
}

#[test]
fn a_panic_of_who_is_told_ends_no_statement() {
    let listener = Arc::new(Listener { panics: true, ..Listener::default() });
    let (_database, db) = listened(&listener);
    db.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (1)").unwrap();
    assert!(listener.take().iter().any(|line| line == "panicked"));
    assert!(last_error().unwrap_or_default().contains("100% of %s"));
}

#[test]
fn who_is_told_is_let_go_when_the_connection_closes() {
    let listener = Arc::new(Listener::default());
    let weak: Weak<Listener> = Arc::downgrade(&listener);
    let (_database, db) = listened(&listener);
    drop(listener);
    db.execute_batch("CREATE TABLE t(x)").unwrap();
    assert!(weak.upgrade().is_some_and(|listener| !listener.take().is_empty()));
    db.close().unwrap();
    assert!(weak.upgrade().is_none());
}
