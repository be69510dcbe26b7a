#![doc = include_str!("../FORMAT.md")]
#![forbid(unsafe_code)]

mod access;
pub mod difference;
pub mod file;
pub mod format;
pub mod head;
pub mod heads;
pub mod images;
mod mapped;
mod medium;
#[cfg(feature = "mutations")]
pub mod mutation;
#[cfg(not(feature = "mutations"))]
mod mutation;
mod name;
pub mod number;
pub mod record;
pub mod ring;
mod runs;
pub mod scan;
pub mod session;
pub mod sign;
