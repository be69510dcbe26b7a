//! Writing to standard output. A reader that goes away (`dash inspect … | head`) is no reason to
//! panic, nor to leave work half done: what it does not want to read is dropped.

/// As `println!`, but a closed pipe is no panic.
#[macro_export]
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        drop(writeln!(std::io::stdout(), $($text)*));
    }};
}

pub use crate::say;
