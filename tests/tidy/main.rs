//! Tidiness that a machine can keep: what files begin with, how long they and their functions may
//! be, what modules may take from each other, ids and pointers that lead somewhere, README commands
//! that exist.

mod allowed;
mod circles;
mod files;
mod format_md;
mod functions;
mod ids;
mod invariants;
mod readme;
mod rust;
mod skips;
mod tree;
