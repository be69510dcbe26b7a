//! `sqlite-dash demo`: what stock DELETE, stock WAL, dash shadow and dash wal are each best at;
//! then writers are killed, and what they had acknowledged is looked for.
//!
//! `compare` has `dash_bench` measure the four `modes` in alternating blocks, on copies of one
//! database; `bars` and `svg` show what came out, `advice` says when to take which, and `words` is
//! what those have in common. Nothing outside a folder of the demo's own is written, but the chart.

mod advice;
mod bars;
mod compare;
mod crash;
mod kind;
mod modes;
mod source;
mod svg;
mod words;
pub mod writer;

use std::path::{Path, PathBuf};
use std::time::Duration;

use dash_bench::options::Where;
use dash_bench::recorded::Recording;
use dash_bench::session::Bench;
use dash_bench::volume::Volume;
use nix::sys::statfs::{TMPFS_MAGIC, statfs};
use rusqlite::Connection;

use crate::failure::{Explain, Failure, Result};
use crate::out::{Shown, line_in_colours, say};
use crate::{Outcome, interrupt};
use bars::Look;
use compare::{Comparison, Plan};
use kind::Kind;

/// Seconds for which it compares, unless others are named: it is a demonstration, no benchmark.
const SECONDS: u64 = 50;
/// So many seconds make another round of kills worth its time.
const SECONDS_A_ROUND: u64 = 10;
/// Characters of a line.
const COLUMNS: usize = 98;

/// Arguments of `sqlite-dash demo`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Runs on copies of this database; the file itself is only read
    #[arg(value_name = "FILE.db", conflicts_with = "replay")]
    file: Option<PathBuf>,
    /// Compares at recorded SQL instead: loading.sql once, then one connection per file of
    /// benchset/; or plain *.sql
    #[arg(long, value_name = "FOLDER")]
    replay: Option<PathBuf>,
    /// For how long the three comparisons run, about
    #[arg(long, value_name = "N", default_value_t = SECONDS, value_parser = clap::value_parser!(u64).range(1..=3600), conflicts_with = "replay")]
    seconds: u64,
    /// Writes everything as one chart too: self-contained, for light and dark pages
    #[arg(long, value_name = "FILE.svg")]
    svg: Option<PathBuf>,
    /// Where the demo's databases are made (and removed); choose the disk to try
    #[arg(long, value_name = "PATH", default_value = ".")]
    dir: PathBuf,
    /// On what
    #[arg(long, value_name = "PLACE", default_value = "dir")]
    on: Where,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<Outcome> {
    let shown = show(arguments);
    // Ctrl-C reaches the processes that write too: their early end is then no failure.
    if interrupt::pressed() {
        return Err(Failure::new("stopped; the demo's folder is removed"));
    }
    shown
}

fn show(arguments: &Arguments) -> Result<Outcome> {
    arguments.svg.as_deref().map_or(Ok(()), can_be_written)?;
    let bench = Bench::start(&arguments.dir)?;
    let volume = arguments.on.volume(&bench.volumes)?;
    let folder = volume.folder("demo")?;
    let (plan, place) = prepare(arguments, &bench, volume, folder.path())?;
    place.iter().flat_map(|line| words::wrap(line, COLUMNS)).for_each(|line| say!("{line}"));
    let kinds: &[Kind] = match arguments.replay {
        Some(_) => &[Kind::Recorded],
        None => &[Kind::Writer, Kind::Processes, Kind::Sessions],
    };
    let look = Look::of_output();
    let mut comparisons: Vec<Comparison> = Vec::new();
    for kind in kinds {
        let comparison = compare::run(*kind, &plan, volume)?;
        line_in_colours(format_args!("\n{}", bars::comparison(&comparison, look).trim_end()));
        comparisons.push(comparison);
    }
    let rounds = usize::try_from(arguments.seconds / SECONDS_A_ROUND).unwrap_or(usize::MAX);
    let cuts = crash::run(&bench.extension, folder.path(), plan.base.as_deref(), rounds)?;
    say!("\n{}", bars::kills(&cuts));
    advise(&comparisons);
    if let Some(file) = &arguments.svg {
        let chart = svg::chart(&place, &comparisons, &words::kills(&cuts));
        std::fs::write(file, chart).explain(format!("writing {}", file.shown()))?;
        say!("\nthe chart: {}", file.shown());
    }
    Ok(Outcome::of(cuts.iter().all(crash::Cut::is_clean)))
}

/// What is run, and the lines that say where.
fn prepare(
    arguments: &Arguments,
    bench: &Bench,
    volume: &Volume,
    folder: &Path,
) -> Result<(Plan, Vec<String>)> {
    let header = bench.header(volume)?;
    let mut place = header.lines();
    let mut base = None;
    if let Some(file) = &arguments.file {
        let copy = folder.join("base.db");
        source::copy(&bench.extension, file, &copy)?;
        base = Some(copy);
        place.push(format!("on copies of {}", file.shown()));
    }
    if let Some(replay) = &arguments.replay {
        place.extend(left_out(replay)?);
    }
    if volume.in_memory || is_memory(folder) {
        place.push("this is in memory, so a flush costs nothing and times prove nothing: name a disk with --dir".into());
    }
    let plan = Plan {
        base,
        replay: arguments.replay.clone(),
        on: arguments.on,
        time: Duration::from_secs(arguments.seconds),
        flush_us: header.flush_p50_us,
    };
    Ok((plan, place))
}

/// Says when to take which mode, and how the figures are meant.
fn advise(comparisons: &[Comparison]) {
    for (mode, sentence) in words::advice(comparisons) {
        for (at, line) in words::wrap(&sentence, COLUMNS - 14).into_iter().enumerate() {
            say!("{:<12}  {line}", if at == 0 { mode.name } else { "" });
        }
    }
    say!("");
    for note in words::notes(comparisons) {
        for (at, line) in words::wrap(&note, COLUMNS - 4).into_iter().enumerate() {
            say!("  {} {line}", if at == 0 { "-" } else { " " });
        }
    }
}

/// Fails before anything is measured in vain.
fn can_be_written(file: &Path) -> Result<()> {
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    match folder.is_dir() && !file.is_dir() {
        true => Ok(()),
        false => Err(Failure::new(format!("--svg {}: there is no such folder", file.shown()))),
    }
}

/// What a reader must know of a recording that is not run as it stands.
fn left_out(replay: &Path) -> Result<Vec<String>> {
    let recording = Recording::read(replay)?;
    let scratch = Connection::open_in_memory().explain("opening a scratch connection")?;
    let failed = recording.load(&scratch)?;
    let mut lines = Vec::new();
    if failed > 0 {
        lines.push(format!("{failed} statements of the loading files fail"));
    }
    if recording.left_out > 0 {
        lines.push(format!(
            "{} statements are left out: PRAGMAs that set what is compared here, such as synchronous",
            recording.left_out
        ));
    }
    Ok(lines)
}

/// Whether a folder loses everything with the power.
fn is_memory(folder: &Path) -> bool {
    statfs(folder).is_ok_and(|found| found.filesystem_type() == TMPFS_MAGIC)
}
