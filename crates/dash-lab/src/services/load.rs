//! Clients that send requests to a service, each as soon as its last one is answered. They speak
//! plain HTTP over a Unix socket, a connection a request: gunicorn's workers keep none.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::failure::{Explain, Failure, Result};
use crate::interleave::Timed;
use crate::interrupt;
use crate::numbers::{count, nanos};

/// As many as the service has workers or connections to its database.
pub const CLIENTS: u64 = 8;
/// Longer than a service waits for the lock of its database.
const TIMEOUT: Duration = Duration::from_secs(60);

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub enum Job {
    /// A new row of 100 bytes.
    Insert,
    /// A row that is read, and changed.
    Update,
}

impl Job {
    /// Its name, and the first part of its path.
    pub fn word(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Update => "update",
        }
    }

    /// The path of a client's request with that number, to one of so many rows.
    fn path(self, client: u64, number: u64, rows: u64) -> String {
        match self {
            Self::Insert => "/insert".to_owned(),
            // Neighbours are far apart, and every row has its turn: 7 divides no power of ten.
            Self::Update => format!("/update/{}", 1 + (client * 131 + number * 7) % rows),
        }
    }
}

/// Lets all clients send requests for so long. Times are those of requests that were answered with
/// 200, failures are all others.
pub fn send(socket: &Path, job: Job, rows: u64, time: Duration) -> Result<Timed> {
    let begun = Instant::now();
    let client = |client| {
        let mut timed = Timed::default();
        let mut number = 0;
        while begun.elapsed() < time && !interrupt::pressed() {
            let sent = Instant::now();
            match ask(socket, &job.path(client, number, rows)) {
                Ok((200, _)) => timed.writes.push(nanos(sent.elapsed())),
                _ => timed.failures += 1,
            }
            number += 1;
        }
        timed
    };
    let all: Vec<_> = std::thread::scope(|scope| {
        let client = &client;
        let clients: Vec<_> = (0..CLIENTS).map(|n| scope.spawn(move || client(n))).collect();
        clients.into_iter().map(std::thread::ScopedJoinHandle::join).collect()
    });
    interrupt::check()?;
    // A client whose last request takes long makes no other one slower: the time is the block's.
    let mut sum = Timed { elapsed: nanos(time), ..Timed::default() };
    for timed in all {
        let timed = timed.map_err(|_| Failure::new("a client came to a bad end"))?;
        sum.shares.push(count(timed.writes.len()));
        sum.writes.extend(timed.writes);
        sum.failures += timed.failures;
    }
    Ok(sum)
}

/// The status and the rest of what the service answers.
pub fn ask(socket: &Path, path: &str) -> Result<(u16, String)> {
    let what = || format!("asking {} for {path}", socket.display());
    let mut stream = UnixStream::connect(socket).explain(what())?;
    stream.set_read_timeout(Some(TIMEOUT)).explain(what())?;
    // By 1.0 an answer is not cut into chunks, and ends with the connection.
    let request = format!("POST {path} HTTP/1.0\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n");
    stream.write_all(request.as_bytes()).explain(what())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).explain(what())?;
    parse(&answer).ok_or_else(|| Failure::new(format!("{}: it answered {answer:?}", what())))
}

fn parse(answer: &str) -> Option<(u16, String)> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.parse().ok()?;
    Some((status, body.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_a_status_and_a_body() {
        let answer = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\ndone";
        assert_eq!(parse(answer), Some((200, "done".to_owned())));
        assert_eq!(parse("HTTP/1.0 500 No\r\n\r\n"), Some((500, String::new())));
        assert_eq!(parse("HTTP/1.1 200 OK\r\n"), None);
    }

    #[test]
    fn every_row_has_its_turn() {
        let paths: std::collections::BTreeSet<_> =
            (0..1000).map(|number| Job::Update.path(3, number, 1000)).collect();
        assert_eq!(paths.len(), 1000);
        assert!(paths.contains("/update/1") && paths.contains("/update/1000"));
    }
}
