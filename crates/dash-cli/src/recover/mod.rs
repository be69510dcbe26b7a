//! `dash recover`: mends a database after a crash. Says first, step by step, what it will do; then
//! asks. Nothing that was there before is ever deleted or overwritten: what loses is kept as
//! `FILE.before-recover-N`.

pub mod plan;
mod steps;

use std::path::{Path, PathBuf};

use clap::builder::{PossibleValue, PossibleValuesParser};

use crate::Outcome;
use crate::ask::confirm;
use crate::engines::{self, ENGINES};
use crate::extension::Extension;
use crate::failure::{Explain, Result};
use crate::interrupt::Interrupt;
use crate::out::say;
use plan::{Plan, Reply};

/// Arguments of `dash recover`.
#[derive(clap::Args)]
pub struct Arguments {
    /// The database
    file: PathBuf,
    /// Which of the files to keep, where each holds commits that the other lacks; alone, in WAL
    /// mode, the commits of FILE-dashlog where FILE-wal was removed
    #[arg(long, value_parser = choices(), num_args = 0..=1, default_missing_value = "log")]
    keep: Option<String>,
    /// Takes the database as it is, without what only other files hold: `--keep database`
    #[arg(long, conflicts_with = "keep")]
    discard: bool,
    /// Goes ahead without asking
    #[arg(long)]
    yes: bool,
}

/// What engines let a person choose between.
fn choices() -> PossibleValuesParser {
    let mut all: Vec<_> = ENGINES.iter().flat_map(|engine| engine.keep).collect();
    all.sort();
    all.dedup_by_key(|(word, _)| *word);
    all.into_iter().map(|(word, help)| PossibleValue::new(word).help(help)).into()
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<Outcome> {
    let file = resolve(&arguments.file)?;
    let found = engines::look(&file)?;
    let interrupt = Interrupt::catch()?;
    let keep = if arguments.discard { Some("database") } else { arguments.keep.as_deref() };
    let plan = match found.recovery(&file, keep, &interrupt)? {
        Reply::Do(plan) => plan,
        Reply::Tell(text) => {
            say!("{text}");
            return Ok(Outcome::Bad);
        }
        Reply::Nothing(text) => {
            say!("{text}");
            return Ok(Outcome::Good);
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

fn show(plan: &Plan) {
    say!("{}", plan.why);
    for (number, step) in plan.steps.iter().enumerate() {
        say!("{:>3}. {step}", number + 1);
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
