//! Why a transaction may have come to something else: what SQLite does not answer twice, as far as
//! its statements and the schema tell.

use dash_statement::{Circumstance, Event, Transaction, Unprovable};

use crate::Result;
use crate::guarded::reader;
use crate::image::Image;
use crate::limits::Limits;
use crate::run::Done;

/// Functions that answer something else the second time.
const UNSTEADY: [&str; 6] =
    ["random", "randomblob", "last_insert_rowid", "changes", "total_changes", "sqlite_source_id"];

/// The reason, or what it may be.
pub fn reason(ran: &Transaction, done: &Done, before: &Image, limits: &Limits) -> Result<String> {
    let db = reader(before, limits)?;
    let schema: String =
        db.query_row("SELECT ifnull(group_concat(sql, ' '), '') FROM sqlite_master", [], |row| {
            row.get(0)
        })?;
    let mut reasons = Vec::new();
    if let Some(failed) = &done.failed {
        reasons
            .push(format!("a statement failed in the replay, and may not have before: {failed}"));
    }
    let clocks = |event: &Event| matches!(event, Event::Statement(it) if it.clock.is_some());
    if ran.events.iter().any(clocks) {
        reasons.push("a statement asked the clock, which says another time by now".to_owned());
    }
    let texts = ran.events.iter().map(|event| match event {
        Event::Statement(statement) => String::from_utf8_lossy(&statement.sql).into_owned(),
        Event::Control(..) => String::new(),
    });
    let texts: Vec<_> = texts.chain([schema]).map(|text| text.to_ascii_lowercase()).collect();
    for name in UNSTEADY {
        if texts.iter().any(|text| calls(text, name)) {
            reasons.push(format!("{name}() answers something else each time"));
        }
    }
    if db.prepare("SELECT 1 FROM sqlite_stat1").is_ok() {
        reasons.push(
            "the database has statistics (ANALYZE), and a connection plans by those that it has in memory: rows may have \
             come in another order"
                .to_owned(),
        );
    }
    let told = match reasons.is_empty() {
        false => reasons.join("; "),
        true => "nothing that is recorded tells: a function, a collation, an authorizer, a setting or a limit of the program's \
                 connection, a temporary or attached table, a statement that failed then, a rowid that was chosen at random, rows in another \
                 order, or another version of SQLite"
            .to_owned(),
    };
    let mut context = ran.context.iter().flat_map(|context| context.iter());
    let is_unconfirmed = context.any(|it| it == Circumstance::Unconfirmed);
    let sentence = Unprovable::Unconfirmed.sentence();
    Ok(if is_unconfirmed { format!("{sentence}; or {told}") } else { told })
}

/// Whether a text has a call of a function.
fn calls(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        !before.is_some_and(is_word) && text[at + name.len()..].trim_start().starts_with('(')
    })
}

#[cfg(test)]
mod tests {
    use super::calls;

    #[test]
    fn a_call_is_told_from_a_name() {
        assert!(calls("values (random ())", "random") && calls("random()", "random"));
        assert!(!calls("my_random()", "random") && !calls("random", "random"));
        assert!(!calls("randomblob(4)", "random"));
    }
}
