#![doc = include_str!("../FORMAT.md")]
#![forbid(unsafe_code)]

mod buffer;
mod decode;
mod encode;
mod expand;
mod format;
mod literal;
mod model;
mod real;
mod reason;
mod shell;
mod token;

pub use buffer::{Buffer, LIMIT, Place};
pub use decode::{Malformed, decode};
pub use encode::{encode, encode_within};
pub use expand::{expand, has_parameters};
pub use literal::{exact, literal, literals};
pub use model::{Control, Event, Sql, Statement, Transaction, Value};
pub use reason::{Reason, Reasons};
pub use shell::for_shell;
