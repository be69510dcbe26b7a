//! Workers: programs that wait for a line, say their PRAGMAs at the same moment, and insert.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use dash_testing::extension::library;
use dash_testing::roles;

use super::heard::Heard;
use super::verdict::{Durable, Verdict};

/// How long a host may take to start.
const START: Duration = Duration::from_secs(60);

/// How long workers work, and how many of them are killed meanwhile.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    pub time: Duration,
    pub kills: u32,
}

/// Who works: so many processes of so many threads each.
pub struct Crew {
    pub driver: &'static str,
    /// What the program sets.
    pub settings: &'static str,
    pub processes: usize,
    pub threads: usize,
    pub durable: Durable,
}

impl Crew {
    /// Lets them work; `program` makes the command of a worker, which is told its database, the
    /// number of its first thread, its threads and how many seconds to work.
    pub fn works(&self, load: Load, program: impl Fn() -> Command) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("app.db");
        let heard = Arc::new(Mutex::new(Heard::default()));
        let mut started = 0;
        let mut start = |seconds: Duration| {
            let first = started * self.threads + 1;
            started += 1;
            let mut command = program();
            let numbers = [first, self.threads].map(|number| number.to_string());
            let seconds = seconds.as_secs_f64().to_string();
            command.arg(&path).args(numbers).arg(seconds).env("DASH_LIBRARY", library());
            command.env("PYTHONDONTWRITEBYTECODE", "1");
            Worker::start(command, Arc::clone(&heard))
        };
        let Load { time, kills } = load;
        let mut workers: Vec<_> = (0..self.processes).map(|_| start(time)).collect();
        wait_until(&heard, |heard| heard.ready == workers.len());
        workers.iter_mut().for_each(Worker::go);

        let begun = Instant::now();
        for kill in 1..=kills {
            std::thread::sleep((begun + time * kill / (kills + 1)) - Instant::now());
            let said = |heard: &Heard| heard.acknowledged.len();
            let before = said(&heard.lock().expect("sound"));
            wait_until(&heard, |heard| said(heard) > before);
            workers.remove(0).kill();
            // As a supervisor does.
            let mut next = start(time.saturating_sub(begun.elapsed()));
            next.go();
            workers.push(next);
        }
        workers.into_iter().for_each(Worker::finish);
        let heard = std::mem::take(&mut *heard.lock().expect("sound"));
        let verdict = Verdict {
            driver: self.driver,
            settings: self.settings,
            workers: match self.threads {
                1 => format!("{} processes", self.processes),
                threads => format!("{} processes of {threads} threads", self.processes),
            },
            kills,
            // Each thread of a victim may have been between a commit and its word for it.
            unheard: kills as usize * self.threads,
            durable: self.durable,
        };
        verdict.give(&path, &heard);
    }
}

fn wait_until(heard: &Mutex<Heard>, is_so: impl Fn(&Heard) -> bool) {
    let begun = Instant::now();
    loop {
        let heard = heard.lock().expect("sound");
        assert!(heard.errors.is_empty(), "{:#?}", heard.errors);
        if is_so(&heard) {
            return;
        }
        drop(heard);
        assert!(begun.elapsed() < START, "a worker says nothing");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// One process; it is killed when this goes out of scope.
struct Worker {
    child: Child,
    listener: Option<JoinHandle<()>>,
}

impl Worker {
    fn start(mut command: Command, heard: Arc<Mutex<Heard>>) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = roles::start(&mut command);
        let mut output = BufReader::new(child.stdout.take().expect("piped"));
        let listener = std::thread::spawn(move || {
            let mut line = String::new();
            while output.read_line(&mut line).expect("text") > 0 {
                heard.lock().expect("sound").line(&line);
                line.clear();
            }
        });
        Self { child, listener: Some(listener) }
    }

    fn go(&mut self) {
        writeln!(self.child.stdin.as_mut().expect("piped"), "go").expect("the worker listens");
    }

    /// As `kill -9` does; what it had said is heard.
    fn kill(mut self) {
        self.child.kill().expect("it is ours");
        self.child.wait().expect("it is ours");
        self.listen_to_the_end();
    }

    fn finish(mut self) {
        self.listen_to_the_end();
        let status = self.child.wait().expect("it is ours");
        assert!(status.success(), "a worker failed: {status}");
    }

    fn listen_to_the_end(&mut self) {
        self.listener.take().map(JoinHandle::join).expect("once").expect("it listened to the end");
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
