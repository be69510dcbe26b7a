//! Errors as sentences: what happened, and what to do. Nobody matches on them.

use std::fmt::{self, Display};

/// Why a command could not be carried out.
#[derive(Debug)]
pub struct Failure(String);

/// Shorthand.
pub type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// A failure with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&in_one_line(&self.0))
    }
}

/// A message. A name in it may have a newline, and so a line that looks like one of the program's.
pub fn in_one_line(text: &str) -> String {
    text.replace('\n', "\\n")
}

/// Adds what was being done to an error.
pub trait Explain<T> {
    /// `what` reads as "opening app.db".
    ///
    /// # Errors
    ///
    /// The error that was there, with `what` before it.
    fn explain(self, what: impl Display) -> Result<T>;
}

impl<T, E: Display> Explain<T> for std::result::Result<T, E> {
    fn explain(self, what: impl Display) -> Result<T> {
        self.map_err(|error| Failure(format!("{what}: {error}")))
    }
}
