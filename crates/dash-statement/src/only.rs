//! Whether a text is one statement, to SQLite and to the `sqlite3` shell alike. A text of a log may
//! be anybody's: what is not is neither run again nor printed as SQL.

use crate::token::{Kind, is_blank, token};

/// A text that is one whole statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Only<'a> {
    /// From its first word on, and without what follows the semicolon that ends it.
    pub text: &'a [u8],
    /// Its first word.
    pub verb: &'a [u8],
    /// Whether the word INTO is in it.
    pub has_into: bool,
}

impl Only<'_> {
    /// Whether its first word is one of these, which are in capitals.
    #[must_use]
    pub fn is_any(&self, verbs: &[&str]) -> bool {
        verbs.iter().any(|verb| self.verb.eq_ignore_ascii_case(verb.as_bytes()))
    }
}

/// What operators and punctuation are made of. Every other byte that is in no word, no quotes and
/// no comment is none of SQL's.
const PUNCTUATION: &[u8] = b";(),.+-*/%=<>|&~!";

/// The statement that a text is; `None`: it has none, more than one, or an unfinished one, or does
/// not begin with a word.
#[must_use]
pub fn only(sql: &[u8]) -> Option<Only<'_>> {
    if sql.contains(&0) {
        return None;
    }
    let (mut rest, mut seen) = (sql, Seen::Start);
    let (mut verb, mut end, mut has_into) = (None, None, false);
    while let Some((kind, length)) = token(rest) {
        let at = sql.len() - rest.len();
        let (text, behind) = rest.split_at(length);
        rest = behind;
        match kind {
            Kind::Line { .. } | Kind::Comment { .. } => continue,
            Kind::Other if is_blank(text) => continue,
            Kind::Other if length > 1 || !PUNCTUATION.contains(&text[0]) => return None,
            Kind::Quoted if !is_closed(text) => return None,
            _ => {}
        }
        seen = seen.after(kind, text);
        match (kind, verb) {
            (_, None) if text == b";" => continue,
            (Kind::Word, None) if text[0].is_ascii_alphabetic() => verb = Some((at, text)),
            (_, None) => return None,
            _ => {}
        }
        has_into |= kind == Kind::Word && text.eq_ignore_ascii_case(b"INTO");
        match end {
            None if seen == Seen::Start => end = Some(at),
            Some(_) if text != b";" => return None,
            _ => {}
        }
    }
    let (begin, verb) = verb?;
    if end.is_none() && seen.after(Kind::Other, b";") != Seen::Start {
        return None;
    }
    let text = &sql[begin..end.unwrap_or(sql.len())];
    Some(Only { text, verb, has_into })
}

fn is_closed(quoted: &[u8]) -> bool {
    let end = if quoted[0] == b'[' { b']' } else { quoted[0] };
    quoted.len() > 1 && quoted.last() == Some(&end)
}

/// What was seen of a statement, as `sqlite3_complete` tells them apart: in a trigger a semicolon
/// ends nothing, but behind `; END`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    Start,
    Explain,
    Create,
    Other,
    Trigger,
    TriggerStep,
    TriggerEnd,
}

impl Seen {
    fn after(self, kind: Kind, text: &[u8]) -> Self {
        let is = |word: &str| kind == Kind::Word && text.eq_ignore_ascii_case(word.as_bytes());
        match self {
            Self::Trigger | Self::TriggerStep if text == b";" => Self::TriggerStep,
            Self::TriggerStep if is("END") => Self::TriggerEnd,
            _ if text == b";" => Self::Start,
            Self::Trigger | Self::TriggerStep | Self::TriggerEnd => Self::Trigger,
            Self::Start if is("EXPLAIN") => Self::Explain,
            Self::Start | Self::Explain if is("CREATE") => Self::Create,
            Self::Create if is("TEMP") || is("TEMPORARY") => Self::Create,
            Self::Create if is("TRIGGER") => Self::Trigger,
            Self::Explain if !is("TEMP") && !is("TEMPORARY") && !is("TRIGGER") && !is("END") => {
                Self::Explain
            }
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_statement_is_told_from_everything_else() {
        for (sql, text) in [
            ("SELECT 1", "SELECT 1"),
            (" -- a\n;/* b */ SELECT 1 ;", "SELECT 1 "),
            ("SELECT 1;\n; -- c", "SELECT 1"),
            ("SELECT ';', \";\", `;`, [;] -- ;", "SELECT ';', \";\", `;`, [;] -- ;"),
            ("\u{feff}SELECT a.b, 1.5, :a, $b::c(d;e)", "SELECT a.b, 1.5, :a, $b::c(d;e)"),
            ("SELECT x'00', 'it''s' /* open", "SELECT x'00', 'it''s' /* open"),
            (
                "CREATE TEMP TRIGGER a INSERT ON t BEGIN SELECT 1; SELECT 2; END;",
                "CREATE TEMP TRIGGER a INSERT ON t BEGIN SELECT 1; SELECT 2; END",
            ),
            ("EXPLAIN QUERY PLAN SELECT 1", "EXPLAIN QUERY PLAN SELECT 1"),
        ] {
            let found = only(sql.as_bytes()).map(|it| String::from_utf8_lossy(it.text));
            assert_eq!(found.as_deref(), Some(text), "{sql}");
        }
    }

    #[test]
    fn what_is_not_one_statement_is_none() {
        for sql in [
            "",
            ";",
            "-- SELECT 1",
            ".shell x",
            "/* x */\n.shell x",
            "#x",
            "5",
            "'a'",
            "é",
            "(SELECT 1)",
            "SELECT 1; SELECT 2",
            "SELECT 1;\n.shell x",
            "SELECT 'open",
            "SELECT \"",
            "SELECT [a",
            "SELECT 1\0; SELECT 2",
            "SELECT \u{1b}",
            "SELECT {",
            "SELECT \\",
            "SELECT $a(b c)",
            "SELECT $",
            "CREATE TRIGGER t",
            "CREATE TRIGGER t BEGIN SELECT 1; END; SELECT 2",
        ] {
            assert_eq!(only(sql.as_bytes()), None, "{sql:?}");
        }
    }

    #[test]
    fn its_words_are_told() {
        let is = |sql: &'static str| {
            only(sql.as_bytes()).map(|it| (it.is_any(&["VACUUM"]), it.has_into))
        };
        assert_eq!(is("vacuum main;"), Some((true, false)));
        assert_eq!(is("VACUUM /* INTO */ 'INTO' into 'x'"), Some((true, true)));
        assert_eq!(is("SELECT 1"), Some((false, false)));
    }
}
