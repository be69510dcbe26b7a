//! Tidiness that a machine can keep: what files begin with, how long they, their functions, crates
//! and documents may be, what modules and modes may take from each other, sentences with a noun,
//! ids and pointers that lead somewhere, README commands that exist.

mod allowed;
mod circles;
mod files;
mod format_md;
mod functions;
mod ids;
mod invariants;
mod modes;
mod readme;
mod rust;
mod sizes;
mod skips;
mod tree;
mod wording;
