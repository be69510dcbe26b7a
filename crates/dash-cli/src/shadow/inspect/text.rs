//! The report for people.

use std::ffi::OsStr;
use std::path::Path;

use dash_shadow::Report;
use dash_shadow::format::CommitBlock;
use dash_shadow::inspect::Seen;
use dash_storage::LockKind;

use super::{Holders, words};
use crate::holders;
use crate::out::{Shown, say};

/// Prints the report.
pub fn print(report: &Report, holders: &[Holders]) {
    say!("database  {}: {}", name(&report.names.db), words::database(report));
    copy(report.database.as_ref());
    say!("shadow    {}: {}", name(&report.names.shadow), words::shadow(report));
    copy(report.shadow.as_ref());
    say!("names and sequences agree: {}", words::relation(report));
    if report.copied_together {
        say!("both files were copied here together: neither is where its block was written");
    }
    beside(report);
    locks(report, holders);
    if report.open {
        say!("it is open now: what is said above is a moment's view");
    }
    say!("opening it through dash {}", words::opening(report));
}

fn name(name: &OsStr) -> String {
    Path::new(name).shown()
}

fn copy(seen: Option<&Seen>) {
    let Some(seen) = seen else { return };
    line("file", &format!("{} bytes, inode {}", seen.len, seen.id.inode));
    match &seen.header {
        Some(header) if header.is_sqlite => {
            let page = header.page_size.unwrap_or(0);
            let size = header
                .size
                .map_or("size not vouched for".into(), |size| format!("{size} bytes of database"));
            let mut text =
                format!("SQLite, pages of {page} bytes, {size}, change counter {}", header.counter);
            for (mark, what) in [
                (header.is_wal, "in WAL mode"),
                (header.is_fenced, "marked as being written"),
                (header.is_demoted, "marked as former"),
                (
                    header.is_protected,
                    "not to be written without dash: other programs have the other file open",
                ),
            ] {
                if mark {
                    text.push_str(&format!(", {what}"));
                }
            }
            line("header", &text);
        }
        Some(_) => line("header", "not SQLite's"),
        None => line("header", "none: the file is too short"),
    }
    match &seen.commit {
        Ok(block) => commit(block, seen),
        Err(error) => line("commit", &words::block_error(*error)),
    }
    match &seen.intent {
        Ok(intent) => {
            line(
                "intent",
                &format!("{} bytes may differ from the other file", intent.ranges().bytes()),
            );
        }
        Err(error) => line("intent", &words::block_error(*error)),
    }
}

fn commit(block: &CommitBlock, seen: &Seen) {
    let bound = if seen.is_bound() { "" } else { ", written into another file" };
    let state = words::state(block.state);
    if let Some(vouched) = block.vouched {
        line(
            "commit",
            &format!(
                "{state}: says that number {}, id {:016x}, was committed in the other file{bound}",
                vouched.sequence, vouched.id
            ),
        );
        line("", &format!("pair {:016x}, slot {}", block.pair, block.slot));
        return;
    }
    line(
        "commit",
        &format!(
            "number {}, {state}, {}, protocol {}{bound}",
            block.sequence,
            words::block_place(block.place),
            block.protocol.name()
        ),
    );
    line(
        "",
        &format!(
            "id {:016x} on {:016x}, pair {:016x}, slot {}",
            block.id, block.parent, block.pair, block.slot
        ),
    );
    if !block.super_journal.is_empty() {
        line(
            "",
            &format!(
                "part of a transaction over several databases: {}",
                String::from_utf8_lossy(&block.super_journal)
            ),
        );
    }
    let word = if seen.as_committed { "as committed" } else { "not all as committed" };
    let runs = if block.unit_count == 1 { "run" } else { "runs" };
    line("pages", &format!("{} {runs} listed, {word}", block.unit_count));
}

fn beside(report: &Report) {
    let beside = &report.beside;
    if beside.fence {
        say!(
            "name fence {}/: stock SQLite is kept out unless dash has it open",
            name(&report.names.fence)
        );
    }
    if let Some(bytes) = beside.journal {
        say!("journal {}: {bytes} bytes left behind by stock SQLite", name(&report.names.fence));
    }
    if let Some(bytes) = beside.wal {
        say!("write-ahead log {}-wal: {bytes} bytes of stock SQLite", name(&report.names.db));
    }
    if beside.coordination {
        let why = if report.open { "it is open" } else { "left behind, harmless" };
        say!("coordination file {}: {why}", name(&report.names.coordination));
    }
    if beside.renaming {
        say!("{}: an exchange of names was cut off", name(&report.names.renaming));
    }
    for (super_journal, there) in &beside.super_journals {
        say!("super-journal {super_journal}: {}", if *there { "there" } else { "gone" });
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
