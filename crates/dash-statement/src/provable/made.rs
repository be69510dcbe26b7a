//! What a statement that writes makes of its connection, for as long as that is open. Whatever may
//! be so counts: the statement may fail, or be rolled back.

use crate::context::{Circumstance, Context};
use crate::token::{Kind, token};

use super::tokens::{Name, Token, tokens};

/// The tables of the schema, and how all of them begin.
const SCHEMAS: [&[u8]; 4] =
    [b"sqlite_master", b"sqlite_schema", b"sqlite_temp_master", b"sqlite_temp_schema"];
const SQLITES: &[u8] = b"sqlite_";
/// SQLite takes it for a blank, wherever it stands.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// See the module.
#[must_use]
pub fn circumstances(sql: &[u8]) -> Context {
    let mut made = Context::default();
    if sql.contains(&BYTE_ORDER_MARK[0]) && sql.windows(3).any(|bytes| bytes == BYTE_ORDER_MARK) {
        made.add(Circumstance::Temporary);
        made.add(Circumstance::SchemaWritten);
    } else if begins_with(sql, b"create") {
        if makes_temporary(&tokens(sql)) {
            made.add(Circumstance::Temporary);
        }
    } else if mentions_schema(sql) {
        made.add(Circumstance::SchemaWritten);
    }
    made
}

fn begins_with(sql: &[u8], keyword: &[u8]) -> bool {
    let mut rest = sql;
    while let Some((kind, length)) = token(rest) {
        let (text, behind) = rest.split_at(length);
        if kind == Kind::Word {
            return text.eq_ignore_ascii_case(keyword);
        }
        rest = behind;
    }
    false
}

fn makes_temporary(tokens: &[Token<'_>]) -> bool {
    let named = |token: &Token<'_>| {
        let name: Option<Name> = token.name();
        name.is_some_and(|name| *name == *b"temp")
    };
    tokens.get(1).is_some_and(|token| token.is_any(&["temp", "temporary"]))
        || tokens.windows(2).any(|pair| named(&pair[0]) && pair[1] == Token::Byte(b'.'))
}

/// In one pass, as texts may be long.
fn mentions_schema(sql: &[u8]) -> bool {
    let begins = |bytes: &[u8], name: &[u8]| {
        bytes.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name))
    };
    sql.iter().enumerate().filter(|(_, byte)| **byte | 0x20 == b's').any(|(at, _)| {
        let rest = &sql[at..];
        begins(rest, SQLITES) && SCHEMAS.iter().any(|name| begins(rest, name))
    })
}
