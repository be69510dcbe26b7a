//! The worker's part: one job after the other on a rig of its own.

use std::io::Result;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use fastrand::Rng;
use serde_json::json;

use super::blocks::Blocks;
use super::check::{Look, Wrong};
use super::database::Opened;
use super::failing;
use super::guests;
use super::images::Images;
use super::job::{Found, Job, Task};
use super::parts::{self, Link};
use super::program::{self, generate};
use super::record::{Begun, Fresh, record};
use super::rig::Rig;
use super::saved;
use super::stage::Stage;
use super::visit::Visit;
use crate::{Failure, sqlite};

/// Plays the part.
pub fn play(mut link: Link, folder: &Path) -> Result<()> {
    let rig = match Rig::new(folder) {
        Ok(rig) => rig,
        Err(error) => return link.send(&json!({ "missing": error.to_string() })),
    };
    let sender = link.sender()?;
    link.send(&json!("ready"))?;
    let (jobs, queue) = mpsc::channel();
    std::thread::spawn(move || {
        while let Ok(Some(message)) = link.receive() {
            if let Some(job) = Job::from_json(&message) {
                let _ended = jobs.send(job);
            }
        }
        // Nobody is waiting any more. The device sees that this process is gone, and goes too.
        std::process::exit(0);
    });
    let mut fresh = Fresh::new();
    while let Ok(job) = queue.recv() {
        let found = run(&rig, &job, &mut fresh, &sender);
        parts::send(&sender, &json!({ "done": found.to_json() }))?;
    }
    Ok(())
}

fn run(rig: &Rig, job: &Job, fresh: &mut Fresh, sender: &UnixStream) -> Found {
    let mut found = Found::default();
    let outcome = sqlite::load(&job.library).and_then(|()| match &job.task {
        Task::Images { .. } => images(rig, job, fresh, sender, &mut found),
        Task::Faults { .. } => failing::run(rig, job, fresh, sender, &mut found),
        Task::Saved(place) => again(rig, place, &mut found),
    });
    if let Err(what) = outcome {
        let replay = replay(&job.task);
        found.failures.push(Failure { what: format!("{}: {what}", job.task.name()), replay });
    }
    found
}

/// The command that runs a task again; the kernel's timing is not repeated by it.
pub fn replay(task: &Task) -> String {
    match task {
        Task::Images { kind, opened, seed, images } => format!(
            "dash-torture --ring fs --case {}:{}:{seed}:{images}",
            opened.name(),
            kind.name()
        ),
        Task::Faults { kind, opened, seed } => {
            format!("dash-torture --ring fs --case {}:{}:{seed}", opened.name(), kind.name())
        }
        Task::Saved(place) => format!("dash-torture --ring fs --case {}", place.display()),
    }
}

/// Looks at a saved image.
fn again(rig: &Rig, place: &Path, found: &mut Found) -> std::result::Result<(), String> {
    let saved = saved::load(place).map_err(|error| error.to_string())?;
    let device = rig.attach(saved.kind.size()).map_err(|error| error.to_string())?;
    let base = Blocks::default();
    Stage::default().set(&rig.content, &base, &saved.blocks).map_err(|error| error.to_string())?;
    let hash = base.hash_with(&saved.blocks);
    found.hashes.push(hash);
    let look = Look {
        kind: saved.kind,
        opened: saved.opened,
        is_attached: saved.is_attached,
        allowed: &saved.allowed,
        visit: Visit::of(saved.opened, hash),
        begun: &[],
    };
    match look.at(rig, &device) {
        Ok(_) => Ok(()),
        Err(Wrong::Lost(what) | Wrong::Broken(what)) => Err(what),
    }
}

/// The images of a program.
fn images(
    rig: &Rig,
    job: &Job,
    fresh: &mut Fresh,
    sender: &UnixStream,
    found: &mut Found,
) -> std::result::Result<(), String> {
    let Task::Images { kind, opened, seed, images } = job.task else { return Ok(()) };
    let end = Instant::now() + Duration::from_millis(job.time);
    let (device, recording, is_attached) = match opened {
        Opened::Guests(engine) => {
            let begun = Begun::new(rig, (kind, program::fillers(seed)), "", fresh)?;
            let ledger = guests::perform((rig, kind), &job.library, engine, seed)?;
            let (device, recording) = begun.end(rig, ledger)?;
            (device, recording, false)
        }
        Opened::Dash(..) | Opened::Stock(..) => {
            let (mode, more, shrinks) = (opened.engine(), opened.statements(), opened.may_shrink());
            let program = generate(seed, program::Allowed { steps: 40, mode, more, shrinks });
            let (device, recording) = record(rig, (kind, opened), &program, fresh)?;
            (device, recording, program.is_attached)
        }
    };
    let from = recording.from;
    Images {
        rig,
        device,
        task: &job.task,
        kind,
        opened,
        is_attached,
        end,
        rng: Rng::with_seed(seed ^ 0x696d_6167_6573),
        stage: Stage::default(),
        seen: Default::default(),
        keep: &job.keep,
        found,
        sender,
    }
    .explore(recording, from, images)
    .map_err(|error| error.to_string())
}
