//! A commit, as it is shown.

use dash_statement::Transaction;
use dash_wal::history::Commit;

use super::gaps::Gap;

/// A commit, as it is shown.
pub struct Shown<'a> {
    pub commit: &'a Commit,
    /// What is missing before it.
    pub gap: Option<Gap>,
    /// What it ran, if that is known.
    pub ran: Option<Transaction>,
    /// Why that is missing, or may not be all.
    pub reasons: Vec<String>,
}

impl<'a> Shown<'a> {
    /// With what is known of what it ran.
    pub fn of(commit: &'a Commit, gap: Option<Gap>) -> Self {
        match commit.known.transaction() {
            Ok(ran) => {
                let reasons = ran.reasons.iter().map(|it| it.sentence().to_owned());
                let missing = Some(ran.dropped).filter(|dropped| *dropped > 0);
                let missing = missing.map(|dropped| format!("{dropped} statements are missing"));
                let reasons = reasons.chain(missing).collect();
                Self { commit, gap, ran: Some(ran), reasons }
            }
            Err(reason) => Self { commit, gap, ran: None, reasons: vec![reason] },
        }
    }

    /// Pages that it wrote.
    pub fn pages(&self) -> u32 {
        let (first, last) = self.commit.frames;
        last.saturating_sub(first) + 1
    }
}
