//! Hands jobs to workers, each with a thread here that listens to it, until there are no more, or
//! time is over, or nobody wants to know. A worker that falls silent or dies is a finding as well.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::Value;

use super::job::{Found, Job, Task};
use super::parts::{self, Link};
use crate::{Failure, Options, Watch};

/// Between two looks at whether to stop.
const LOOK: Duration = Duration::from_millis(200);
/// A worker that says nothing for so long is stuck.
const PATIENCE: Duration = Duration::from_secs(300);

/// What a worker's thread tells.
enum News {
    Images(u64),
    Done(Task, Found),
    Missing(String),
}

/// Everything that was found, by the task.
#[derive(Debug, Default)]
pub struct Outcome {
    /// In the order in which it was found.
    pub found: Vec<(Task, Found)>,
    /// Why a worker could not be set up.
    pub missing: Option<String>,
}

/// Runs the tasks, in order, on as many workers as there are processors.
pub fn run(
    options: &Options,
    tasks: impl IntoIterator<Item = Task, IntoIter: Send>,
    watch: &dyn Watch,
) -> Outcome {
    let mut outcome = Outcome::default();
    let folder = match tempfile::Builder::new().prefix("dash-torture-").tempdir() {
        Ok(folder) => folder,
        Err(error) => {
            outcome.missing = Some(format!("a temporary folder: {error}"));
            return outcome;
        }
    };
    let begun = Instant::now();
    let tasks = Mutex::new(tasks.into_iter());
    let stop = AtomicBool::new(false);
    // Most of the time a worker waits for the kernel.
    let workers = 2 * std::thread::available_parallelism().map_or(1, usize::from).min(8);
    std::thread::scope(|scope| {
        let (sender, news) = mpsc::channel();
        for number in 0..workers {
            let (sender, tasks, stop) = (sender.clone(), &tasks, &stop);
            let place = folder.path().join(number.to_string());
            scope.spawn(move || {
                let next = || {
                    let left = options.time.checked_sub(begun.elapsed())?;
                    let task = tasks.lock().unwrap_or_else(PoisonError::into_inner).next()?;
                    Some(job(options, task, left))
                };
                if let Err(error) = listen(&place, next, stop, &sender) {
                    let _nobody = sender.send(News::Missing(error.to_string()));
                }
            });
        }
        drop(sender);
        let mut images = 0;
        loop {
            match news.recv_timeout(LOOK) {
                Ok(News::Images(more)) => images += more,
                Ok(News::Done(task, found)) => outcome.found.push((task, found)),
                Ok(News::Missing(what)) => outcome.missing = Some(what),
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
            }
            let done = begun.elapsed().as_secs_f64() / options.time.as_secs_f64().max(0.001);
            if !watch.progress(images, done.min(1.0)) {
                stop.store(true, Ordering::SeqCst);
            }
        }
    });
    outcome
}

fn job(options: &Options, task: Task, left: Duration) -> Job {
    Job {
        task,
        time: u64::try_from(left.as_millis()).unwrap_or(u64::MAX),
        library: options.library.clone(),
        keep: options.folder.clone().unwrap_or_else(std::env::temp_dir),
    }
}

/// Starts a worker, and again another where one dies; ends it when there is nothing left to do.
fn listen(
    place: &Path,
    next: impl Fn() -> Option<Job>,
    stop: &AtomicBool,
    news: &mpsc::Sender<News>,
) -> std::io::Result<()> {
    let mut number = 0;
    let mut waiting = VecDeque::new();
    while let Some(job) = waiting.pop_front().or_else(&next) {
        let folder = place.with_extension(number.to_string());
        std::fs::create_dir(&folder)?;
        number += 1;
        let (mut child, mut link) = parts::start("worker", &folder)?;
        link.patience(LOOK)?;
        waiting.push_back(job);
        let ended = serve(&mut link, &mut waiting, &next, stop, news);
        // The worker sees the end of the link.
        drop(link);
        let died = if ended.is_err() { child.kill() } else { Ok(()) };
        let status = child.wait()?;
        died?;
        if let Err(job) = ended {
            let Some(job) = job else { return Ok(()) };
            let what =
                format!("{}: the process that looked at it ended ({status})", job.task.name());
            let replay = super::worker::replay(&job.task);
            let fails = matches!(job.task, Task::Faults { kind, .. } if kind.shuts_down());
            let mut found = Found::default();
            if !(fails && status.signal() == Some(Signal::SIGBUS as i32)) {
                found.failures.push(Failure { what, replay });
            }
            let _nobody = news.send(News::Done(job.task, found));
        }
        if stop.load(Ordering::SeqCst) {
            break;
        }
    }
    Ok(())
}

/// Talks to one worker until there is nothing left to do, or it is lost with a job (`Err`); without
/// one it was never fit for work.
fn serve(
    link: &mut Link,
    waiting: &mut VecDeque<Job>,
    next: &impl Fn() -> Option<Job>,
    stop: &AtomicBool,
    news: &mpsc::Sender<News>,
) -> Result<(), Option<Job>> {
    let mut current: Option<Job> = None;
    let mut heard = Instant::now();
    loop {
        if stop.load(Ordering::SeqCst) {
            return Ok(());
        }
        let message = match link.receive() {
            Ok(Some(message)) => message,
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
                    && heard.elapsed() < PATIENCE =>
            {
                continue;
            }
            Ok(None) | Err(_) => return Err(current),
        };
        heard = Instant::now();
        if let Some(what) = message.get("missing").and_then(Value::as_str) {
            let _nobody = news.send(News::Missing(what.to_owned()));
            return Err(None);
        }
        if let Some(images) = message.get("progress").and_then(Value::as_u64) {
            let _nobody = news.send(News::Images(images));
            continue;
        }
        if let (Some(job), Some(found)) =
            (current.take(), message.get("done").and_then(Found::from_json))
        {
            let _nobody = news.send(News::Done(job.task, found));
        }
        // It is ready for the next.
        let Some(job) = waiting.pop_front().or_else(next) else { return Ok(()) };
        if link.send(&job.to_json()).is_err() {
            return Err(Some(job));
        }
        current = Some(job);
    }
}
