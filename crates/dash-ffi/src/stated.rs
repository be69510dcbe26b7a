//! What the program itself has said, and no schema: the text of the statements that run, and
//! whether it is in a transaction.

use crate::connection::ConnectionRef;
use core::ffi::CStr;

impl ConnectionRef<'_> {
    /// Whether it is in no transaction of the program's.
    #[must_use]
    pub fn is_autocommit(&self) -> bool {
        // SAFETY: an open connection, which this thread has locked.
        unsafe { (self.slot.api.get_autocommit)(self.as_ptr()) != 0 }
    }

    /// Whether a SELECT that runs on the connection calls a function in its text, as far as that
    /// can be told. One that the schema calls is in no text; what writes may have come to it by a
    /// trigger, or by what a virtual table says on its own.
    #[must_use]
    pub fn is_stated(&self, function: &str) -> bool {
        let Some(api) = &self.slot.api.statements else { return true };
        let mut is_stated = false;
        let mut look = |statement| {
            // SAFETY: a live statement of this connection.
            let text = unsafe { (api.sql)(statement) };
            is_stated |= text.is_null() || {
                // SAFETY: a C string that stays while the statement does.
                let text = unsafe { CStr::from_ptr(text) }.to_bytes();
                calls(text, function)
            };
        };
        // SAFETY: an open connection, which this thread has locked.
        unsafe { api.busy(self.as_ptr(), &mut look) };
        is_stated
    }
}

/// Whether a SELECT has a call of a function in its text: outside of strings, quoted names and
/// comments.
fn calls(text: &[u8], function: &str) -> bool {
    let is = |word: &[u8], name: &str| word.eq_ignore_ascii_case(name.as_bytes());
    let mut words = words(text);
    let begins = words.next();
    let selects = ["SELECT", "WITH", "VALUES"];
    if !begins.is_some_and(|word| selects.iter().any(|begins| is(word, begins))) {
        return false;
    }
    let mut before = None;
    words.any(|word| {
        let is_call = word == b"(" && before.is_some_and(|before| is(before, function));
        before = Some(word);
        is_call
    })
}

/// The words of a statement, and its other characters one by one. What is quoted, or a comment, is
/// left out.
fn words(mut text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let is_of_word =
        |byte: &u8| byte.is_ascii_alphanumeric() || b"_$".contains(byte) || *byte > 127;
    core::iter::from_fn(move || {
        loop {
            let (skipped, end): (usize, &[u8]) = match text {
                [b'-', b'-', ..] => (2, b"\n"),
                [b'/', b'*', ..] => (2, b"*/"),
                [b'[', ..] => (1, b"]"),
                [quote @ (b'\'' | b'"' | b'`'), ..] => (1, core::slice::from_ref(quote)),
                [space, rest @ ..] if space.is_ascii_whitespace() => {
                    text = rest;
                    continue;
                }
                [] => return None,
                _ => {
                    let len = text.iter().take_while(|byte| is_of_word(byte)).count().max(1);
                    let (word, rest) = text.split_at(len);
                    text = rest;
                    return Some(word);
                }
            };
            let rest = text.get(skipped..).unwrap_or_default();
            let end_at = rest.windows(end.len()).position(|part| part == end);
            text = end_at.and_then(|at| rest.get(at + end.len()..)).unwrap_or_default();
        }
    })
}

#[cfg(test)]
mod tests {
    use super::calls;

    #[test]
    fn a_call_of_the_program_is_told_from_what_has_the_word_in_it() {
        let calls = |text: &str| calls(text.as_bytes(), "dash_backup");
        for text in [
            "SELECT dash_backup('b.db')",
            "-- a copy\nselect 1, Dash_Backup ( 'b.db', 'main' )",
            "/* SELECT */ WITH names(n) AS (VALUES('b.db')) SELECT dash_backup/**/(n) FROM names",
            "VALUES(dash_backup('b.db'))",
        ] {
            assert!(calls(text), "{text}");
        }
        for text in [
            "INSERT INTO t VALUES (1) -- dash_backup(",
            "PRAGMA quick_check(notes_dash_backup)",
            "SELECT 'dash_backup(' FROM t",
            "SELECT \"dash_backup\"(1), [dash_backup](2), `dash_backup`(3)",
            "SELECT * FROM my_dash_backup(1)",
            "SELECT dash_backup FROM t WHERE (1)",
            "SELECT 1 /* dash_backup(",
            "SELECT 'it''s dash_backup(' ",
            "INSERT INTO t SELECT dash_backup('b.db')",
            "REPLACE INTO 'f'.'dash_backup'(a) VALUES (1)",
            "",
        ] {
            assert!(!calls(text), "{text}");
        }
    }
}
