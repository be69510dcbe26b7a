//! What the program itself has said, and no schema: the text of the statements that run.

use crate::connection::ConnectionRef;
use core::ffi::{CStr, c_char};
use core::ptr::null_mut;

impl ConnectionRef<'_> {
    /// Whether a statement that runs on the connection has a word in its text, in any case, as far
    /// as that can be told. A function that the schema calls is in no text.
    #[must_use]
    pub fn is_stated(&self, word: &str) -> bool {
        let Some(api) = &self.slot.api.statements else { return true };
        let mut statement = null_mut();
        loop {
            // SAFETY: an open connection that this thread has locked, and null or the statement
            // that came before, which is still there.
            statement = unsafe { (api.next_stmt)(self.as_ptr(), statement) };
            if statement.is_null() {
                return false;
            }
            // SAFETY: a live statement of this connection.
            let text = unsafe {
                let is_busy = (api.stmt_busy)(statement) != 0;
                is_busy.then(|| (api.sql)(statement))
            };
            let says = |text: *const c_char| {
                // SAFETY: a C string that stays while the statement does.
                let text = unsafe { CStr::from_ptr(text) }.to_bytes();
                text.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word.as_bytes()))
            };
            if text.is_some_and(|text| text.is_null() || says(text)) {
                return true;
            }
        }
    }
}
