//! The report for people.

use std::path::Path;

use dash_storage::LockKind;
use dash_wal::Report;
use dash_wal::inspect::LogSeen;

use super::{Holders, words};
use crate::holders;
use crate::out::{Shown, say};

/// Prints the report.
pub fn print(report: &Report, holders: &[Holders]) {
    let names = &report.names;
    let name = |name: &std::ffi::OsStr| Path::new(name).shown();
    say!("database  {}: {}", name(&names.db), words::database(report.database.as_ref()));
    database(report);
    match &report.wal {
        Some(_) => say!("-wal      {}:", name(&names.wal)),
        None => say!("-wal      {}: none", name(&names.wal)),
    }
    wal(report);
    if let Some(text) = words::in_memory(report) {
        line("memory", &text);
    }
    if let Some(path) = &report.elsewhere {
        say!("sign      {}: the log is {}", name(&names.log), path.shown());
    }
    let log_name = report.elsewhere.as_ref().map_or_else(|| name(&names.log), |path| path.shown());
    match &report.log {
        None => say!("log       {}: none", log_name),
        Some(Err(why)) => {
            say!("log       {}: can't be used: {}", log_name, why);
        }
        Some(Ok(seen)) => {
            say!("log       {}: {}", log_name, words::head(seen.head));
            log(seen, report);
        }
    }
    say!("log and -wal: {}", words::relation(report));
    if report.fence {
        say!("name fence {}/: stock SQLite is kept out", name(&names.fence));
    }
    if report.journal {
        say!("{}: a rollback journal of stock SQLite", name(&names.fence));
    }
    if let Some(seen) = &report.coordination {
        let why = match (report.open, seen.is_ours, seen.same_cache) {
            (true, ..) => "it is open",
            (_, false, _) => "of another mode or version, or of one that was stopped",
            (_, _, true) if report.in_memory.is_some() => {
                "left behind by a process that was killed"
            }
            (_, _, true) => {
                "left behind by processes that were killed; what they wrote is in the page cache"
            }
            (_, _, false) => "left behind before the machine was started anew",
        };
        say!("coordination file {}: {why}", name(&names.coordination));
    }
    locks(report, holders);
    if report.open {
        say!("it is open now: what is said above is a moment's view");
    }
    say!("opening it through dash {}", words::opening(report));
}

fn database(report: &Report) {
    let Some(seen) = &report.database else { return };
    line("file", &format!("{} bytes, inode {}", seen.len, seen.id.inode));
    if let Some(header) = seen.header.filter(|header| header.is_sqlite) {
        let page = header.page_size.unwrap_or(0);
        line("header", &format!("pages of {page} bytes, change counter {}", header.counter));
    }
}

fn wal(report: &Report) {
    let Some(seen) = &report.wal else { return };
    let index = report.index.map_or("no wal-index".into(), |len| format!("wal-index {len} bytes"));
    line("file", &format!("{} bytes, {index}", seen.len));
    let Some(header) = &seen.header else {
        line("header", "none: SQLite takes it for empty");
        return;
    };
    let [one, two] = header.salts;
    line(
        "header",
        &format!(
            "pages of {} bytes, salts {one:08x} {two:08x}, checkpoint sequence {}",
            header.page_size, header.sequence
        ),
    );
    line(
        "frames",
        &format!(
            "{} valid, {}; the last ends with frame {}: {} pages of database",
            header.frames,
            words::counted(header.commits, "commit"),
            header.committed,
            header.pages
        ),
    );
}

fn log(seen: &LogSeen, report: &Report) {
    let same = report.database.is_some_and(|db| db.id.inode == seen.owner);
    let whose = match seen.owner {
        0 => "beside which database is not known".to_owned(),
        _ if same => "of this database".to_owned(),
        owner => {
            format!("last used beside inode {owner}: the files were copied, or are not of one set")
        }
    };
    line("file", &format!("{} bytes, ring of {} in blocks of {}", seen.len, seen.ring, seen.block));
    line("belongs", &words::whose(seen.whose));
    line("id", &format!("{:016x}, {whose}", seen.id));
    let void = format!("up to {} void, the greatest is {}", seen.void, seen.greatest);
    line("records", &void);
    match (&seen.chain, &seen.voids) {
        (Some(chain), _) => {
            let (from, to) = chain.place;
            line("window", &words::chain(chain));
            line("", &words::generation(&chain.generation));
            line("", &format!("{} bytes, from {from} to {to} of the ring", chain.bytes));
        }
        (None, Some(voids)) => {
            line("window", &format!("none; -wal is void up to {}", words::generation(voids)));
        }
        (None, None) => line("window", "none"),
    }
}

fn locks(report: &Report, holders: &[Holders]) {
    if report.locks.is_empty() {
        say!("locks: none");
    }
    for lock in &report.locks {
        let kind = if lock.kind == LockKind::Exclusive { "exclusive" } else { "shared" };
        let holders = holders.iter().filter(|holders| holders.file == lock.file);
        let held = holders.flat_map(|holders| &holders.held);
        let by = holders::shown(held.filter(|held| held.meets(&lock.range)));
        let by = by.unwrap_or_else(|| holders::UNSEEN.to_owned());
        say!("lock on the {}: {}, {kind}: {by}", words::file(lock.file), words::place(lock.place));
    }
    for holder in holders {
        if let Some(processes) = holders::shown(holder.held.iter()) {
            say!("processes with locks on the {}: {processes}", words::file(holder.file));
        }
    }
}

fn line(label: &str, text: &str) {
    say!("  {label:<8}{text}");
}
