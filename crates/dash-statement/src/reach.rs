//! What a statement may do in the `sqlite3` shell beyond the database: the shell has functions that
//! run programs and write files, and modules whose tables are files. No honest log needs them.

use crate::provable::tokens::{Token, tokens};

/// Functions of the shell, of its extensions and of SQLite that reach beyond the database.
const FUNCTIONS: [&str; 12] = [
    "edit",
    "eval",
    "fsdir",
    "fts3_tokenizer",
    "load_extension",
    "lsmode",
    "readfile",
    "shell_putsnl",
    "sqlite_log",
    "system",
    "writefile",
    "zipfile",
];

/// Modules of virtual tables that keep what they have in the database's own tables.
pub const MODULES: [&str; 6] = ["fts3", "fts4", "fts5", "rtree", "rtree_i32", "geopoly"];

/// Whether a statement calls such a function, or makes a table of another module.
pub fn reaches_out(sql: &[u8]) -> bool {
    let all = tokens(sql);
    let is = |at: usize, list: &[&str]| {
        let name = all.get(at).filter(|token| !token.is_text()).and_then(|token| token.name());
        name.is_some_and(|name| list.iter().any(|it| it.as_bytes() == &name[..]))
    };
    let calls =
        |at: usize| matches!(all.get(at + 1), Some(Token::Byte(b'('))) && is(at, &FUNCTIONS);
    let makes = |at: usize| {
        all[at].is("virtual") && {
            let using = all[at..].iter().position(|token| token.is("using"));
            using.is_none_or(|using| !is(at + using + 1, &MODULES))
        }
    };
    (0..all.len()).any(|at| calls(at) || (at == 1 && makes(at)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SEC S2-2
    #[test]
    fn what_runs_programs_or_writes_files_is_told() {
        for (sql, reaches) in [
            ("SELECT load_extension('x')", true),
            ("SELECT \"Edit\" /* a */ ('x', 'touch y')", true),
            ("INSERT INTO t VALUES ([writefile]('x', 1))", true),
            ("CREATE VIRTUAL TABLE z USING zipfile('x')", true),
            ("CREATE VIRTUAL TABLE z USING fts5(a)", false),
            ("CREATE TABLE edit(a)", true),
            ("SELECT edit, 'writefile(' FROM t", false),
            ("INSERT INTO t VALUES (abs(1))", false),
        ] {
            assert_eq!(reaches_out(sql.as_bytes()), reaches, "{sql}");
        }
    }
}
