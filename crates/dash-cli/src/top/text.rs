//! A look for people.

use std::fmt::Write;
use std::path::Path;

use super::moment::{Moment, Party, Rates, Reader};
use crate::out::Shown;

/// Lines of people in a list; the rest is counted.
const SHOWN: usize = 10;

/// The page.
pub fn of(path: &Path, now: Option<&Moment>, rates: &Rates) -> String {
    let Some(now) = now else {
        return format!("{}: no connection of dash has it open for writing\n", path.shown());
    };
    let mut page = String::new();
    let mut line = |text: String| {
        let _ = writeln!(page, "{text}");
    };
    let plural = if now.connections == 1 { "" } else { "s" };
    let stock = now.stock.map_or_else(String::new, |stock| format!(", dash_stock={stock}"));
    let (mode, open) = (now.mode, now.connections);
    line(format!("{}  mode {mode}{stock}, {open} connection{plural}", path.shown()));
    let mut figures = vec![format!("{} in all", now.commits)];
    figures.extend(rates.commits.map(|rate| format!("{rate:.1}/s")));
    figures
        .extend(rates.wal_bytes.map(|rate| format!("{:.2} MiB/s into -wal", rate / 1_048_576.0)));
    line(format!("commits     {}", figures.join(", ")));
    let mut figures = Vec::new();
    figures.extend(rates.group_size.map(|size| format!("{size:.1} commits a record")));
    figures.extend(
        rates.log_bytes_per_commit.map(|bytes| format!("{bytes:.0} bytes of log a commit")),
    );
    figures
        .extend(rates.flush.map(|flush| format!("durable after {:.3} ms (median)", flush * 1e3)));
    if !figures.is_empty() {
        line(format!("log         {}", figures.join(", ")));
    }
    let nobody = || "nobody".to_owned();
    line(format!("writer      {}", now.writer.as_ref().map_or_else(nobody, party)));
    if let Some(checkpoint) = &now.checkpoint {
        line(format!("checkpoint  {}", party(checkpoint)));
    }
    list(&mut line, "waiting", &now.queue.iter().map(party).collect::<Vec<_>>());
    let mut readers: Vec<_> = now.readers.iter().collect();
    readers.sort_by_key(|reader| std::cmp::Reverse(reader.age));
    list(&mut line, "readers", &readers.into_iter().map(reader).collect::<Vec<_>>());
    page
}

fn list(line: &mut impl FnMut(String), name: &str, people: &[String]) {
    line(format!("{name:<12}{}", people.len()));
    for person in people.iter().take(SHOWN) {
        line(format!("            {person}"));
    }
    if people.len() > SHOWN {
        line(format!("            and {} more", people.len() - SHOWN));
    }
}

fn process(process: Option<u32>) -> String {
    process.map_or_else(|| "a process that is not known".to_owned(), |it| format!("process {it}"))
}

fn party(party: &Party) -> String {
    let age = party.age.map_or_else(String::new, |age| format!(" for {}", duration(age)));
    format!("{}{age}", process(party.process))
}

fn reader(reader: &Reader) -> String {
    let mut text = format!("{}, {}", process(reader.process), reader.kind);
    if let Some(age) = reader.age {
        let _ = write!(text, ", for {}", duration(age));
    }
    if let Some(bytes) = reader.kept_bytes.filter(|bytes| *bytes > 0) {
        let _ = write!(text, ", keeps {} KiB of -wal", bytes.div_ceil(1024));
    }
    if let Some(commits) = reader.commits_behind.filter(|commits| *commits > 0) {
        let _ = write!(text, ", {commits} commits behind");
    }
    text
}

fn duration(nanos: u64) -> String {
    let seconds = nanos / 1_000_000_000;
    match seconds {
        0 => format!("{} ms", nanos / 1_000_000),
        1..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        _ => format!("{} h", seconds / 3600),
    }
}
