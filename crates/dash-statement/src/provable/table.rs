//! `CREATE TABLE`: which columns a table has, which of them tell one row from all others, and that
//! nothing of it needs more than its own rows.

use super::tokens::{Name, Token, Walk, split};
use super::unprovable::Unprovable;

/// Names of the number of a row, where no column has them.
const ROWID: [&[u8]; 3] = [b"rowid", b"oid", b"_rowid_"];
/// What ends the type of a column.
const CONSTRAINTS: [&str; 11] = [
    "constraint",
    "primary",
    "not",
    "null",
    "unique",
    "check",
    "default",
    "collate",
    "references",
    "generated",
    "as",
];
/// What happens to a row that breaks a constraint; `ROLLBACK` would end the transaction.
const CONFLICTS: [&str; 4] = ["abort", "fail", "ignore", "replace"];

/// A table of which all is understood.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table {
    columns: Vec<Name>,
    /// Columns that no two rows have the same values in.
    keys: Vec<Vec<Name>>,
    has_rowid: bool,
}

impl Table {
    /// Whether a name that stands so is a column's, or that of the row's number.
    pub fn has(&self, name: &[u8], token: Token<'_>) -> bool {
        let is_word = matches!(token, Token::Word(_));
        self.columns.iter().any(|column| **column == *name) || (is_word && self.is_rowid(name))
    }

    fn is_rowid(&self, name: &[u8]) -> bool {
        self.has_rowid && ROWID.contains(&name)
    }

    /// Whether at most one row has given values in these columns; `more`: keys that indexes make.
    pub fn is_key(&self, names: &[Name], more: &[Vec<Name>]) -> bool {
        let has = |column: &Name| names.contains(column);
        let is_number = |name: &Name| !self.columns.contains(name) && self.is_rowid(name);
        let mut keys = self.keys.iter().chain(more);
        keys.any(|key| key.iter().all(has)) || names.iter().any(is_number)
    }

    /// How many keys it has of its own.
    pub fn keys(&self) -> usize {
        self.keys.len()
    }

    /// Reads a definition as the schema has it.
    ///
    /// # Errors
    ///
    /// What it has that is not allowed.
    pub fn read(definition: &[Token<'_>]) -> Result<Self, Unprovable> {
        let mut walk = Walk(definition);
        if !walk.words(&["create", "table"]) || walk.name().is_none() {
            return Err(Unprovable::Table);
        }
        let inner = walk.braced().ok_or(Unprovable::Table)?;
        let mut table = Self { has_rowid: true, ..Self::default() };
        for part in split(inner, |token| token == Token::Byte(b',')) {
            table.part(Walk(part))?;
        }
        while !walk.is_at_end() {
            if walk.words(&["without", "rowid"]) {
                table.has_rowid = false;
            } else if !walk.words(&["strict"]) && !walk.byte(b',') {
                return Err(Unprovable::Table);
            }
        }
        Ok(table)
    }

    /// A column, or a constraint of the table; those may follow each other without a comma.
    fn part(&mut self, mut walk: Walk<'_, '_>) -> Result<(), Unprovable> {
        let starts = ["constraint", "primary", "unique", "check", "foreign"];
        if !walk.peek().is_some_and(|token| token.is_any(&starts)) {
            return self.column(walk);
        }
        while walk.peek().is_some() {
            if walk.words(&["constraint"]) {
                walk.name().ok_or(Unprovable::Table)?;
            } else if walk.words(&["primary", "key"]) || walk.words(&["unique"]) {
                let names = walk.braced().ok_or(Unprovable::Table)?;
                self.keys.push(columns(names)?);
                conflict(&mut walk)?;
            } else {
                return Err(refused(walk.peek()));
            }
        }
        Ok(())
    }

    fn column(&mut self, mut walk: Walk<'_, '_>) -> Result<(), Unprovable> {
        let name = walk.name().ok_or(Unprovable::Table)?;
        self.columns.push(name.clone());
        kind(&mut walk)?;
        while walk.peek().is_some() {
            if walk.words(&["constraint"]) {
                walk.name().ok_or(Unprovable::Table)?;
            } else if walk.words(&["primary", "key"]) {
                let _ = walk.words(&["asc"]) || walk.words(&["desc"]);
                conflict(&mut walk)?;
                walk.words(&["autoincrement"]);
                self.keys.push(vec![name.clone()]);
            } else if walk.words(&["unique"]) {
                conflict(&mut walk)?;
                self.keys.push(vec![name.clone()]);
            } else if walk.words(&["not", "null"]) || walk.words(&["null"]) {
                conflict(&mut walk)?;
            } else if walk.words(&["default"]) {
                constant(&mut walk)?;
            } else {
                return Err(refused(walk.peek()));
            }
        }
        Ok(())
    }
}

/// The columns that a key or an index lists.
///
/// # Errors
///
/// It has something else than columns.
pub fn columns(list: &[Token<'_>]) -> Result<Vec<Name>, Unprovable> {
    let column = |part: &[Token<'_>]| {
        let mut walk = Walk(part);
        let name = walk.name().ok_or(Unprovable::Expression)?;
        let _ = walk.words(&["asc"]) || walk.words(&["desc"]);
        walk.words(&["autoincrement"]);
        match walk.peek() {
            None => Ok(name),
            Some(token) if token.is("collate") => Err(Unprovable::Collation),
            Some(_) => Err(Unprovable::Expression),
        }
    };
    split(list, |token| token == Token::Byte(b',')).into_iter().map(column).collect()
}

/// The type of a column: words, and numbers in a brace.
fn kind(walk: &mut Walk<'_, '_>) -> Result<(), Unprovable> {
    while walk.peek().is_some_and(|token| !token.is_any(&CONSTRAINTS)) {
        if walk.name().is_some() {
            continue;
        }
        let inner = walk.braced().ok_or(Unprovable::Table)?;
        let is_part = |token: &Token<'_>| match token {
            Token::Word(_) => true,
            Token::Byte(byte) => b"+-.,".contains(byte),
            _ => false,
        };
        if !inner.iter().all(is_part) {
            return Err(Unprovable::Table);
        }
    }
    Ok(())
}

fn conflict(walk: &mut Walk<'_, '_>) -> Result<(), Unprovable> {
    if !walk.words(&["on", "conflict"]) || CONFLICTS.iter().any(|word| walk.words(&[word])) {
        return Ok(());
    }
    Err(Unprovable::Table)
}

/// A default that is a constant.
fn constant(walk: &mut Walk<'_, '_>) -> Result<(), Unprovable> {
    let is_signed = walk.byte(b'-') || walk.byte(b'+');
    let token = walk.take().ok_or(Unprovable::Table)?;
    match token {
        Token::Byte(b'.') if walk.take().is_some_and(Token::is_number) => exponent(walk),
        _ if token.is_number() => {
            if walk.byte(b'.') && walk.peek().is_some_and(Token::is_number) {
                walk.take();
            }
            exponent(walk)
        }
        _ if is_signed => Err(Unprovable::Expression),
        _ if token.is("x") && walk.peek().is_some_and(Token::is_text) => {
            walk.take();
            Ok(())
        }
        _ if token.is_text() || token.is_any(&["null", "true", "false"]) => Ok(()),
        _ if token.is_any(&["current_time", "current_date", "current_timestamp"]) => {
            Err(Unprovable::Function)
        }
        _ => Err(Unprovable::Expression),
    }
}

/// What is behind `1e-`: the sign has made it another token.
fn exponent(walk: &mut Walk<'_, '_>) -> Result<(), Unprovable> {
    if (walk.byte(b'-') || walk.byte(b'+')) && !walk.take().is_some_and(Token::is_number) {
        return Err(Unprovable::Expression);
    }
    Ok(())
}

/// Why what begins so is not allowed in a definition.
fn refused(token: Option<Token<'_>>) -> Unprovable {
    let is = |words: &[&str]| token.is_some_and(|token| token.is_any(words));
    if is(&["references", "foreign"]) {
        Unprovable::ForeignKey
    } else if is(&["check", "generated", "as"]) {
        Unprovable::Expression
    } else if is(&["collate"]) {
        Unprovable::Collation
    } else {
        Unprovable::Table
    }
}
