//! gunicorn, which forks its workers and starts another one where one was killed.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use dash_testing::extension::library;
use dash_testing::roles;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::crew::Load;
use super::heard::Heard;
use super::verdict::{Durable, Verdict};

const WORKERS: usize = 8;

/// Runs it on the app in `folder`, with eight clients.
pub fn works(python: &Path, folder: &Path, preload: bool, Load { time, kills }: Load) {
    let home = tempfile::tempdir().expect("a folder");
    let (path, socket) = (home.path().join("app.db"), home.path().join("socket"));
    let mut command = Command::new(python);
    command.args(["-m", "gunicorn", "--log-level", "critical", "--config"]);
    command.arg(folder.join("gunicorn.conf.py")).arg("--chdir").arg(folder);
    command.args(["--workers", &WORKERS.to_string()]);
    command.arg("--bind").arg(format!("unix:{}", socket.display()));
    command.args(preload.then_some("--preload")).arg("app:app");
    command.env("DATABASE", &path).env("DASH_LIBRARY", library());
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    let master = Master(roles::start(&mut command));

    let begun = Instant::now();
    while let Err(error) = UnixStream::connect(&socket) {
        assert!(begun.elapsed() < Duration::from_secs(60), "gunicorn does not come: {error}");
        std::thread::sleep(Duration::from_millis(20));
    }
    // The first worker that is there answers; the others come meanwhile.
    ask(&socket, "").expect("it answers");
    let clients = Clients {
        socket: &socket,
        until: Instant::now() + time,
        heard: Mutex::new(Heard::default()),
        interrupted: AtomicUsize::new(0),
        last: Mutex::new(None),
    };
    std::thread::scope(|scope| {
        for client in 1..=WORKERS {
            let clients = &clients;
            scope.spawn(move || clients.client(i64::try_from(client).expect("small")));
        }
        for _ in 0..kills {
            std::thread::sleep(time / (kills + 1));
            clients.kill_a_worker(&master);
        }
    });
    let (status, facts) = ask(&socket, "").expect("it answers");
    assert_eq!(status, 200, "{facts}");
    facts.split_inclusive('\n').for_each(|line| clients.heard.lock().expect("sound").line(line));
    master.ends();
    let unheard = clients.interrupted.into_inner();
    assert!(unheard <= kills as usize, "{unheard} requests were cut off by {kills} kills");
    let verdict = Verdict {
        driver: if preload { "gunicorn --preload" } else { "gunicorn" },
        settings: "SQLAlchemy's; `engine.dispose(close=False)` in `post_fork`",
        workers: format!("{WORKERS} processes"),
        kills,
        unheard,
        durable: Durable::Normal,
    };
    verdict.give(&path, &clients.heard.into_inner().expect("sound"));
}

/// What the clients have in common.
struct Clients<'a> {
    socket: &'a Path,
    until: Instant,
    heard: Mutex<Heard>,
    /// Requests without an answer.
    interrupted: AtomicUsize,
    /// The process that answered last.
    last: Mutex<Option<Pid>>,
}

impl Clients<'_> {
    fn client(&self, number: i64) {
        for n in 1.. {
            if Instant::now() >= self.until {
                return;
            }
            match ask(self.socket, &format!("{number}/{n}")) {
                Ok((200, pid)) => {
                    let pid = pid.parse().expect("the number of a process");
                    *self.last.lock().expect("sound") = Some(Pid::from_raw(pid));
                    let mut heard = self.heard.lock().expect("sound");
                    heard.acknowledged.insert((number, n));
                }
                Ok((_, error)) => self.heard.lock().expect("sound").errors.push(error),
                // Its worker was killed.
                Err(_) => drop(self.interrupted.fetch_add(1, Ordering::Relaxed)),
            }
        }
    }

    fn kill_a_worker(&self, master: &Master) {
        let worker = loop {
            let worker = self.last.lock().expect("sound").take();
            if let Some(worker) = worker {
                break worker;
            }
            assert!(Instant::now() < self.until, "nobody answers");
            std::thread::sleep(Duration::from_millis(1));
        };
        assert!(master.has(worker), "{worker} is no worker of gunicorn's");
        kill(worker, Signal::SIGKILL).expect("it is ours");
    }
}

/// Asks for a path: the status and the body. An answer that was cut off is an error.
fn ask(socket: &Path, path: &str) -> std::io::Result<(u32, String)> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    write!(stream, "GET /{path} HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
    // The body comes behind the head, and its worker may be killed in between.
    let body = answer.split_once("\r\n\r\n").and_then(|(head, body)| {
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "))?;
        (length == body.len().to_string()).then(|| body.to_owned())
    });
    status.zip(body).ok_or_else(|| std::io::ErrorKind::UnexpectedEof.into())
}

/// gunicorn itself.
struct Master(Child);

impl Master {
    fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.0.id()).expect("a number of a process"))
    }

    fn has(&self, worker: Pid) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{worker}/status")).unwrap_or_default();
        status.lines().any(|line| line == format!("PPid:\t{}", self.pid()))
    }

    /// As a supervisor asks it to end.
    fn ends(mut self) {
        kill(self.pid(), Signal::SIGTERM).expect("it is ours");
        let status = self.0.wait().expect("it is ours");
        assert!(status.success(), "gunicorn failed: {status}");
    }
}

impl Drop for Master {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            // It ends its workers, which a kill of itself would leave alone.
            kill(self.pid(), Signal::SIGTERM).expect("it is ours");
            self.0.wait().expect("it is ours");
        }
    }
}
