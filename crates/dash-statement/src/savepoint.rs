//! A savepoint's statement, made anew of the name in it: what a log holds is no text to be run.

use crate::model::Control;
use crate::provable::tokens::{Token, Walk, tokens};

impl Control {
    /// The statement of this kind that a text is, made anew of its name, in lower case; `None`: the
    /// text is none of this kind, or more than that, or has no name that is UTF-8.
    #[must_use]
    pub fn statement(self, sql: &[u8]) -> Option<String> {
        // SQLite ends there, whatever it stands in.
        if sql.contains(&0) {
            return None;
        }
        let all = tokens(sql);
        let mut walk = Walk(&all);
        while walk.byte(b';') {}
        let (is_it, verb) = match self {
            Self::Savepoint => (walk.words(&["SAVEPOINT"]), "SAVEPOINT"),
            Self::Release => (walk.words(&["RELEASE"]), "RELEASE"),
            Self::RollbackTo => (rolls_back(&mut walk), "ROLLBACK TO"),
        };
        let more = self != Self::Savepoint && walk.0.len() > 1;
        if more && walk.0.get(1) != Some(&Token::Byte(b';')) {
            walk.words(&["SAVEPOINT"]);
        }
        let name = walk.name().filter(|_| is_it && walk.is_at_end())?;
        let name = core::str::from_utf8(&name).ok()?;
        Some(format!("{verb} \"{}\"", name.replace('"', "\"\"")))
    }
}

/// `ROLLBACK [TRANSACTION [name]] TO`
fn rolls_back(walk: &mut Walk<'_, '_>) -> bool {
    if !walk.words(&["ROLLBACK"]) {
        return false;
    }
    if walk.words(&["TRANSACTION"]) && !walk.peek().is_some_and(|token| token.is("TO")) {
        walk.name();
    }
    walk.words(&["TO"])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `STATEMENT-6`, SEC S2-1.
    #[test]
    fn a_step_is_made_of_its_name() {
        let [savepoint, release, back] =
            [Control::Savepoint, Control::Release, Control::RollbackTo];
        for (control, sql, made) in [
            (savepoint, "savepoint a;", Some("SAVEPOINT \"a\"")),
            (savepoint, " ;/* x */ SAVEPOINT 'it''s' -- x", Some("SAVEPOINT \"it's\"")),
            (savepoint, "SAVEPOINT savepoint", Some("SAVEPOINT \"savepoint\"")),
            (savepoint, "SAVEPOINT [A\"b]", Some("SAVEPOINT \"a\"\"b\"")),
            (release, "RELEASE é", Some("RELEASE \"é\"")),
            (release, "RELEASE SAVEPOINT \"B\" ;;", Some("RELEASE \"b\"")),
            (release, "RELEASE savepoint;", Some("RELEASE \"savepoint\"")),
            (back, "ROLLBACK TO a", Some("ROLLBACK TO \"a\"")),
            (back, "rollback transaction x to savepoint a", Some("ROLLBACK TO \"a\"")),
            (back, "ROLLBACK TRANSACTION TO a", Some("ROLLBACK TO \"a\"")),
            (savepoint, "RELEASE a", None),
            (release, "COMMIT", None),
            (release, "RELEASE a; COMMIT", None),
            (savepoint, "SAVEPOINT", None),
            (savepoint, "SAVEPOINT 5", None),
            (savepoint, "SAVEPOINT ?", None),
            (savepoint, "SAVEPOINT a b", None),
            (savepoint, "ATTACH 'x' AS a", None),
            (savepoint, "SAVEPOINT s; VACUUM INTO 'x'", None),
            (savepoint, "SAVEPOINT s\0", None),
            (savepoint, "SAVEPOINT 's\0'", None),
            (savepoint, "VACUUM INTO 'x'", None),
            (release, "SAVEPOINT s", None),
            (back, "ROLLBACK", None),
            (back, "ROLLBACK TRANSACTION", None),
        ] {
            assert_eq!(control.statement(sql.as_bytes()).as_deref(), made, "{sql}");
        }
        assert_eq!(savepoint.statement(b"SAVEPOINT a\xff"), None);
    }
}
