//! What the tests of dash's crates share, and nothing that is shipped: a development dependency
//! only.
//!
//! | module | owns |
//! |---|---|
//! | [`skip`](mod@skip) | what a test does where something is missing, and when that is a failure |
//! | [`machine`] | what this machine and this user can do |
//! | [`mounts`] | file systems of a test's own |
//! | [`roles`] | other processes: a test program started again, and hosts in other languages |
//! | [`drivers`] | where the drivers of other languages are |
//! | [`locks`] | locks of a file, as another process has them |
//! | [`names`] | files beside a database, and its URI |
//! | [`random`] | random numbers of tests whose failures name a seed |
//! | [`crew`] | the cases of a test, several at a time |
//! | [`long`] | whether there is time to explore further |
//! | `stock` | SQLite without dash in another process (feature `sqlite`) |
//! | [`extension`] | `libdash.so`, and loading it (feature `sqlite`) |
//!
//! It depends on no crate of dash, so that each of them can use it.

pub mod crew;
pub mod drivers;
pub mod extension;
pub mod locks;
pub mod long;
pub mod machine;
pub mod mounts;
pub mod names;
pub mod random;
pub mod roles;
pub mod skip;
#[cfg(feature = "sqlite")]
pub mod stock;

pub use skip::{Need, skip};
