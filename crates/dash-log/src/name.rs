//! What a log's file is called: in its folder, and to whoever reads a message.

use std::borrow::Cow;
use std::ffi::OsStr;

/// A log's name.
#[derive(Debug, Clone)]
pub struct LogName<'a> {
    /// In its folder.
    pub file: &'a OsStr,
    /// For messages: whoever reads them need not know which folder that is.
    pub shown: Cow<'a, str>,
}

impl<'a> From<&'a OsStr> for LogName<'a> {
    fn from(file: &'a OsStr) -> Self {
        Self { file, shown: file.to_string_lossy() }
    }
}
