//! The wall between Rust and C: no panic crosses it, and none is printed. Standard error is the
//! host's: what a panic said, and where, is in the error's message, and so in the host's log.

use crate::code::Code;
use crate::error::{Error, Result, remember};
use core::any::Any;
use core::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    /// Walls that this thread is behind.
    static WALLS: Cell<u32> = const { Cell::new(0) };
    /// Where its last panic behind one was.
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// From here on panics behind a wall are printed nowhere; all others go where they went before,
/// since in a Rust program they are the program's own.
pub(crate) fn keep_quiet() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if WALLS.try_with(Cell::get).unwrap_or(0) == 0 {
                return before(panic);
            }
            let place = panic.location().map_or_else(String::new, |at| format!(" at {at}"));
            // The last words of a thread have nobody to hear them.
            drop(PLACE.try_with(|kept| kept.try_borrow_mut().map(|mut kept| *kept = place)));
        }));
    });
}

/// Runs a thread of the library's own behind the wall: its panic ends it, and is noted for
/// [`last_error`](crate::last_error).
pub fn behind_the_wall(thread: &str, run: impl FnOnce()) {
    let run = || {
        run();
        Ok(())
    };
    if let Err(error) = guarded(thread, Code::INTERNAL, run, |_| ()) {
        remember(&error.to_string());
    }
}

struct Wall;

impl Wall {
    fn new() -> Self {
        WALLS.set(WALLS.get() + 1);
        Self
    }
}

impl Drop for Wall {
    fn drop(&mut self) {
        WALLS.set(WALLS.get() - 1);
    }
}

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
    let wall = Wall::new();
    // Unwind safety: whatever a panic may leave half done is put out of use by `on_panic`.
    let result = catch_unwind(AssertUnwindSafe(call));
    drop(wall);
    result.unwrap_or_else(|payload| {
        let place = PLACE.try_with(RefCell::take).unwrap_or_default();
        let message = format!("internal error in {what}: {}{place}", text(payload));
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
