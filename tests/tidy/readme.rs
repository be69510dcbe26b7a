//! README's commands exist.

use crate::tree::{root, text};

/// The commands in README's code blocks that begin with `cargo` or `sqlite-dash`.
fn readme_commands() -> Vec<String> {
    let readme = text(&root().join("README.md"));
    let mut inside = false;
    let mut commands = Vec::new();
    for line in readme.lines() {
        if line.trim_start().starts_with("```") {
            inside = !inside;
        }
        let line = line.trim_start().trim_start_matches("$ ");
        if inside && (line.starts_with("cargo ") || line.starts_with("sqlite-dash ")) {
            commands.push(line.split(" #").next().unwrap_or(line).trim().to_owned());
        }
    }
    commands
}

#[test]
fn the_readme_names_only_commands_that_exist() {
    let commands = readme_commands();
    for first in ["cargo run --release -- demo", "cargo test --workspace"] {
        assert!(commands.iter().any(|command| command == first), "README lacks `{first}`");
    }
    let program = text(&root().join("crates/dash-cli/src/lib.rs"));
    for command in &commands {
        let words: Vec<_> = command.split_whitespace().collect();
        let ours = match words[..] {
            ["sqlite-dash", name, ..] => Some(name),
            ["cargo", ..] => command.split(" -- ").nth(1).and_then(|rest| rest.split(' ').next()),
            _ => None,
        };
        let Some(name) = ours.filter(|_| !command.contains("--example")) else {
            continue;
        };
        let variant: String =
            name.chars().take(1).flat_map(char::to_uppercase).chain(name.chars().skip(1)).collect();
        assert!(
            program.contains(&format!("    {variant}(")),
            "README: `{command}`: the program has no command {name}"
        );
    }
}
