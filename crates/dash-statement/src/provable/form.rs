//! Statements that write one row at most, which does not depend on how SQLite looks for it.

use super::expression::{self, Scope, equated, makes_few_copies};
use super::schema::Schema;
use super::table::Table;
use super::tokens::{Name, Token, Walk, split, tokens};
use super::unprovable::Unprovable;

/// What may happen to a row that breaks a constraint. `ROLLBACK` ends the transaction.
const CONFLICTS: [&str; 4] = ["abort", "fail", "ignore", "replace"];

/// Whether a statement is of such a form, on a table of which that is enough.
///
/// # Errors
///
/// Why not.
pub fn check(sql: &[u8], schema: &Schema) -> Result<(), Unprovable> {
    // SQLite ends there, whatever it stands in.
    if sql.contains(&0) {
        return Err(Unprovable::Form);
    }
    let tokens = tokens(sql);
    let mut walk = Walk(&tokens);
    while walk.byte(b';') {}
    makes_few_copies(walk.0, written(walk.clone(), schema)?.table)
}

/// The table that a statement of such a form writes.
fn written<'a>(mut walk: Walk<'_, '_>, schema: &'a Schema) -> Result<Target<'a>, Unprovable> {
    if walk.words(&["replace", "into"]) {
        return insert(walk, schema);
    }
    if walk.words(&["insert"]) {
        conflict(&mut walk)?;
        return if walk.words(&["into"]) { insert(walk, schema) } else { Err(Unprovable::Form) };
    }
    if walk.words(&["update"]) {
        conflict(&mut walk)?;
        return update(walk, schema);
    }
    if walk.words(&["delete", "from"]) {
        let target = target(&mut walk, schema)?;
        return by_key(walk, target);
    }
    Err(Unprovable::Form)
}

fn conflict(walk: &mut Walk<'_, '_>) -> Result<(), Unprovable> {
    if !walk.words(&["or"]) || CONFLICTS.iter().any(|word| walk.words(&[word])) {
        return Ok(());
    }
    Err(Unprovable::Form)
}

/// The table that is written.
struct Target<'a> {
    name: Name,
    table: &'a Table,
    /// Keys that indexes make.
    keys: &'a [Vec<Name>],
}

impl Target<'_> {
    fn scope(&self) -> Scope<'_> {
        Scope { table: Some(self.table), name: &self.name }
    }
}

fn target<'a>(walk: &mut Walk<'_, '_>, schema: &'a Schema) -> Result<Target<'a>, Unprovable> {
    let mut name = walk.name().ok_or(Unprovable::Form)?;
    if walk.byte(b'.') {
        if *name != *b"main" {
            return Err(Unprovable::OtherDatabase);
        }
        name = walk.name().ok_or(Unprovable::Form)?;
    }
    let (table, keys) = schema.table(&name)?;
    Ok(Target { name, table, keys })
}

/// From the table's name on: one row of values, and nothing behind it.
fn insert<'a>(mut walk: Walk<'_, '_>, schema: &'a Schema) -> Result<Target<'a>, Unprovable> {
    let target = target(&mut walk, schema)?;
    if walk.peek() == Some(Token::Byte(b'(')) {
        walk.braced().ok_or(Unprovable::Form)?;
    }
    if !walk.words(&["values"]) {
        return Err(Unprovable::Form);
    }
    let values = walk.braced().ok_or(Unprovable::Form)?;
    if !walk.is_at_end() {
        return Err(Unprovable::Form);
    }
    let scope = Scope { table: None, name: &target.name };
    for value in split(values, |token| token == Token::Byte(b',')) {
        expression::check(value, scope)?;
    }
    Ok(target)
}

/// From the table's name on: columns, and then the key.
fn update<'a>(mut walk: Walk<'_, '_>, schema: &'a Schema) -> Result<Target<'a>, Unprovable> {
    let target = target(&mut walk, schema)?;
    let scope = target.scope();
    if !walk.words(&["set"]) {
        return Err(Unprovable::Form);
    }
    let [changes, _] = split(walk.0, |token| token.is("where"))[..] else {
        return Err(Unprovable::Form);
    };
    for change in split(changes, |token| token == Token::Byte(b',')) {
        let mut change = Walk(change);
        let column = change.peek().ok_or(Unprovable::Form)?;
        let name = change.name().ok_or(Unprovable::Form)?;
        if !target.table.has(&name, column) || !change.byte(b'=') {
            return Err(Unprovable::Form);
        }
        expression::check(change.0, scope)?;
    }
    by_key(Walk(&walk.0[changes.len()..]), target)
}

/// `WHERE` and a condition that one row meets at most, and nothing behind it.
fn by_key<'a>(mut walk: Walk<'_, '_>, target: Target<'a>) -> Result<Target<'a>, Unprovable> {
    if !walk.words(&["where"]) {
        return Err(Unprovable::Form);
    }
    let [condition, ..] = split(walk.0, |token| token == Token::Byte(b';'))[..] else {
        return Err(Unprovable::Form);
    };
    if !Walk(&walk.0[condition.len()..]).is_at_end() {
        return Err(Unprovable::Form);
    }
    expression::check(condition, target.scope())?;
    let names = equated(condition, target.scope());
    if target.table.is_key(&names, target.keys) { Ok(target) } else { Err(Unprovable::Form) }
}
