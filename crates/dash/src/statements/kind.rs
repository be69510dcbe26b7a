//! What a statement is to a transaction, by its first words.

use dash_statement::Control;

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `BEGIN`, or `ROLLBACK` of everything.
    Bound,
    /// `COMMIT`, also called `END`.
    Commit,
    /// A savepoint's.
    Control(Control),
    /// All others.
    Other,
}

impl Kind {
    /// The kind of a text.
    pub fn of(sql: &[u8]) -> Self {
        let mut words = Words(sql);
        match words.next() {
            Some(word) if is(word, "savepoint") => Self::Control(Control::Savepoint),
            Some(word) if is(word, "release") => Self::Control(Control::Release),
            Some(word) if is(word, "begin") => Self::Bound,
            Some(word) if is(word, "commit") || is(word, "end") => Self::Commit,
            Some(word) if is(word, "rollback") => {
                let next = words.next();
                let next = if next.is_some_and(|word| is(word, "transaction")) {
                    words.next()
                } else {
                    next
                };
                match next.is_some_and(|word| is(word, "to")) {
                    true => Self::Control(Control::RollbackTo),
                    false => Self::Bound,
                }
            }
            _ => Self::Other,
        }
    }

    /// Whether it may be what commits, though it writes nothing itself.
    pub fn may_commit(self) -> bool {
        matches!(self, Self::Commit | Self::Control(Control::Release))
    }
}

fn is(word: &[u8], keyword: &str) -> bool {
    word.eq_ignore_ascii_case(keyword.as_bytes())
}

/// The words that a text begins with, without what SQLite skips between them.
struct Words<'a>(&'a [u8]);

impl<'a> Iterator for Words<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        loop {
            self.0 = match self.0 {
                [b' ' | b'\t' | b'\n' | b'\r' | 0x0c | b';', rest @ ..] => rest,
                [0xef, 0xbb, 0xbf, rest @ ..] => rest,
                [b'-', b'-', rest @ ..] => after(rest, b"\n"),
                [b'/', b'*', rest @ ..] => after(rest, b"*/"),
                _ => break,
            };
        }
        let length = self.0.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        let (word, rest) = self.0.split_at(length);
        self.0 = rest;
        (length > 0).then_some(word)
    }
}

fn after<'a>(text: &'a [u8], end: &[u8]) -> &'a [u8] {
    let at = text.windows(end.len()).position(|window| window == end);
    at.map_or(&[], |at| &text[at + end.len()..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_words_tell() {
        let control = Kind::Control;
        for (sql, kind) in [
            ("SAVEPOINT a", control(Control::Savepoint)),
            ("release a", control(Control::Release)),
            ("ROLLBACK TO a", control(Control::RollbackTo)),
            ("ROLLBACK transaction/**/TO SAVEPOINT a", control(Control::RollbackTo)),
            ("ROLLBACK", Kind::Bound),
            ("rollback transaction", Kind::Bound),
            (" -- COMMIT\n; /* END */\tBegin immediate", Kind::Bound),
            ("\u{feff}COMMIT", Kind::Commit),
            ("END;", Kind::Commit),
            ("SELECT 1", Kind::Other),
            ("savepoints", Kind::Other),
            ("-- COMMIT", Kind::Other),
            ("/* COMMIT", Kind::Other),
            ("", Kind::Other),
        ] {
            assert_eq!(Kind::of(sql.as_bytes()), kind, "{sql}");
        }
    }
}
