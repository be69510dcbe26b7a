//! The engine `wal` on simulated storage.

mod busy;
mod carry;
mod files;
mod log;
mod older;
mod shared;

use dash_simulated::Machine;

use crate::sim::subject::{Claims, Sessions, Setup, SqliteFiles, Subject, WalMode};
use crate::variant::Variant;
use shared::{ALONE, BESIDE, CHECKPOINTED, ELSEWHERE, FOLDER, MEMORY};

/// Whether a folder, with or without a note in it, has the journal's name.
fn has_fence(machine: &Machine, path: &str) -> bool {
    let journal = format!("{path}-journal");
    machine.exists(&journal) && machine.file_view(&journal).is_none()
}

/// What is in a name fence.
const NOTE: &str = "open-this-database-through-dash-first.txt";

const VARIANTS: &[Variant] = &[
    Variant {
        name: "log",
        what: "a checkpoint relies on the log",
        // On real systems it comes to rest as often as can be.
        uri: Some("&journal_mode=wal&dash_rest=10"),
        every_flush_counts: false,
    },
    Variant {
        name: "barrier",
        what: "a checkpoint relies on a flush of -wal",
        uri: Some("&journal_mode=wal&dash_barrier=wal"),
        every_flush_counts: false,
    },
    Variant {
        name: ELSEWHERE,
        what: "the log lies elsewhere, under a name of its own",
        uri: Some("&journal_mode=wal&dash_rest=10&dash_log={elsewhere}"),
        every_flush_counts: false,
    },
    Variant {
        name: MEMORY,
        what: "the log lies elsewhere, in byte-addressable memory",
        uri: None,
        every_flush_counts: false,
    },
    Variant {
        name: ALONE,
        what: "-wal is in the memory of one process",
        uri: Some("&journal_mode=wal&dash_rest=10&dash_wal=memory"),
        every_flush_counts: false,
    },
    Variant {
        name: BESIDE,
        what: "stock SQLite writes beside it",
        uri: Some("&journal_mode=wal&dash_rest=10&dash_stock=write"),
        every_flush_counts: false,
    },
    Variant {
        name: CHECKPOINTED,
        what: "stock SQLite writes and checkpoints beside it",
        uri: Some("&journal_mode=wal&dash_rest=10&dash_stock=checkpoint"),
        every_flush_counts: false,
    },
];

/// SQLite's WAL mode, with a log.
#[derive(Debug, Clone, Copy, Default)]
pub struct Simulation;

impl Subject for Simulation {
    fn engine(&self) -> &'static str {
        "wal"
    }

    fn variants(&self) -> &'static [Variant] {
        VARIANTS
    }

    fn claims(&self) -> Claims {
        let wal_mode = WalMode {
            beside_off: true,
            failed_flushes: true,
            keeps_stock_writers_out: true,
            pragmas: true,
        };
        Claims {
            wal_mode: Some(wal_mode),
            several_databases: false,
            stock_neighbours: true,
            without_journal: false,
        }
    }

    fn sessions(&self) -> Option<&dyn Sessions> {
        None
    }

    fn sqlite_files(&self) -> &'static dyn SqliteFiles {
        &files::Files
    }

    fn prepare(&self, machine: &Machine, setup: &Setup) {
        if setup.variant == MEMORY {
            machine.set_byte_addressable_folder(FOLDER);
        }
    }

    fn beside(&self) -> &'static [&'static str] {
        &["-wal", "-dashlog"]
    }

    fn leaves_a_choice(&self, _: &str) -> bool {
        false
    }

    fn stock_refuses(&self, machine: &Machine, path: &str) -> Option<&'static str> {
        // A directory in the journal's place: "disk I/O error", nothing touched.
        // On btrfs an empty one has no length, and older versions of SQLite don't see it.
        let is_seen = has_fence(machine, path) && machine.exists(format!("{path}-journal/{NOTE}"));
        is_seen.then_some("the name fence stands")
    }

    /// Its note may have been lost in a power loss where each directory survives on its own.
    fn stock_may_refuse(&self, machine: &Machine, path: &str) -> bool {
        has_fence(machine, path)
    }

    fn check_at_rest(&self, machine: &Machine, path: &str, _: &[u64]) -> Result<(), String> {
        for ending in ["-dash", "-dash-new", "-dash-fence"] {
            if machine.exists(format!("{path}{ending}")) {
                return Err(format!("{path}{ending} is left behind"));
            }
        }
        match has_fence(machine, path) {
            true => Err("the name fence is left behind".to_owned()),
            false => Ok(()),
        }
    }
}
