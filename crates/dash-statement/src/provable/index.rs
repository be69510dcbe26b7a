//! `CREATE INDEX`: that it holds columns and nothing else, and whether it makes a key of them.

use super::table::columns;
use super::tokens::{Name, Token, Walk};
use super::unprovable::Unprovable;

/// The columns that an index makes a key of; `None`: it is not unique. A column that it names twice
/// would be copied as often, and nobody needs that.
///
/// # Errors
///
/// What it has that is not allowed.
pub fn read(definition: &[Token<'_>]) -> Result<Option<Vec<Name>>, Unprovable> {
    let mut walk = Walk(definition);
    let is_unique = walk.words(&["create", "unique", "index"]);
    if !is_unique && !walk.words(&["create", "index"]) {
        return Err(Unprovable::Table);
    }
    let is_named = walk.name().is_some() && walk.words(&["on"]) && walk.name().is_some();
    if !is_named {
        return Err(Unprovable::Table);
    }
    let columns = columns(walk.braced().ok_or(Unprovable::Table)?)?;
    let names_twice = (1..columns.len()).any(|at| columns[..at].contains(&columns[at]));
    if names_twice {
        return Err(Unprovable::Table);
    }
    match walk.is_at_end() {
        true => Ok(is_unique.then_some(columns)),
        false => Err(Unprovable::Expression),
    }
}
