//! Tables as text for people, Markdown, CSV and JSON.

pub mod cells;
pub mod csv;
pub mod text;

use serde_json::json;

use crate::header::Header;
use crate::out::say;
use crate::table::Table;

/// How a report is put out.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Output {
    /// Prints JSON: the header and every figure
    #[arg(long, conflicts_with_all = ["csv", "markdown"])]
    json: bool,
    /// Prints CSV: a line per row
    #[arg(long, conflicts_with = "markdown")]
    csv: bool,
    /// Prints a Markdown table
    #[arg(long)]
    markdown: bool,
}

impl Output {
    /// Whether a person reads it as it comes.
    pub fn is_text(&self) -> bool {
        !(self.json || self.csv || self.markdown)
    }

    /// Puts everything out.
    pub fn put(&self, header: &Header, tables: &[Table]) {
        if self.json {
            say!("{:#}", json!({ "head": header, "tables": tables }));
        } else if self.csv {
            say!("{}", csv::of(tables).trim_end());
        } else if self.markdown {
            let mut said = Vec::new();
            tables.iter().for_each(|table| say!("{}", text::markdown(table, &mut said)));
        } else {
            header.lines().iter().for_each(|line| say!("{line}"));
            let mut said = Vec::new();
            tables.iter().for_each(|table| say!("\n{}", text::plain(table, &mut said).trim_end()));
        }
    }
}
