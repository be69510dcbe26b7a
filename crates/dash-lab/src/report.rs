//! Sections of figures, each with its target, printed and as JSON.

use serde_json::{Value, json};

use crate::out::say;

/// What a figure should be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Target {
    /// No more.
    AtMost(f64),
    /// No less.
    AtLeast(f64),
    /// This, give or take a share.
    Within(f64, f64),
}

impl Target {
    fn met(self, value: f64) -> bool {
        match self {
            Self::AtMost(limit) => value <= limit,
            Self::AtLeast(limit) => value >= limit,
            Self::Within(wanted, share) => (value - wanted).abs() <= wanted * share,
        }
    }

    fn text(self) -> String {
        match self {
            Self::AtMost(limit) => format!("<= {limit}"),
            Self::AtLeast(limit) => format!(">= {limit}"),
            Self::Within(wanted, share) => format!("{wanted} +-{} %", share * 100.0),
        }
    }
}

/// One figure.
#[derive(Debug, Clone)]
pub struct Figure {
    label: String,
    value: f64,
    unit: &'static str,
    target: Option<Target>,
}

/// A section: one target or several that belong together.
pub struct Section {
    name: &'static str,
    what: String,
    durability: &'static str,
    figures: Vec<Figure>,
    notes: Vec<String>,
    failed: bool,
}

impl Section {
    /// Without figures yet.
    pub fn new(name: &'static str, what: impl Into<String>, durability: &'static str) -> Self {
        Self {
            name,
            what: what.into(),
            durability,
            figures: Vec::new(),
            notes: Vec::new(),
            failed: false,
        }
    }

    /// A figure with a target.
    pub fn target(
        &mut self,
        label: impl Into<String>,
        value: f64,
        unit: &'static str,
        target: Target,
    ) {
        self.figures.push(Figure { label: label.into(), value, unit, target: Some(target) });
    }

    /// A figure to compare with.
    pub fn figure(&mut self, label: impl Into<String>, value: f64, unit: &'static str) {
        self.figures.push(Figure { label: label.into(), value, unit, target: None });
    }

    /// A sentence.
    pub fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// Why it could not be measured.
    pub fn fail(&mut self, reason: String) {
        self.failed = true;
        self.notes.push(reason);
    }

    /// Whether every target is met.
    pub fn met(&self) -> bool {
        !self.failed && self.figures.iter().all(Figure::met)
    }

    /// Prints it.
    pub fn print(&self) {
        say!("\n{}: {}\n  durability: {}", self.name, self.what, self.durability);
        for figure in &self.figures {
            let verdict = match figure.target {
                Some(target) => format!(
                    "target {:<14} {}",
                    target.text(),
                    if figure.met() { "met" } else { "NOT MET" }
                ),
                None => String::new(),
            };
            say!(
                "  {:<58} {:>10} {:<8} {verdict}",
                figure.label,
                digits(figure.value),
                figure.unit
            );
        }
        for note in &self.notes {
            say!("  - {note}");
        }
    }

    /// As JSON.
    pub fn json(&self) -> Value {
        json!({
            "name": self.name, "what": self.what, "durability": self.durability, "notes": self.notes,
            "figures": self.figures.iter().map(Figure::json).collect::<Vec<_>>(),
        })
    }
}

impl Figure {
    fn met(&self) -> bool {
        self.target.is_none_or(|target| target.met(self.value))
    }

    fn json(&self) -> Value {
        let target = self.target.map(Target::text);
        let met = self.target.map(|_| self.met());
        json!({ "label": self.label, "value": self.value, "unit": self.unit, "target": target, "met": met })
    }
}

fn digits(value: f64) -> String {
    match value.abs() {
        size if size >= 1000.0 => format!("{value:.0}"),
        size if size >= 100.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_met_when_every_target_is() {
        let mut row = Section::new("x", "y", "z");
        row.target("flushes", 1.009, "", Target::Within(1.0, 0.01));
        row.figure("writes", 99.0, "");
        assert!(row.met());
        row.target("ratio", 0.3, "", Target::AtLeast(0.5));
        assert!(!row.met());
        assert!(Target::AtMost(50.0).met(50.0));
    }
}
