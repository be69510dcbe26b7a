//! A savepoint's statement, made anew of the name in it: what a log holds is no text to be run.

use crate::model::Control;
use crate::provable::tokens::{Token, Walk, tokens};

/// The statement; `None`: the text is none of this kind, or has no name that is UTF-8.
#[must_use]
pub fn control_sql(control: Control, sql: &[u8]) -> Option<String> {
    let all = tokens(sql);
    let mut walk = Walk(&all);
    while walk.byte(b';') {}
    let (is_it, verb) = match control {
        Control::Savepoint => (walk.words(&["SAVEPOINT"]), "SAVEPOINT"),
        Control::Release => (walk.words(&["RELEASE"]), "RELEASE"),
        Control::RollbackTo => (rolls_back(&mut walk), "ROLLBACK TO"),
    };
    let more = control != Control::Savepoint && walk.0.len() > 1;
    if more && walk.0.get(1) != Some(&Token::Byte(b';')) {
        walk.words(&["SAVEPOINT"]);
    }
    let name = walk.name().filter(|_| is_it && walk.is_at_end())?;
    let name = core::str::from_utf8(&name).ok().filter(|name| !name.contains('\0'))?;
    Some(format!("{verb} \"{}\"", name.replace('"', "\"\"")))
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
            (back, "ROLLBACK", None),
            (back, "ROLLBACK TRANSACTION", None),
        ] {
            assert_eq!(control_sql(control, sql.as_bytes()).as_deref(), made, "{sql}");
        }
        assert_eq!(control_sql(savepoint, b"SAVEPOINT a\xff"), None);
    }
}
