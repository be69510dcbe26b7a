//! The wall between Rust and C: no panic crosses it.

use crate::code::Code;
use crate::error::{Error, Result};
use core::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Makes a call; a panic becomes an error with `code`, and `on_panic` learns its text.
///
/// # Errors
///
/// Those of `call`, and `code` after a panic.
pub(crate) fn guarded<R>(
    what: &str,
    code: Code,
    call: impl FnOnce() -> Result<R>,
    on_panic: impl FnOnce(&str),
) -> Result<R> {
    // Unwind safety: whatever a panic may leave half done is put out of use by `on_panic`.
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|payload| {
        let message = format!("internal error in {what}: {}", text(payload));
        on_panic(&message);
        Err(Error::new(code, message))
    })
}

/// What a panic said.
fn text(payload: Box<dyn Any + Send>) -> String {
    if let Some(text) = payload.downcast_ref::<&str>() {
        return (*text).to_owned();
    }
    match payload.downcast::<String>() {
        Ok(text) => *text,
        Err(other) => {
            // Dropping a value of unknown type could panic again, here outside the wall.
            core::mem::forget(other);
            "a panic without a text".to_owned()
        }
    }
}
