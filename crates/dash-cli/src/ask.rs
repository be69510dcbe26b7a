//! Asking before something is done that can't be taken back.

use std::io::{BufRead, IsTerminal, Write};

use crate::failure::{Explain, Failure, Result};

/// Whether the user says yes. Off a terminal nobody can be asked: that is an error that names
/// `--yes`.
pub fn confirm(question: &str, yes: bool) -> Result<bool> {
    if yes {
        return Ok(true);
    }
    if !std::io::stdin().is_terminal() {
        return Err(Failure::new(format!(
            "add --yes to go ahead: there is no terminal on which to ask \"{question}\""
        )));
    }
    print!("{question} [y/N] ");
    std::io::stdout().flush().explain("asking")?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).explain("reading the answer")?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}
