//! An error as the program under faults got it.

use crate::sqlite;

/// An error as the program under faults got it.
#[derive(Debug, Clone)]
pub struct Said {
    /// Extended result code.
    pub code: i32,
    /// `sqlite3_errmsg`.
    pub message: String,
    /// `dash_last_error()`.
    pub dash: String,
}

impl Said {
    /// Takes down an error right after it came.
    pub fn of(error: &rusqlite::Error) -> Self {
        Self { code: sqlite::code(error), message: error.to_string(), dash: sqlite::last_error() }
    }
}

impl Said {
    /// Whether it says that a commit may be there all the same.
    pub fn is_in_doubt(&self) -> bool {
        [IN_DOUBT, NOT_YET].iter().any(|said| self.dash.contains(said))
    }

    /// Whether it tells of a panic that was caught at the wall to C.
    pub fn is_panic(&self) -> bool {
        [&self.message, &self.dash].iter().any(|text| text.contains("internal error"))
    }
}

/// What dash says of a commit that is seen and can't be made durable.
pub const IN_DOUBT: &str = "whether they are durable is not known";

/// The same of one that is made good once there is space.
pub const NOT_YET: &str = "durable with the next one that finds space";
