//! dash: commits of stock SQLite that are durable with one flush and no journal file.
mod entry;
mod errors;
mod functions;
mod journal;
mod latency;
mod leftovers;
mod main_file;
mod mapping;
mod mode;
mod open;
mod parameters;
mod pragma;
mod read_only_file;
mod registry;
mod shadow_control;
mod shadow_file;
mod super_journal;
mod switch;
mod tables;
mod vfs;
mod wake;

pub use entry::{
    automatic, register_with, sqlite3_dash_init, sqlite3_dashdefault_init, sqlite3_extension_init,
};
