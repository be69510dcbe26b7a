//! What transactions ran: the statements of each connection that was opened with
//! `dash_statements=on`, with their exact values, beside the commits that carry them.
//!
//! Nothing depends on it. What can't be recorded says why, and no commit waits or fails for it.
//!
//! | | |
//! |---|---|
//! | `kind` | which statements begin, end and divide transactions |
//! | `capturer` | what SQLite tells of a connection's statements, gathered until the commit |
//! | `state` | what is known between two calls |
//! | `canaries` | what was written without a statement that was told of |
//! | `kept` | the last of them, of all connections of this process to a database |

mod canaries;
pub mod capturer;
pub mod kept;
mod kind;
mod state;

use std::sync::Arc;

use dash_ffi::{Capture, ConnectionRef};

use crate::main_file::MainFile;
use capturer::Capturer;

/// The URI parameter.
pub const PARAMETER: &str = "dash_statements";

/// The URI parameter and PRAGMA that says how much of them the log records.
pub const TEXT: &str = "dash_statement_text";

/// How much of what a transaction ran is recorded in the log, beside it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Text {
    /// What costs nothing: what the record's last block has room for.
    #[default]
    Slack,
    /// All of it, up to 64 KiB a record; the record may be blocks longer for it.
    Full,
    /// Nothing.
    Off,
}

/// Who is to be told of a new connection's statements.
pub fn capture(connection: &ConnectionRef<'_>) -> Option<Arc<dyn Capture>> {
    let is_wanted = connection.with_file("main", |file| {
        let file = file.downcast_mut::<MainFile>();
        file.is_some_and(|file| file.mode.records_statements() || file.parameters.is_on(PARAMETER))
    });
    is_wanted.unwrap_or(false).then(|| Arc::new(Capturer::default()) as Arc<dyn Capture>)
}
