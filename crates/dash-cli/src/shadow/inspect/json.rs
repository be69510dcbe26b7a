//! The report for programs. 64-bit ids are hexadecimal text: JSON readers that keep numbers as
//! doubles would round them.

use dash_shadow::Report;
use dash_shadow::format::CommitBlock;
use dash_shadow::inspect::Seen;
use dash_storage::LockKind;
use serde_json::{Value, json};

use super::{Holders, kinds, words};

/// The report as one object.
pub fn report(report: &Report, holders: &[Holders]) -> Value {
    let beside = &report.beside;
    json!({
        "database": copy(report.database.as_ref(), &report.names.db, &words::database(report)),
        "shadow": copy(report.shadow.as_ref(), &report.names.shadow, words::shadow(report)),
        "kinds": {
            "database": kinds::database(report.verdict.db),
            "shadow": kinds::shadow(report.verdict.shadow),
            "relation": kinds::relation(report.verdict.relation),
        },
        "copied_together": report.copied_together,
        "open": report.open,
        "name_fence": beside.fence,
        "coordination_file": beside.coordination,
        "renaming": beside.renaming,
        "stock_journal_bytes": beside.journal,
        "stock_wal_bytes": beside.wal,
        "super_journals": beside.super_journals.iter().map(|(name, there)| json!({"name": name, "there": there})).collect::<Vec<_>>(),
        "locks": report.locks.iter().map(|lock| json!({
            "file": words::file(lock.file),
            "place": kinds::place(lock.place),
            "exclusive": lock.kind == LockKind::Exclusive,
            "process": lock.process,
        })).collect::<Vec<_>>(),
        "holders": holders.iter().flat_map(|holder| holder.held.iter().map(|held| json!({
            "file": words::file(holder.file),
            "process": held.process,
            "command": held.command,
            "exclusive": held.exclusive,
            "first_byte": held.first,
            "last_byte": held.last,
        }))).collect::<Vec<_>>(),
        "opening": { "does": kinds::opening(&report.opening), "says": words::opening(report) },
    })
}

fn copy(seen: Option<&Seen>, file: &std::ffi::OsStr, is: &str) -> Value {
    let Some(seen) = seen else {
        return json!({"name": file.to_string_lossy(), "is": is});
    };
    json!({
        "name": file.to_string_lossy(),
        "is": is,
        "bytes": seen.len,
        "inode": seen.id.inode,
        "links": seen.links,
        "header": seen.header.map(|header| json!({
            "sqlite": header.is_sqlite,
            "page_size": header.page_size,
            "database_bytes": header.size,
            "change_counter": header.counter,
            "wal_mode": header.is_wal,
            "being_written": header.is_fenced,
            "former": header.is_demoted,
            "protected": header.is_protected,
        })),
        "commit": seen.commit.as_ref().map_or_else(|error| Value::from(words::block_error(*error)), |block| commit(block, seen)),
        "intent": seen.intent.as_ref().map_or_else(|error| Value::from(words::block_error(*error)), |intent| json!({
            "inode": intent.inode,
            "regions": intent.ranges().iter().map(|range| json!([range.start, range.end])).collect::<Vec<_>>(),
        })),
    })
}

fn commit(block: &CommitBlock, seen: &Seen) -> Value {
    json!({
        "sequence": block.sequence,
        "place": words::block_place(block.place),
        "state": words::state(block.state),
        "protocol": block.protocol.name(),
        "id": hex(block.id),
        "parent": hex(block.parent),
        "pair": hex(block.pair),
        "slot": block.slot,
        "inode": block.inode,
        "written_into_this_file": seen.is_bound(),
        "change_counter": block.counter,
        "page_size": block.page_size,
        "database_bytes": block.size,
        "vouches_for": block.vouched.map(|vouched| json!({"sequence": vouched.sequence, "id": hex(vouched.id)})),
        "super_journal": (!block.super_journal.is_empty()).then(|| String::from_utf8_lossy(&block.super_journal).into_owned()),
        "runs": block.unit_count,
        "as_committed": seen.as_committed,
    })
}

fn hex(id: u64) -> String {
    format!("{id:016x}")
}
