//! Logs whose last record says that other statements were run, with a checksum that fits: as
//! anybody may make one and send it.

use std::fs;

use dash_statement::{Control, Event, Sql, Statement, Transaction, Value, encode};

use super::Home;

/// Bytes before a record's length, its checksum and its annotation's length, and those of an
/// annotation before its statements (FORMAT.md of `dash-log` and `dash-wal`).
const LENGTH: usize = 32;
const CHECKSUM: usize = 12;
const ANNOTATION: usize = 54;
const SAID: usize = 26;
/// What a record begins with; the first one stands behind the head.
const MAGIC: &[u8; 8] = b"\xff\xff\xff\xffDSHL";
const HEAD: usize = 4096;
const SECTOR: usize = 512;

/// The sender's: an honest database, as a kill leaves it, of which [`Self::forge`] makes others.
pub struct Sender {
    home: Home,
    log: Vec<u8>,
}

impl Sender {
    pub fn new() -> Self {
        let home = Home::new();
        let db = home.recorded("&dash_rest=off");
        db.execute_batch("CREATE TABLE t(k INTEGER PRIMARY KEY, v)").unwrap();
        for _ in 0..4 {
            db.execute("INSERT INTO t(v) VALUES (hex(zeroblob(60)))", []).unwrap();
        }
        let home = home.as_killed();
        let log = fs::read(home.file("app.db-dashlog")).unwrap();
        Self { home, log }
    }

    /// The same database; its last commit is said to have run this.
    pub fn forge(&self, events: Vec<Event>) -> &Home {
        let mut log = self.log.clone();
        let word = |log: &[u8], at: usize| {
            u32::from_le_bytes(log[at..at + 4].try_into().unwrap()) as usize
        };
        let is_record = |at: &usize| log[*at..].starts_with(MAGIC);
        let at = (HEAD..log.len() - SECTOR).step_by(SECTOR).rfind(is_record).unwrap();
        let (length, padded) = (word(&log, at + LENGTH), word(&log, at + LENGTH + 4));
        let annotation =
            usize::from(u16::from_le_bytes([log[at + ANNOTATION], log[at + ANNOTATION + 1]]));
        let said = at + length - annotation;
        let bytes = encode(&Transaction { events, ..Transaction::default() });
        let size = u32::try_from(bytes.len()).unwrap().to_le_bytes();
        let said = [&log[said..said + SAID], &size, &bytes].concat();
        let length = length - annotation + said.len();
        assert!(length <= padded, "it has no room");
        let begin = at + length - said.len();
        log[begin..at + padded].fill(0);
        log[begin..begin + said.len()].copy_from_slice(&said);
        log[at + LENGTH..at + LENGTH + 4]
            .copy_from_slice(&u32::try_from(length).unwrap().to_le_bytes());
        log[at + ANNOTATION..at + ANNOTATION + 2]
            .copy_from_slice(&u16::try_from(said.len()).unwrap().to_le_bytes());
        log[at + CHECKSUM..at + CHECKSUM + 4].fill(0);
        let sum = crc32fast::hash(&log[at..at + length]);
        log[at + CHECKSUM..at + CHECKSUM + 4].copy_from_slice(&sum.to_le_bytes());
        fs::write(self.home.file("app.db-dashlog"), log).unwrap();
        &self.home
    }
}

/// A step that says this, with these values.
pub fn statement(sql: &[u8], values: Option<Vec<Value>>) -> Event {
    Event::Statement(Statement { sql: Sql::from(sql), values, clock: None, nested: 0 })
}

/// A savepoint's.
pub fn control(control: Control, sql: &[u8]) -> Event {
    Event::Control(control, Sql::from(sql))
}
