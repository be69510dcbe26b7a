//! What the program itself has said, and no schema: the text of the statements that run.

use crate::connection::ConnectionRef;
use core::ffi::CStr;

impl ConnectionRef<'_> {
    /// Whether a statement that runs on the connection has a word in its text, in any case, as far
    /// as that can be told. A function that the schema calls is in no text.
    #[must_use]
    pub fn is_stated(&self, word: &str) -> bool {
        let Some(api) = &self.slot.api.statements else { return true };
        let mut is_stated = false;
        let mut look = |statement| {
            // SAFETY: a live statement of this connection.
            let text = unsafe { (api.sql)(statement) };
            is_stated |= text.is_null() || {
                // SAFETY: a C string that stays while the statement does.
                let text = unsafe { CStr::from_ptr(text) }.to_bytes();
                text.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word.as_bytes()))
            };
        };
        // SAFETY: an open connection, which this thread has locked.
        unsafe { api.busy(self.as_ptr(), &mut look) };
        is_stated
    }
}
