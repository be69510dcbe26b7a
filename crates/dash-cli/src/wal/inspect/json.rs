//! The report for programs. 64-bit ids are hexadecimal text: JSON readers that keep numbers as
//! doubles would round them.

use dash_storage::LockKind;
use dash_wal::inspect::{GenerationSeen, LogSeen};
use dash_wal::{Report, Stock};
use serde_json::{Value, json};

use super::{Holders, kinds, words};

/// The report as one object.
pub fn report(report: &Report, holders: &[Holders]) -> Value {
    let names = &report.names;
    json!({
        "mode": "wal",
        "database": report.database.map(|seen| json!({
            "name": names.db.to_string_lossy(),
            "is": words::database(Some(&seen)),
            "bytes": seen.len,
            "inode": seen.id.inode,
            "links": seen.links,
            "header": seen.header.map(|header| json!({
                "sqlite": header.is_sqlite,
                "wal_mode": header.is_wal,
                "page_size": header.page_size,
                "change_counter": header.counter,
            })),
        })),
        "wal": report.wal.map(|seen| json!({
            "name": names.wal.to_string_lossy(),
            "bytes": seen.len,
            "header": seen.header.map(|header| json!({
                "page_size": header.page_size,
                "checkpoint_sequence": header.sequence,
                "salts": salts(header.salts),
                "frames": header.frames,
                "committed_frames": header.committed,
                "commits": header.commits,
                "database_pages": header.pages,
            })),
        })),
        "wal_index_bytes": report.index,
        "elsewhere": report.elsewhere,
        "log": report.log.as_ref().map(|seen| match seen {
            Ok(seen) => log(seen),
            Err(why) => json!({ "unreadable": why }),
        }),
        "relation": report.relation.map(kinds::relation),
        "open": report.open,
        "name_fence": report.fence,
        "stock_journal": report.journal,
        "coordination_file": report.coordination.map(|seen| json!({
            "of_this_version": seen.is_ours,
            "page_cache_is_theirs": seen.same_cache,
        })),
        "in_memory": report.in_memory.map(|seen| json!({
            "process": seen.process,
            "says": words::in_memory(report),
        })),
        "dash_stock": report.stock.map(Stock::name),
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

fn log(seen: &LogSeen) -> Value {
    json!({
        "bytes": seen.len,
        "head": kinds::head(seen.head),
        "says": words::head(seen.head),
        "id": format!("{:016x}", seen.id),
        "block": seen.block,
        "ring_bytes": seen.ring,
        "void_up_to": seen.void,
        "greatest_sequence": seen.greatest,
        "owner_inode": seen.owner,
        "user": seen.whose.owner,
        "group": seen.whose.group,
        "may_carry": seen.whose.counts,
        "window": seen.chain.map(|chain| json!({
            "first_sequence": chain.sequences.0,
            "last_sequence": chain.sequences.1,
            "from": chain.place.0,
            "to": chain.place.1,
            "bytes": chain.bytes,
            "first_frame": chain.first_frame,
            "frames": chain.frames,
            "commits": chain.commits,
            "generation": generation(&chain.generation),
        })),
        "voids": seen.voids.as_ref().map(generation),
    })
}

fn generation(seen: &GenerationSeen) -> Value {
    json!({
        "number": seen.number,
        "salts": salts(seen.salts),
        "first_salt": format!("{:08x}", seen.first),
    })
}

fn salts(salts: [u32; 2]) -> Value {
    json!(salts.map(|salt| format!("{salt:08x}")))
}
