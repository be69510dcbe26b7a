//! What a statement that writes makes of its connection, for as long as that is open. Whatever may
//! be so counts: the statement may fail, or be rolled back.

use crate::token::{Kind, token};

/// The tables of the schema, and how all of them begin.
const SCHEMAS: [&[u8]; 4] =
    [b"sqlite_master", b"sqlite_schema", b"sqlite_temp_master", b"sqlite_temp_schema"];
const SQLITES: &[u8] = b"sqlite_";

/// Whether it may write the table of the schema by hand.
#[must_use]
pub fn writes_schema(sql: &[u8]) -> bool {
    !begins_with(sql, b"create") && mentions_schema(sql)
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
