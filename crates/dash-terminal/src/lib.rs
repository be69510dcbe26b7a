//! What dash's command-line programs share.
//!
//! [`extension`] finds and loads `libdash.so`; [`failure`] makes errors sentences; [`interrupt`] is
//! Ctrl-C, [`progress`] the bars, [`out`] standard output; [`split`] cuts SQL text into statements;
//! [`device`] reads what a block device counts, [`mount`] says how a folder is mounted, [`numbers`]
//! turns counts into figures.

pub mod device;
pub mod extension;
pub mod failure;
pub mod interrupt;
pub mod mount;
pub mod numbers;
pub mod out;
pub mod progress;
pub mod split;
