//! A text of SQL as the tokens that mean something, and walks over them.

use crate::token::{Kind, token};

/// A name, in lower case: SQLite compares ASCII letters so.
pub type Name = Box<[u8]>;

/// A token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token<'a> {
    /// A parameter.
    Parameter,
    /// A name, a keyword or a number.
    Word(&'a [u8]),
    /// What stands in quotes, with them.
    Quoted(&'a [u8]),
    /// Any other byte.
    Byte(u8),
}

impl Token<'_> {
    /// Whether it is this keyword.
    pub fn is(self, keyword: &str) -> bool {
        matches!(self, Self::Word(word) if word.eq_ignore_ascii_case(keyword.as_bytes()))
    }

    /// Whether it is one of these keywords.
    pub fn is_any(self, keywords: &[&str]) -> bool {
        keywords.iter().any(|keyword| self.is(keyword))
    }

    /// Whether a number begins with it.
    pub fn is_number(self) -> bool {
        matches!(self, Self::Word([b'0'..=b'9', ..]))
    }

    /// Whether it is a text in single quotes. That is a name all the same where only one can stand.
    pub fn is_text(self) -> bool {
        matches!(self, Self::Quoted([b'\'', ..]))
    }

    /// What it names, if it stands where a name does.
    pub fn name(self) -> Option<Name> {
        match self {
            Self::Word(word) if !self.is_number() => Some(word.to_ascii_lowercase().into()),
            Self::Quoted([b'[', inner @ .., b']']) => Some(inner.to_ascii_lowercase().into()),
            Self::Quoted([quote @ (b'"' | b'`' | b'\''), inner @ .., end]) if quote == end => {
                let mut name = Vec::with_capacity(inner.len());
                let mut bytes = inner.iter();
                while let Some(byte) = bytes.next() {
                    name.push(byte.to_ascii_lowercase());
                    if byte == quote {
                        bytes.next();
                    }
                }
                Some(name.into())
            }
            _ => None,
        }
    }
}

/// All of a text.
pub fn tokens(sql: &[u8]) -> Vec<Token<'_>> {
    let (mut all, mut rest) = (Vec::new(), sql);
    while let Some((kind, length)) = token(rest) {
        let (text, behind) = quoted(rest, kind, length);
        match kind {
            Kind::Parameter => all.push(Token::Parameter),
            Kind::Word => all.push(Token::Word(text)),
            Kind::Quoted => all.push(Token::Quoted(text)),
            Kind::Other if !text[0].is_ascii_whitespace() => all.push(Token::Byte(text[0])),
            Kind::Other | Kind::Line { .. } | Kind::Comment { .. } => {}
        }
        rest = behind;
    }
    all
}

/// A token and what is behind it. A quote that is doubled goes on with the text that it is in.
fn quoted(rest: &[u8], kind: Kind, mut length: usize) -> (&[u8], &[u8]) {
    if kind == Kind::Quoted && rest[0] != b'[' {
        while rest.get(length) == Some(&rest[0]) {
            length += token(&rest[length..]).map_or(1, |(_, more)| more);
        }
    }
    rest.split_at(length)
}

/// A walk over tokens.
#[derive(Clone)]
pub struct Walk<'a, 't>(pub &'t [Token<'a>]);

impl<'a, 't> Walk<'a, 't> {
    /// The next one, which stays.
    pub fn peek(&self) -> Option<Token<'a>> {
        self.0.first().copied()
    }

    /// The next one.
    pub fn take(&mut self) -> Option<Token<'a>> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// Takes these keywords, if they are next.
    pub fn words(&mut self, words: &[&str]) -> bool {
        let is = self.0.len() >= words.len()
            && self.0.iter().zip(words).all(|(token, word)| token.is(word));
        if is {
            self.0 = &self.0[words.len()..];
        }
        is
    }

    /// Takes a byte, if it is next.
    pub fn byte(&mut self, byte: u8) -> bool {
        let is = self.peek() == Some(Token::Byte(byte));
        if is {
            self.0 = &self.0[1..];
        }
        is
    }

    /// Takes a name, if one is next.
    pub fn name(&mut self) -> Option<Name> {
        let name = self.peek()?.name()?;
        self.0 = &self.0[1..];
        Some(name)
    }

    /// Takes what stands between the brace that is next and its end.
    pub fn braced(&mut self) -> Option<&'t [Token<'a>]> {
        let end = end_of_brace(self.0)?;
        let inner = &self.0[1..end];
        self.0 = &self.0[end + 1..];
        Some(inner)
    }

    /// Whether nothing but the end of a statement is left.
    pub fn is_at_end(&self) -> bool {
        self.0.iter().all(|token| *token == Token::Byte(b';'))
    }
}

/// Where the brace ends that tokens begin with.
pub fn end_of_brace(tokens: &[Token<'_>]) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::Byte(b'(') => depth += 1,
            Token::Byte(b')') => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            return (at > 0).then_some(at);
        }
    }
    None
}

/// The parts between tokens that stand in no brace.
pub fn split<'a, 't>(
    tokens: &'t [Token<'a>],
    is_between: impl Fn(Token<'a>) -> bool,
) -> Vec<&'t [Token<'a>]> {
    let (mut parts, mut begin, mut depth) = (Vec::new(), 0, 0_i32);
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::Byte(b'(') => depth += 1,
            Token::Byte(b')') => depth -= 1,
            _ if depth == 0 && is_between(*token) => {
                parts.push(&tokens[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&tokens[begin..]);
    parts
}
