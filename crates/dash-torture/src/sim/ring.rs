//! Runs cases of all engines, variants and page sizes in turn, on two threads, until the time is
//! up.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::explore::{Seen, lock};
use super::plan::Plan;
use super::program;
use super::shrink::shrink;
use super::subject::Subject;
use crate::engine::Engine;
use crate::engines::ENGINES;
use crate::variant::Variant;
use crate::{Failure, Options, Ring, Summary, Watch};

/// Programs run at once.
const THREADS: usize = 2;
/// Bytes of a page of the databases: the smallest, the default, the largest that SQLite has.
const PAGES: [usize; 3] = [512, 4096, 65_536];
/// After so many failures an engine is no longer tried.
const FAILURES: usize = 3;

/// An engine, one of its variants and a page size, and what was found so far.
struct Target {
    subject: &'static dyn Subject,
    variant: &'static str,
    page: usize,
    seen: Arc<Mutex<Seen>>,
    cases: AtomicU64,
    failures: Mutex<Vec<Failure>>,
}

impl Target {
    fn name(&self) -> String {
        format!("{}/{}/{}", self.subject.engine(), self.variant, self.page)
    }

    /// Runs a case, and another, smaller one if it fails.
    fn run(&self, plan: Plan) {
        let result = program::run(self.subject, self.variant, &plan, &self.seen);
        self.cases.fetch_add(1, Ordering::Relaxed);
        let Err(violation) = result else {
            return;
        };
        let (plan, violation) = shrink(self.subject, self.variant, plan, violation);
        let replay = format!(
            "dash-torture --ring {} --engine {} --seed {} --case {plan}",
            Ring::Sim.name(),
            self.name(),
            plan.seed
        );
        lock(&self.failures).push(Failure { what: violation.0, replay });
    }

    fn summary(&self) -> Summary {
        let seen = lock(&self.seen);
        Summary {
            engine: self.name(),
            cases: self.cases.load(Ordering::Relaxed),
            states: seen.states.len() as u64,
            nested: seen.nested.len() as u64,
            nested_twice: seen.nested_twice.len() as u64,
            notes: Vec::new(),
            skipped: Vec::new(),
            calibration: None,
            failures: lock(&self.failures).clone(),
        }
    }
}

/// All that the ring tries.
pub fn targets() -> Vec<String> {
    let of = |engine: &&dyn Engine| -> Vec<String> {
        let name = engine.name();
        let pages = |variant: &Variant| PAGES.map(|page| format!("{name}/{}/{page}", variant.name));
        engine.variants().iter().flat_map(pages).collect()
    };
    ENGINES.iter().flat_map(of).collect()
}

/// Runs the ring on all engines.
pub fn run(options: &Options, watch: &dyn Watch) -> Vec<Summary> {
    let subjects: Vec<_> = ENGINES.iter().map(|engine| engine.subject()).collect();
    run_on(&subjects, options, watch)
}

/// Runs the ring on these engines.
pub fn run_on(
    subjects: &[&'static dyn Subject],
    options: &Options,
    watch: &dyn Watch,
) -> Vec<Summary> {
    let mut targets = Vec::new();
    for &subject in subjects {
        for &Variant { name: variant, .. } in subject.variants() {
            for page in PAGES {
                let (seen, failures) = (Arc::default(), Mutex::default());
                let target =
                    Target { subject, variant, page, seen, cases: AtomicU64::new(0), failures };
                if options.wants(&target.name()) {
                    targets.push(target);
                }
            }
        }
    }
    match &options.case {
        Some(case) => run_case(&targets, case, options.seed),
        None => run_all(&targets, options, watch),
    }
    targets.iter().map(Target::summary).collect()
}

/// One case, on each target whose page size it has.
fn run_case(targets: &[Target], case: &str, seed: u64) {
    match Plan::read(case, seed) {
        Ok(plan) => {
            let fitting = targets.iter().filter(|target| target.page == plan.page);
            fitting.for_each(|target| target.run(plan.clone()));
        }
        Err(what) => {
            for target in targets {
                lock(&target.failures).push(Failure { what: what.clone(), replay: String::new() });
            }
        }
    }
}

fn run_all(targets: &[Target], options: &Options, watch: &dyn Watch) {
    let (begun, next, stop) = (Instant::now(), AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while !targets.is_empty() && !stop.load(Ordering::Relaxed) {
                    let job = next.fetch_add(1, Ordering::Relaxed);
                    let time = begun.elapsed().as_secs_f64() / options.time.as_secs_f64();
                    if time >= 1.0 || !watch.progress(job, time) {
                        stop.store(true, Ordering::Relaxed);
                        break;
                    }
                    let count = targets.len() as u64;
                    let at = usize::try_from(job % count).unwrap_or_default();
                    let (target, seed) = (&targets[at], options.seed + job / count);
                    if lock(&target.failures).len() < FAILURES {
                        let claims = target.subject.claims();
                        target.run(Plan::claimed(seed, target.page, claims));
                    } else if targets.iter().all(|t| lock(&t.failures).len() >= FAILURES) {
                        break;
                    }
                }
            });
        }
    });
}
