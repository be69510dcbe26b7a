//! Cutting SQL text into statements.

/// Cuts at every semicolon that is not inside a string, a name, a comment or a trigger's body.
pub fn at_semicolons(text: &str) -> Vec<String> {
    let bytes = text.as_bytes();
    let mut statements = Vec::new();
    let (mut start, mut at) = (0, 0);
    while at < bytes.len() {
        match skip(bytes, at) {
            Some(end) => at = end,
            None => {
                if bytes[at] == b';' && !inside_trigger(&text[start..at]) {
                    statements.push(&text[start..at]);
                    start = at + 1;
                }
                at += 1;
            }
        }
    }
    statements.push(&text[start..]);
    statements.into_iter().filter_map(clean).collect()
}

/// One statement a line, with or without its semicolon.
pub fn at_lines(text: &str) -> Vec<String> {
    text.lines().filter_map(clean).collect()
}

/// The end of the string, quoted name or comment that begins at `at`.
fn skip(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = &bytes[at..];
    let close: &[u8] = match rest {
        [b'\'', ..] => b"'",
        [b'"', ..] => b"\"",
        [b'`', ..] => b"`",
        [b'[', ..] => b"]",
        [b'-', b'-', ..] => b"\n",
        [b'/', b'*', ..] => b"*/",
        _ => return None,
    };
    let opening = if close.len() == 2 || close == b"\n" { 2 } else { 1 };
    // A doubled quote ends one string and begins the next: the same place for our purpose.
    let length = rest[opening..].windows(close.len()).position(|found| found == close);
    Some(length.map_or(bytes.len(), |length| at + opening + length + close.len()))
}

/// Whether a statement that begins so is a trigger whose END has not come.
fn inside_trigger(statement: &str) -> bool {
    let Some(statement) = clean(statement) else {
        return false;
    };
    let upper = statement.to_ascii_uppercase();
    let mut words = upper.split_ascii_whitespace();
    let is_trigger = words.next() == Some("CREATE")
        && matches!(
            (words.next(), words.next()),
            (Some("TRIGGER"), _) | (Some("TEMP" | "TEMPORARY"), Some("TRIGGER"))
        );
    is_trigger && upper.split_ascii_whitespace().next_back() != Some("END")
}

/// Without comments and blanks around it; `None` if nothing is left.
fn clean(statement: &str) -> Option<String> {
    let mut rest = statement.trim_start();
    loop {
        let end = match rest.as_bytes() {
            [b'-', b'-', ..] => rest.find('\n').map(|end| end + 1),
            [b'/', b'*', ..] => rest.find("*/").map(|end| end + 2),
            _ => break,
        };
        rest = rest[end.unwrap_or(rest.len())..].trim_start();
    }
    let statement = rest.trim_end_matches(|c: char| c == ';' || c.is_whitespace());
    (!statement.is_empty()).then(|| statement.to_owned())
}

/// Whether text ends between two statements, so that it can be run.
pub fn is_complete(text: &str) -> bool {
    const NEXT: &str = "next";
    text.trim_end().ends_with(';')
        && at_semicolons(&format!("{text}\n{NEXT}")).last().is_some_and(|last| last == NEXT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_semicolon_inside_something_ends_nothing() {
        let sql =
            "/* a;b */ SELECT ';', \"x;y\", [a;b]; -- c;\nINSERT INTO t VALUES('it''s; ok');;\n\n";
        assert_eq!(
            at_semicolons(sql),
            ["SELECT ';', \"x;y\", [a;b]", "INSERT INTO t VALUES('it''s; ok')"]
        );
    }

    #[test]
    fn a_trigger_is_one_statement() {
        let sql =
            "CREATE TRIGGER t AFTER INSERT ON a BEGIN DELETE FROM b; DELETE FROM c; END; SELECT 1";
        assert_eq!(at_semicolons(sql).len(), 2);
    }

    #[test]
    fn lines_may_lack_their_semicolon() {
        assert_eq!(
            at_lines("SELECT 1\nCOMMIT;\n\nUPDATE t SET a=';' WHERE 1;\n"),
            ["SELECT 1", "COMMIT", "UPDATE t SET a=';' WHERE 1"]
        );
    }

    #[test]
    fn text_is_complete_after_its_last_semicolon() {
        assert!(is_complete("SELECT 1;") && is_complete("SELECT ';' ;\n"));
        assert!(
            !is_complete("SELECT 1")
                && !is_complete("SELECT ';")
                && !is_complete("CREATE TRIGGER t AFTER INSERT ON a BEGIN SELECT 1;")
        );
    }
}
