//! Rust source, taken apart into code, comments and literals.

/// What a piece of a source is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Code,
    Comment,
    /// A string or a character.
    Literal,
}

/// The pieces of `source`, in order; together they are all of it.
pub(crate) fn pieces(source: &str) -> Vec<(Kind, &str)> {
    let mut found = Vec::new();
    let (mut at, mut begun) = (0, 0);
    while at < source.len() {
        let rest = &source[at..];
        let after_a_word = source[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        if let Some((kind, length)) = other_than_code(rest, after_a_word) {
            found.push((Kind::Code, &source[begun..at]));
            found.push((kind, &source[at..at + length]));
            at += length;
            begun = at;
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    found.push((Kind::Code, &source[begun..]));
    found.retain(|(_, text)| !text.is_empty());
    found
}

/// The comment or literal that `rest` begins with, and its length.
fn other_than_code(rest: &str, after_a_word: bool) -> Option<(Kind, usize)> {
    if rest.starts_with("//") {
        return Some((Kind::Comment, rest.find('\n').unwrap_or(rest.len())));
    }
    if rest.starts_with("/*") {
        return Some((Kind::Comment, block_comment(rest)));
    }
    if let Some(inside) = rest.strip_prefix('"') {
        return Some((Kind::Literal, 1 + escaped(inside, '"')));
    }
    if let Some(inside) = rest.strip_prefix('\'') {
        let mut chars = inside.chars();
        let first = chars.next()?;
        // Otherwise it is a lifetime.
        let is_character = first == '\\' || chars.next() == Some('\'');
        return is_character.then(|| (Kind::Literal, 1 + escaped(inside, '\'')));
    }
    if after_a_word {
        return None;
    }
    let word = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
    match &rest[..word] {
        "r" | "br" | "cr" => {
            let hashes = rest[word..].bytes().take_while(|byte| *byte == b'#').count();
            let inside = word + hashes + 1;
            if !rest[word + hashes..].starts_with('"') {
                return None;
            }
            let end = format!("\"{}", "#".repeat(hashes));
            let length = rest[inside..].find(&end).map_or(rest.len() - inside, |at| at + end.len());
            Some((Kind::Literal, inside + length))
        }
        _ => None,
    }
}

/// The length up to and with `end`, escapes passed over.
fn escaped(text: &str, end: char) -> usize {
    let mut backslash = false;
    for (at, c) in text.char_indices() {
        if !backslash && c == end {
            return at + c.len_utf8();
        }
        backslash = c == '\\' && !backslash;
    }
    text.len()
}

/// The length of the block comment that `text` begins with; they nest.
fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        if text[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if text[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// `source` with blanks in place of comments and literals: same lines, same braces of code.
pub(crate) fn code(source: &str) -> String {
    pieces(source)
        .into_iter()
        .map(|(kind, text)| match kind {
            Kind::Code => text.to_owned(),
            _ => text.chars().map(|c| if c == '\n' { '\n' } else { ' ' }).collect(),
        })
        .collect()
}

/// The comments and literals of `source`, each with the number of its first line.
pub(crate) fn prose(source: &str) -> Vec<(Kind, usize, &str)> {
    let mut line = 1;
    let mut found = Vec::new();
    for (kind, text) in pieces(source) {
        if kind != Kind::Code {
            found.push((kind, line, text));
        }
        line += text.matches('\n').count();
    }
    found
}

/// `source` without its module of tests.
pub(crate) fn product(source: &str) -> &str {
    source.split("\nmod tests {").next().unwrap_or(source)
}

#[test]
fn code_is_told_from_comments_and_literals() {
    let source =
        r###"fn a<'a>(b: &'a str) { /* { /* { */ */ "}\"{"; r#""{"#; '{'; '\''; b"{"; } // {"###;
    let code = code(source);
    assert_eq!(code.matches(['{', '}']).collect::<String>(), "{}");
    assert_eq!(code.chars().count(), source.chars().count());
    let kinds: Vec<_> =
        prose("\n// x\n\"y\"").iter().map(|(kind, line, _)| (*kind, *line)).collect();
    assert_eq!(kinds, [(Kind::Comment, 2), (Kind::Literal, 3)]);
}
