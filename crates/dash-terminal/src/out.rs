//! Writing to a terminal. Names of files, and what a file says, are printed among others: nothing
//! that a terminal obeys gets there. A reader that goes away (`sqlite-dash inspect … | head`) is no
//! reason to panic, nor to leave work half done: what it does not want to read is dropped.

use dash_engine::open::shell_word;
use dash_statement::shown;
use std::fmt::{Arguments, Display};
use std::io::{Write, stderr, stdout};
use std::path::Path;

/// As `println!`, but a closed pipe is no panic, and what a terminal obeys is written out.
#[macro_export]
macro_rules! say {
    ($($text:tt)*) => { $crate::out::line(format_args!($($text)*)) };
}

/// As [`say!`], to standard error.
#[macro_export]
macro_rules! say_aside {
    ($($text:tt)*) => { $crate::out::line_aside(format_args!($($text)*)) };
}

pub use crate::{say, say_aside};

/// Prints a line, or several.
pub fn line(text: Arguments<'_>) {
    drop(writeln!(stdout(), "{}", shown(text.to_string().as_bytes())));
}

/// Prints a line, or several, to standard error.
pub fn line_aside(text: Arguments<'_>) {
    drop(writeln!(stderr(), "{}", shown(text.to_string().as_bytes())));
}

/// Prints what has colours.
pub fn line_in_colours(text: impl Display) {
    drop(writeln!(stdout(), "{text}"));
}

/// A path in a line.
pub trait Shown {
    /// The path for people, in one line whatever it is called, and as one word of a command.
    fn shown(&self) -> String;
}

impl Shown for Path {
    fn shown(&self) -> String {
        shell_word(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SEC S2-10
    #[test]
    fn a_path_is_one_line_whatever_it_is_called() {
        assert_eq!(Path::new("/a b/é.db").shown(), "'/a b/é.db'");
        assert_eq!(Path::new("a\n\tb\u{1b}[2J").shown(), r"$'a\n\tb\x1b[2J'");
    }
}
