//! What divides a transaction, made of the name in it: its text is never run, as a log may have any
//! text in its place.

use super::tokens::{Walk, tokens};
use crate::model::Control;

impl Control {
    /// The statement of this kind that a text is, with its name in quotes and in lower case;
    /// `None`: it is none, or more than that.
    #[must_use]
    pub fn statement(self, sql: &[u8]) -> Option<Vec<u8>> {
        // SQLite ends there, whatever it stands in.
        if sql.contains(&0) {
            return None;
        }
        let tokens = tokens(sql);
        let mut walk = Walk(&tokens);
        while walk.byte(b';') {}
        let (begins, begin): (_, &[u8]) = match self {
            Self::Savepoint => (walk.words(&["savepoint"]), b"SAVEPOINT \""),
            Self::Release => (walk.words(&["release"]), b"RELEASE \""),
            Self::RollbackTo => {
                let begins = walk.words(&["rollback"]);
                walk.words(&["transaction"]);
                (begins && walk.words(&["to"]), b"ROLLBACK TO \"")
            }
        };
        if self != Self::Savepoint {
            walk.words(&["savepoint"]);
        }
        let name = walk.name().filter(|_| begins && walk.is_at_end())?;
        let doubled = |byte: &u8| if *byte == b'"' { vec![b'"', b'"'] } else { vec![*byte] };
        let name = name.iter().flat_map(doubled);
        Some(begin.iter().copied().chain(name).chain([b'"']).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `STATEMENT-6`, SEC S2-1.
    #[test]
    fn nothing_but_a_savepoint_is_made_of_a_text() {
        use Control::{Release, RollbackTo, Savepoint};
        for (kind, sql, made) in [
            (Savepoint, "SAVEPOINT s", "SAVEPOINT \"s\""),
            (Savepoint, "; savepoint /* of */ 'It''s';", "SAVEPOINT \"it's\""),
            (Savepoint, "savepoint [a\"b] -- all", "SAVEPOINT \"a\"\"b\""),
            (Release, "RELEASE S", "RELEASE \"s\""),
            (Release, "release savepoint `s` ; ;", "RELEASE \"s\""),
            (RollbackTo, "ROLLBACK TO s", "ROLLBACK TO \"s\""),
            (RollbackTo, "rollback transaction to savepoint \"é\"", "ROLLBACK TO \"é\""),
        ] {
            let text = kind.statement(sql.as_bytes()).map(String::from_utf8);
            assert_eq!(text, Some(Ok(made.to_owned())), "{sql}");
        }
        for (kind, sql) in [
            (Savepoint, ""),
            (Savepoint, "SAVEPOINT"),
            (Savepoint, "SAVEPOINT 1"),
            (Savepoint, "SAVEPOINT ?"),
            (Savepoint, "SAVEPOINT s t"),
            (Savepoint, "SAVEPOINT s; VACUUM INTO 'x'"),
            (Savepoint, "SAVEPOINT s\0"),
            (Savepoint, "SAVEPOINT 's\0'"),
            (Savepoint, "RELEASE s"),
            (Savepoint, "VACUUM INTO 'x'"),
            (Release, "SAVEPOINT s"),
            (Release, "COMMIT"),
            (Release, "ATTACH 'x' AS y"),
            (RollbackTo, "ROLLBACK"),
            (RollbackTo, "ROLLBACK TO"),
        ] {
            assert_eq!(kind.statement(sql.as_bytes()), None, "{sql}");
        }
    }
}
