//! Values and conditions that SQLite's operators alone make of constants and of one row: whatever
//! the order in which they are looked at, and whoever looks.

use std::collections::HashMap;

use super::table::Table;
use super::tokens::{Name, Token, end_of_brace, split};
use super::unprovable::Unprovable;

/// Operators that are words, and constants.
const PLAIN: [&str; 8] = ["and", "or", "not", "is", "isnull", "notnull", "null", "true"];
/// Functions that need no brace.
const CALLS: [&str; 7] =
    ["like", "glob", "regexp", "match", "current_time", "current_date", "current_timestamp"];
/// What makes another form of a statement, and is no function before a brace. Other words that name
/// nothing do so, too: what stands between `CASE` or `BETWEEN` and its end is not to be taken for a
/// condition of its own.
const FORMS: [&str; 7] = ["in", "exists", "case", "between", "select", "values", "with"];
/// Operators of one byte, or parts of longer ones.
const OPERATORS: &[u8] = b"()+-*/%&|~<>=!.";

/// Tokens of an expression: so no SQLite is asked to go deeper than 1000, its own limit as a rule.
const TOKENS: usize = 1000;
/// How often a statement may name one column, and how many `||` it may have. Each makes a copy of a
/// value, as long as the database at most, and SQLite may keep them all until the statement ends.
const COPIES: usize = 4;
/// How deep a condition's braces may be for a key in them to count.
const DEPTH: usize = 100;

/// What names may stand in an expression.
#[derive(Clone, Copy)]
pub struct Scope<'a> {
    /// The row's table; `None`: there is no row.
    pub table: Option<&'a Table>,
    /// What the statement calls it.
    pub name: &'a [u8],
}

/// Whether these tokens are such an expression.
///
/// # Errors
///
/// Why not.
pub fn check(tokens: &[Token<'_>], scope: Scope<'_>) -> Result<(), Unprovable> {
    if tokens.is_empty() || tokens.len() > TOKENS {
        return Err(Unprovable::Form);
    }
    for (at, token) in tokens.iter().enumerate() {
        let next = tokens.get(at + 1).copied();
        operand(*token, next, scope)?;
    }
    Ok(())
}

fn operand(token: Token<'_>, next: Option<Token<'_>>, scope: Scope<'_>) -> Result<(), Unprovable> {
    match token {
        // To SQLite, `:a(…)` is one name up to its brace, quotes in it included.
        Token::Parameter if next == Some(Token::Byte(b'(')) => return Err(Unprovable::Form),
        Token::Parameter => return Ok(()),
        // `->` and `->>` are functions.
        Token::Byte(b'-') if next == Some(Token::Byte(b'>')) => return Err(Unprovable::Function),
        Token::Byte(byte) if OPERATORS.contains(&byte) => return Ok(()),
        Token::Byte(_) => return Err(Unprovable::Form),
        _ if token.is_number() || token.is_text() || token.is_any(&PLAIN) => return Ok(()),
        _ if token.is("false") => return Ok(()),
        _ if token.is("x") && next.is_some_and(Token::is_text) => return Ok(()),
        _ if token.is("collate") => return Err(Unprovable::Collation),
        _ if token.is_any(&FORMS) => return Err(Unprovable::Form),
        _ if token.is_any(&CALLS) => return Err(Unprovable::Function),
        Token::Word(_) | Token::Quoted(_) => {}
    }
    if next == Some(Token::Byte(b'(')) {
        return Err(Unprovable::Function);
    }
    let name = token.name().ok_or(Unprovable::Form)?;
    let is_tables = next == Some(Token::Byte(b'.')) && *name == *scope.name;
    let is_column = scope.table.is_some_and(|table| table.has(&name, token));
    // Anything else in double quotes is a text to some connections, and a mistake to others.
    if is_column || (is_tables && scope.table.is_some()) { Ok(()) } else { Err(Unprovable::Form) }
}

/// Whether a whole statement, which is otherwise allowed, makes few copies of long values.
///
/// # Errors
///
/// It is too large.
pub fn makes_few_copies(statement: &[Token<'_>], table: &Table) -> Result<(), Unprovable> {
    let mut before = None;
    let (mut joined, mut named) = (0, HashMap::<_, usize>::new());
    for token in statement {
        joined += usize::from([Some(*token), before] == [Some(Token::Byte(b'|')); 2]);
        // A text names a column behind a table's name alone.
        let may_name = !token.is_text() || before == Some(Token::Byte(b'.'));
        if let Some(name) = token.name().filter(|name| may_name && table.has(name, *token)) {
            *named.entry(name).or_default() += 1;
        }
        before = Some(*token);
    }
    match named.into_values().chain([joined]).all(|count| count <= COPIES) {
        true => Ok(()),
        false => Err(Unprovable::Form),
    }
}

/// The columns that a condition wants to be equal to a constant each, whatever else it wants.
///
/// Conditions in braces are looked into as deep as [`DEPTH`] says.
pub fn equated(condition: &[Token<'_>], scope: Scope<'_>) -> Vec<Name> {
    let (mut names, mut waiting) = (Vec::new(), vec![(condition, DEPTH)]);
    while let Some((condition, depth)) = waiting.pop() {
        let condition = bare(condition);
        if split(condition, |token| token.is("or")).len() > 1 {
            continue;
        }
        let parts = split(condition, |token| token.is("and"));
        match (parts.len() > 1, depth.checked_sub(1)) {
            (false, _) => names.extend(compared(condition, scope)),
            (true, Some(depth)) => waiting.extend(parts.into_iter().map(|part| (part, depth))),
            (true, None) => {}
        }
    }
    names
}

/// The column that a comparison wants to be equal to a constant.
fn compared(condition: &[Token<'_>], scope: Scope<'_>) -> Option<Name> {
    let sides = split(condition, |token| token == Token::Byte(b'='));
    let (one, other) = match sides[..] {
        [one, other] => (one, other),
        [one, [], other] => (one, other),
        _ => return None,
    };
    match (column(one, scope), column(other, scope)) {
        (Some(name), None) if is_constant(other) => Some(name),
        (None, Some(name)) if is_constant(one) => Some(name),
        _ => None,
    }
}

/// Without the braces that are around all of it.
fn bare<'a, 't>(mut tokens: &'t [Token<'a>]) -> &'t [Token<'a>] {
    while let Some(end) = end_of_brace(tokens).filter(|end| end + 1 == tokens.len()) {
        tokens = &tokens[1..end];
    }
    tokens
}

fn column(tokens: &[Token<'_>], scope: Scope<'_>) -> Option<Name> {
    let token = match *tokens {
        [token] => token,
        [table, Token::Byte(b'.'), token] if table.name().as_deref() == Some(scope.name) => token,
        _ => return None,
    };
    let name = (!token.is_text()).then(|| token.name())??;
    scope.table.is_some_and(|table| table.has(&name, token)).then_some(name)
}

fn is_constant(tokens: &[Token<'_>]) -> bool {
    match *tokens {
        [Token::Parameter] => true,
        [token] => token.is_number() || token.is_text(),
        [Token::Byte(b'-' | b'+'), token] => token.is_number(),
        [token, text] => token.is("x") && text.is_text(),
        _ => false,
    }
}
