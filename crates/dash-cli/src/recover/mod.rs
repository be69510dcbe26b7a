//! `dash recover`: mends a database after a crash. Says first, step by step, what it will do; then
//! asks. Nothing that was there before is ever deleted or overwritten: what loses is kept as
//! `FILE.before-recover-N`.

mod age;
mod plan;
mod steps;
mod torn;

use std::path::{Path, PathBuf};

use dash_shadow::Report;
use dash_shadow::inspect::{Action, Opening, ShadowKind};

use crate::Outcome;
use crate::ask::confirm;
use crate::extension::Extension;
use crate::failure::{Explain, Result};
use crate::inspect;
use crate::interrupt::Interrupt;
use crate::out::say;
use plan::{Plan, Reply};

/// Arguments of `dash recover`.
#[derive(clap::Args)]
pub struct Arguments {
    /// The database
    file: PathBuf,
    /// Which of the two files to keep, where both hold commits that the other lacks
    #[arg(long)]
    keep: Option<Keep>,
    /// Goes ahead without asking
    #[arg(long)]
    yes: bool,
}

/// One of the two files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Keep {
    /// What is named FILE
    Database,
    /// What is named FILE-shadow
    Shadow,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<Outcome> {
    let file = resolve(&arguments.file)?;
    let report = inspect::look(&file)?;
    let interrupt = Interrupt::catch()?;
    if !needs_recovery(&report) {
        let shown = file.display();
        if let Some(keep) = arguments.keep {
            say!("nothing was done: {}", not_a_choice(keep, &file));
            return Ok(Outcome::Bad);
        }
        say!(
            "{shown} needs no recovery: opening it {}; for damage that no crash of dash made, PRAGMA integrity_check looks",
            inspect::opening(&report)
        );
        return Ok(Outcome::Good);
    }
    let reply = match &report.opening {
        Opening::Refuse(refusal, _) if torn::is_for(*refusal, arguments.keep) => {
            torn::plan(&file, *refusal, arguments.keep, &interrupt)?
        }
        _ => plan::plan(&file, &report, arguments.keep, &interrupt)?,
    };
    let plan = match reply {
        Reply::Do(plan) => plan,
        Reply::Tell(text) => {
            say!("{text}");
            return Ok(Outcome::Bad);
        }
    };
    show(&plan);
    if !confirm("Shall this be done?", arguments.yes)? {
        say!("nothing was done");
        return Ok(Outcome::Bad);
    }
    let extension = Extension::load()?;
    steps::run(&plan.steps, &extension, &interrupt)
}

/// Why there is nothing to choose between, and what to do about damage.
fn not_a_choice(keep: Keep, file: &Path) -> String {
    let shown = file.display();
    match keep {
        Keep::Database => format!("opening {shown} keeps it as it is, without --keep"),
        Keep::Shadow => format!(
            "by what dash keeps a record of, {shown} is whole and {shown}-shadow is an older state of it. If PRAGMA integrity_check \
             finds {shown} damaged, copy {shown}-shadow under another name before anything opens {shown} again, and \
             look with `dash shell` what that copy holds"
        ),
    }
}

fn show(plan: &Plan) {
    say!("{}", plan.why);
    for (number, step) in plan.steps.iter().enumerate() {
        say!("{:>3}. {step}", number + 1);
    }
}

/// Whether opening the database would do more than open it.
fn needs_recovery(report: &Report) -> bool {
    match &report.opening {
        Opening::Join => false,
        Opening::Row(Action::Create, _) => false,
        Opening::Row(Action::UseShadow | Action::KeepUndo, _) => true,
        Opening::Row(..) => report.beside.fence || report.verdict.shadow == ShadowKind::Torn,
        _ => true,
    }
}

/// The file behind symbolic links, as SQLite sees it; the name itself where there is no file.
fn resolve(file: &Path) -> Result<PathBuf> {
    match file.canonicalize() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            std::path::absolute(file).explain(format!("looking up {}", file.display()))
        }
        other => other.explain(format!("looking up {}", file.display())),
    }
}
