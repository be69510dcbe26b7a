//! A paper's table or figure, with a column for what is measured here.

use crate::present::cells::Cells;
use crate::present::text::grid;

/// One quantity.
struct Quantity {
    what: String,
    paper: Option<f64>,
    here: Option<f64>,
}

/// One table or figure of a paper.
pub struct Comparison {
    title: String,
    /// What the figures are, such as "KiB per transaction".
    unit: &'static str,
    quantities: Vec<Quantity>,
    notes: Vec<String>,
}

impl Comparison {
    /// Without figures yet.
    pub fn new(title: impl Into<String>, unit: &'static str) -> Self {
        Self { title: title.into(), unit, quantities: Vec::new(), notes: Vec::new() }
    }

    /// A quantity: the paper's figure if it states one, and ours if there is one.
    pub fn add(&mut self, what: impl Into<String>, paper: Option<f64>, here: Option<f64>) {
        self.quantities.push(Quantity { what: what.into(), paper, here });
    }

    /// A sentence.
    pub fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    fn cells(&self) -> Cells {
        let figure = |figure: Option<f64>| figure.map_or("-".to_owned(), digits);
        Cells {
            heading: [self.unit, "paper", "here"].map(String::from).to_vec(),
            rows: self
                .quantities
                .iter()
                .map(|it| vec![it.what.clone(), figure(it.paper), figure(it.here)])
                .collect(),
        }
    }

    /// As aligned text.
    pub fn plain(&self) -> String {
        let notes: String = self.notes.iter().map(|note| format!("  - {note}\n")).collect();
        format!("{}\n{}{notes}", self.title, grid(&self.cells())).trim_end().to_owned()
    }

    /// As Markdown.
    pub fn markdown(&self) -> String {
        let cells = self.cells();
        let line = |row: &[String]| format!("| {} |\n", row.join(" | "));
        let rows: String = cells.rows.iter().map(|row| line(row)).collect();
        let notes: String = self.notes.iter().map(|note| format!("- {note}\n")).collect();
        format!(
            "### {}\n\n{}| --- | --: | --: |\n{rows}\n{notes}",
            self.title,
            line(&cells.heading)
        )
    }
}

fn digits(figure: f64) -> String {
    match figure.abs() {
        size if size >= 100.0 => format!("{figure:.0}"),
        size if size >= 10.0 => format!("{figure:.1}"),
        size if size >= 0.01 => format!("{figure:.2}"),
        _ => format!("{figure:.4}"),
    }
}
