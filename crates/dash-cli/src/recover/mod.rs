//! `sqlite-dash recover`: mends a database after a crash. Says first, step by step, what it will
//! do. What any opening would do it does unasked, so that it can run before a service starts;
//! before anything else it asks. Nothing that was there before is ever deleted or overwritten: what
//! loses is kept as `FILE.before-recover-N`.

pub mod plan;
mod steps;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValue, TypedValueParser};
use nix::unistd::AccessFlags;

use crate::Outcome;
use crate::access;
use crate::ask::confirm;
use crate::engine::{SUFFIXES, sidecar};
use crate::engines::{self, ENGINES};
use crate::extension::Extension;
use crate::failure::{Explain, Failure, Result};
use crate::interrupt::Interrupt;
use crate::out::{Shown, say};
use plan::{Plan, Reply, Step};

/// Arguments of `sqlite-dash recover`.
#[derive(clap::Args)]
#[command(
    override_usage = "sqlite-dash recover [OPTIONS] <FILE>",
    after_help = "Exit codes: 0 the database needs nothing (no integrity_check is run then) or is yet to be made, or it was \
                  recovered and integrity_check found nothing; 1 a person has to decide, as the text says, or integrity_check \
                  finds damage; 2 it could not be carried out, such as while another process has the database locked, or where \
                  it would ask and there is no terminal."
)]
pub struct Arguments {
    /// The database
    #[arg(required_unless_present = "keep")]
    file: Option<PathBuf>,
    /// Which of the files to keep, where each holds commits that the other lacks; alone, in WAL
    /// mode, the commits of FILE-dashlog where FILE-wal was removed
    #[arg(long, value_parser = Choice, num_args = 0..=1, default_missing_value = ALONE)]
    keep: Option<OsString>,
    /// Takes the database as it is, without what only other files hold: `--keep database`
    #[arg(long, conflicts_with = "keep")]
    discard: bool,
    /// Goes ahead without asking, also where something is moved or given up
    #[arg(long)]
    yes: bool,
}

/// What `--keep` means without a value.
const ALONE: &str = "log";

/// What engines let a person choose between, each with a line of help.
fn choices() -> Vec<(&'static str, &'static str)> {
    let mut all: Vec<_> = ENGINES.iter().flat_map(|engine| engine.keep).copied().collect();
    all.sort_unstable();
    all.dedup_by_key(|(word, _)| *word);
    all
}

/// Takes any word: the one behind `--keep` may be FILE.
#[derive(Clone)]
struct Choice;

impl TypedValueParser for Choice {
    type Value = OsString;

    fn parse_ref(
        &self,
        _: &clap::Command,
        _: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> std::result::Result<OsString, clap::Error> {
        Ok(value.to_owned())
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let value = |(word, help)| PossibleValue::new(word).help(help);
        Some(Box::new(choices().into_iter().map(value)))
    }
}

impl Arguments {
    /// The database, and what is to be kept.
    fn understood(&self) -> Result<(PathBuf, Option<&'static str>)> {
        let choices = choices();
        let named = |word: &OsString| choices.iter().find(|(choice, _)| **choice == **word);
        let (file, keep) = match (&self.file, &self.keep) {
            (Some(file), None) => (file.clone(), None),
            (Some(file), Some(word)) => (file.clone(), Some((word, named(word)))),
            // `--keep FILE`
            (None, Some(word)) if named(word).is_none() => {
                return Ok((PathBuf::from(word), Some(ALONE)));
            }
            (None, _) => return Err(Failure::new("which FILE is to be recovered?")),
        };
        match keep {
            _ if self.discard => Ok((file, Some("database"))),
            None => Ok((file, None)),
            Some((_, Some((word, _)))) => Ok((file, Some(*word))),
            Some((word, None)) => {
                let words: Vec<_> = choices.iter().map(|(word, _)| *word).collect();
                Err(Failure::new(format!(
                    "--keep can't be {}: it is one of {}",
                    word.to_string_lossy(),
                    words.join(", ")
                )))
            }
        }
    }
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<Outcome> {
    let (file, keep) = arguments.understood()?;
    let file = resolve(&file)?;
    if is_yet_to_be_made(&file) {
        say!("{} is yet to be made: there is nothing to recover", file.shown());
        return Ok(Outcome::Good);
    }
    let found = engines::look(&file)?;
    let interrupt = Interrupt::catch()?;
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
    writable(&file)?;
    show(&plan);
    let only_opens = plan.steps.iter().all(|step| matches!(step, Step::Open { .. }));
    if !only_opens && !confirm("Shall this be done?", arguments.yes)? {
        say!("nothing was done");
        return Ok(Outcome::Bad);
    }
    let extension = Extension::load()?;
    steps::run(&plan.steps, &extension, &interrupt)
}

/// Whether there is neither a database nor anything of one, in a folder that is there.
fn is_yet_to_be_made(file: &Path) -> bool {
    let is_missing = |path: &Path| {
        let looked = path.symlink_metadata();
        looked.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
    };
    file.parent().is_some_and(Path::is_dir)
        && is_missing(file)
        && SUFFIXES.iter().all(|suffix| is_missing(&sidecar(file, suffix)))
}

/// Refuses before anything is done where nothing can be mended.
fn writable(file: &Path) -> Result<()> {
    let folder = file.parent().unwrap_or(Path::new("/"));
    let there = [folder, file].into_iter().filter(|path| path.symlink_metadata().is_ok());
    match there.filter_map(|path| access::hindrance(path, AccessFlags::W_OK)).next() {
        None => Ok(()),
        Some(why) => Err(Failure::new(format!(
            "not mended: {why}; until then stock SQLite may be refused (\"disk I/O error\")"
        ))),
    }
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
            std::path::absolute(file).explain(format!("looking up {}", file.shown()))
        }
        other => other.explain(format!("looking up {}", file.shown())),
    }
}
