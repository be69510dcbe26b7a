//! The manual's pages and the completions of shells, made of the program's own description.

use anyhow::Result;
use clap_complete::Shell;
use clap_mangen::Man;

use crate::facts::NAME;

/// They, by their names below `/usr` or `/usr/local`.
///
/// # Errors
///
/// If they can't be written, which takes no disk.
pub fn pages() -> Result<Vec<(String, Vec<u8>)>> {
    let mut program = dash_cli::command().disable_help_subcommand(true);
    program.build();
    let mut found = vec![page(&program, NAME)?];
    for command in program.get_subcommands().filter(|command| !command.is_hide_set()) {
        found.push(page(command, &format!("{NAME}-{}", command.get_name()))?);
    }
    let places = [
        (Shell::Bash, format!("share/bash-completion/completions/{NAME}")),
        (Shell::Zsh, format!("share/zsh/vendor-completions/_{NAME}")),
        (Shell::Fish, format!("share/fish/vendor_completions.d/{NAME}.fish")),
    ];
    for (shell, place) in places {
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut dash_cli::command(), NAME, &mut text);
        found.push((place, text));
    }
    Ok(found)
}

fn page(command: &clap::Command, name: &str) -> Result<(String, Vec<u8>)> {
    let mut text = Vec::new();
    Man::new(command.clone()).title(name.to_uppercase()).render(&mut text)?;
    Ok((format!("share/man/man1/{name}.1"), text))
}
