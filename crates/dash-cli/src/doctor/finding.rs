//! What the doctor says: sections of findings.

use serde_json::Value;

/// How grave a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// As it should be.
    Good,
    /// Worth knowing; nothing to do.
    Note,
    /// It works, and somebody should look after it.
    Warning,
    /// It does not work.
    Refused,
}

impl Level {
    /// How it is printed.
    pub fn word(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Refused => "refused",
        }
    }
}

/// One thing that was found.
#[derive(Debug)]
pub struct Finding {
    /// How grave it is.
    pub level: Level,
    /// What it is, as a sentence.
    pub says: String,
    /// What to do about it.
    pub remedy: Option<String>,
}

/// What was found of one subject.
#[derive(Debug)]
pub struct Section {
    /// The subject, such as `database app.db`.
    pub name: String,
    /// The same for programs.
    pub facts: Value,
    /// In the order in which they are read.
    pub findings: Vec<Finding>,
}

impl Section {
    /// One without findings yet.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), facts: Value::Null, findings: Vec::new() }
    }

    /// Adds a finding for which there is nothing to do.
    pub fn say(&mut self, level: Level, says: impl Into<String>) {
        self.findings.push(Finding { level, says: says.into(), remedy: None });
    }

    /// Adds a finding with what to do about it.
    pub fn advise(&mut self, level: Level, says: impl Into<String>, remedy: impl Into<String>) {
        self.findings.push(Finding { level, says: says.into(), remedy: Some(remedy.into()) });
    }
}
