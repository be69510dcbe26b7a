#![doc = include_str!("../FORMAT.md")]
#![forbid(unsafe_code)]

mod buffer;
mod context;
mod decode;
mod encode;
mod expand;
mod format;
mod literal;
mod model;
mod only;
mod provable;
mod reach;
mod real;
mod reason;
mod savepoint;
mod shell;
mod terminal;
mod time;
mod token;

pub use buffer::{Buffer, LIMIT, Place, STEPS_OF_A_BLOCK};
pub use context::{Circumstance, Context};
pub use decode::{Malformed, decode};
pub use encode::{encode, encode_within};
pub use expand::{expand, has_parameters};
pub use literal::{exact, literal, literals};
pub use model::{Control, Event, Sql, Statement, Transaction, Value};
pub use only::{Only, only};
pub use provable::{Schema, Unprovable, provable, writes_schema};
pub use reach::MODULES;
pub use reason::{Reason, Reasons};
pub use shell::{Unwritten, control_for_shell, for_shell};
pub use terminal::{is_obeyed, shown, shown_json};
pub use time::utc;
