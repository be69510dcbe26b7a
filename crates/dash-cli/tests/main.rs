//! The program `sqlite-dash`, as people run it.

mod common;

mod backup;
mod bench;
mod convert;
mod demo;
mod doctor;
mod inspect;
mod log;
mod log_forged;
mod log_says;
mod log_sql;
mod others;
mod paper;
mod recover;
mod replay;
mod replay_forged;
mod replay_tells;
mod shell;
mod stopping;
mod top;
mod wal;
mod wal_elsewhere;
mod wal_in_memory;
