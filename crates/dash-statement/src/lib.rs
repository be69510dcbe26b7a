#![doc = include_str!("../FORMAT.md")]
#![forbid(unsafe_code)]

mod buffer;
mod decode;
mod encode;
mod expand;
mod format;
mod literal;
mod model;
mod reason;

pub use buffer::{Buffer, LIMIT, Place};
pub use decode::{Malformed, decode};
pub use encode::{encode, encode_within};
pub use expand::expand;
pub use literal::{literal, literals};
pub use model::{Control, Event, Sql, Statement, Transaction, Value};
pub use reason::{Reason, Reasons};
