//! The program `sqlite-dash`: see the library beside it.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    dash_cli::main()
}
