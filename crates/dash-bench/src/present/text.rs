//! Tables as aligned text, and as Markdown.

use std::fmt::Write;

use super::cells;
use crate::table::{Source, Table};

/// For people.
///
/// What `said` has been told already is not told again.
pub fn plain(table: &Table, said: &mut Vec<String>) -> String {
    let mut text = format!("{}\n", table.about);
    let _ = writeln!(text, "{}; {}", table.place, rounds(table));
    text.push_str(&grid(&cells::of(table)));
    for note in legend(table) {
        if !said.contains(&note) {
            let _ = writeln!(text, "  - {note}");
            said.push(note);
        }
    }
    text
}

fn rounds(table: &Table) -> String {
    format!(
        "{} connection{}, {} rounds",
        table.connections,
        if table.connections == 1 { "" } else { "s at the same time" },
        table.rounds
    )
}

/// Columns under each other: words, and what has no heading, to the left, figures to the right.
pub fn grid(cells: &cells::Cells) -> String {
    let all = || std::iter::once(&cells.heading).chain(&cells.rows);
    let width = |column: usize| {
        all().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<_> = (0..cells.heading.len()).map(width).collect();
    let mut text = String::new();
    for row in all() {
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let heading = cells.heading.get(column).map_or("", String::as_str);
            let words = column == 0 || matches!(heading, "" | "power loss");
            let _ = match words {
                true => write!(text, "  {cell:<width$}"),
                false => write!(text, "  {cell:>width$}"),
            };
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}

/// As Markdown, with the command above it; `said` as for [`plain`].
pub fn markdown(table: &Table, said: &mut Vec<String>) -> String {
    let cells = cells::of(table);
    let mut text = format!(
        "```\n{}\n```\n\n{}.\n{}; {}.\n\n",
        table.command,
        table.about,
        table.place,
        rounds(table)
    );
    let line = |row: &[String]| format!("| {} |\n", row.join(" | "));
    text.push_str(&line(&cells.heading));
    text.push_str(&line(
        &cells
            .heading
            .iter()
            .enumerate()
            .map(|(at, name)| {
                if at == 0 || name == "power loss" { "---" } else { "--:" }.to_owned()
            })
            .collect::<Vec<_>>(),
    ));
    cells.rows.iter().for_each(|row| text.push_str(&line(row)));
    text.push('\n');
    for note in legend(table) {
        if !said.contains(&note) {
            let _ = writeln!(text, "- {note}");
            said.push(note);
        }
    }
    text
}

/// What the columns mean, and what each row survives.
fn legend(table: &Table) -> Vec<String> {
    let mut notes = table.notes.clone();
    notes.push(format!(
        "x {}: how many times its speed, median of rounds (the middle half of the rounds in brackets); latency in microseconds",
        table.baseline
    ));
    if table.lines.iter().any(|line| line.cpu_us.is_some()) {
        notes.push(
            "cpu us: processor time per transaction, the kernel's work for this process among it"
                .into(),
        );
    }
    if table.source != Source::Nothing {
        notes.push("flushes, writes (flushes among them) and KiB: per commit, until it returned; later KiB: kept back, and written when that was forced after the block".into());
    }
    if table.lines.iter().any(|line| line.cost.is_some_and(|cost| cost.journal_kib.is_some())) {
        notes.push("journal KiB: of these (the later ones among them) what the file system wrote to its own journal, which has a device of its own here; without one a commit that uses it counts a flush less".into());
    }
    if table.writes {
        let mut said: Vec<&str> = Vec::new();
        for line in &table.lines {
            if !said.contains(&line.durability) {
                said.push(line.durability);
                notes.push(format!("{}: {}", line.after_power_loss, line.durability));
            }
        }
    }
    for line in table.lines.iter().filter(|line| line.calls.is_some()) {
        if let Some(calls) = &line.calls {
            notes.push(format!("{}: calls: {}", line.name, calls.names));
        }
    }
    notes
}
