//! `sqlite-dash doctor`: whether a folder is a good place for databases of dash, what is wrong with
//! those in it, and what the programs on this machine need. Reads only: it makes no file, takes no
//! lock and opens no database as SQLite does.
//!
//! What it says holds for the user who runs it. Programs of `PATH` are run to be asked for their
//! SQLite; what they lack is no warning, as nobody may want them.

mod access;
mod database;
mod finding;
mod hosts;
mod leftovers;
mod names;
mod place;
mod space;

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::Outcome;
use crate::failure::{Explain, Failure, Result};
use crate::out::{Shown, say};
use finding::{Level, Section};
use names::Folder;

/// Arguments of `sqlite-dash doctor`.
#[derive(clap::Args)]
pub struct Arguments {
    /// The folder, or a database in it
    path: PathBuf,
    /// Prints JSON for programs
    #[arg(long)]
    json: bool,
    /// Asks no program of PATH
    #[arg(long)]
    no_hosts: bool,
}

/// Runs the command: bad news (1) if there is anything to do about the folder or what is in it.
pub fn run(arguments: &Arguments) -> Result<Outcome> {
    let shown = arguments.path.shown();
    let path = arguments.path.canonicalize();
    // A database may be missing where only its files are there.
    let path = path.or_else(|error| match arguments.path.parent() {
        Some(parent) if error.kind() == std::io::ErrorKind::NotFound => {
            let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
            let name = arguments.path.file_name().unwrap_or_default();
            parent.canonicalize().map(|parent| parent.join(name))
        }
        _ => Err(error),
    });
    let path = path.explain(format!("looking at {shown}"))?;
    let folder = if path.is_dir() {
        Folder::read(&path)?
    } else {
        let home = path.parent().unwrap_or(Path::new("/"));
        let folder = Folder::read(home)?.only(&path);
        let is_empty = path.metadata().is_ok_and(|found| found.is_file() && found.len() == 0);
        if folder.databases.is_empty() && folder.orphans.is_empty() && !is_empty {
            return Err(Failure::new(match path.exists() {
                true => format!("{shown} is no SQLite database"),
                false => format!("{shown} does not exist, nor does a file of dash beside it"),
            }));
        }
        folder
    };
    let mut sections = vec![place::examine(&folder)?];
    sections.extend(folder.databases.iter().map(|file| database::examine(&folder.path, file)));
    sections.extend(leftovers::examine(&folder));
    if !arguments.no_hosts {
        sections.push(hosts::examine(&folder.path));
    }
    if arguments.json {
        print_json(&folder.path, &sections);
    } else {
        print(&sections);
    }
    Ok(Outcome::of(count(&sections, Level::Warning) + count(&sections, Level::Refused) == 0))
}

fn count(sections: &[Section], level: Level) -> usize {
    sections.iter().flat_map(|section| &section.findings).filter(|it| it.level == level).count()
}

fn print(sections: &[Section]) {
    for section in sections {
        say!("{}", section.name);
        for finding in &section.findings {
            say!("  {:<9}{}", finding.level.word(), finding.says);
            if let Some(remedy) = &finding.remedy {
                say!("  {:<9}-> {remedy}", "");
            }
        }
    }
    match (count(sections, Level::Refused), count(sections, Level::Warning)) {
        (0, 0) => say!("nothing to do"),
        (refused, warnings) => say!("{refused} refused, {warnings} to look after"),
    }
}

fn print_json(folder: &Path, sections: &[Section]) {
    let one = |section: &Section| {
        let findings: Vec<_> = section
            .findings
            .iter()
            .map(|it| json!({ "level": it.level.word(), "says": it.says, "remedy": it.remedy }))
            .collect();
        json!({ "about": section.name, "facts": section.facts, "findings": findings })
    };
    say!(
        "{:#}",
        json!({
            "folder": folder.to_string_lossy(),
            "refused": count(sections, Level::Refused),
            "warnings": count(sections, Level::Warning),
            "sections": sections.iter().map(one).collect::<Vec<_>>(),
        })
    );
}
