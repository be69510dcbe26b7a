//! The loadable extension `libdash.so`: nothing but the entry points of the crate `dash`.
//!
//! A package of its own, because the compiler optimises across crates only where nothing but a
//! shared library is built.

pub use engine::{sqlite3_dash_init, sqlite3_dashdefault_init, sqlite3_extension_init};
