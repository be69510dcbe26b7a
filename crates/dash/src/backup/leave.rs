//! What SQL alone may have `dash_backup()` do, and what takes the program's leave. A SELECT that
//! somebody got into a program's SQL calls functions, too; no other of SQLite's own makes a file.
//!
//! | | SQL alone | with `dash_backup=on` in the URI |
//! |---|---|---|
//! | a new file in the folder of the database | yes | yes |
//! | one in another folder; of a database without a folder, as in memory | no | yes |
//! | `'replace'`: an SQLite database, or an empty file | no | yes |
//! | any other file that is there | no | no |
//! | on a connection that may only read (`query_only`, `mode=ro`) | no | yes |
//!
//! The parameter is that of `main`: who may say ATTACH would give himself the leave.

use std::path::Path;

use dash_ffi::{Code, ConnectionRef, Error, Result};

use crate::mode;

/// What a call may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leave {
    /// The program's.
    Program,
    /// SQL alone.
    Sql,
}

/// How the program gives its leave.
const HOW: &str =
    "open the database with dash_backup=on in its URI, or use the program `sqlite-dash backup`";

fn refused(why: &str) -> Error {
    Error::new(Code::READONLY, format!("dash_backup: {why}: {HOW}"))
}

impl Leave {
    /// That of a call on this connection.
    ///
    /// # Errors
    ///
    /// `SQLITE_READONLY`, with what to do, where SQL alone may not even make a new file, or is to
    /// replace one.
    pub fn of(connection: &ConnectionRef<'_>, schema: &str, replace: bool) -> Result<Self> {
        if !connection.is_stated("dash_backup") {
            // SQLite before 3.41 or so lets a CHECK constraint call what only SQL may state.
            let why = "dash_backup: only a SELECT of the program may call it, no schema";
            return Err(Error::new(Code::READONLY, why));
        }
        let said = connection.uri_parameter("main", mode::BACKUP);
        if said.is_some_and(|said| said.eq_ignore_ascii_case(mode::ON)) {
            return Ok(Self::Program);
        }
        if connection.pragma("main", "query_only").as_deref() != Some("0") {
            return Err(refused("with PRAGMA query_only no file is made"));
        }
        if connection.path(schema).is_none_or(|path| path.as_os_str().is_empty()) {
            let why = format!(
                "{schema} is no file of this connection: there is no such schema, or it is in memory or temporary, and its copy \
                 takes the program's leave"
            );
            return Err(refused(&why));
        }
        if connection.is_read_only("main") || connection.is_read_only(schema) {
            return Err(refused("on a connection that may only read no file is made"));
        }
        if replace {
            return Err(refused("replacing a file takes the program's leave"));
        }
        Ok(Self::Sql)
    }

    /// That a file may be made in this folder: by SQL alone, only in that of the database.
    ///
    /// # Errors
    ///
    /// `SQLITE_READONLY`, with what to do; those of `is_own`.
    pub fn allows(self, folder: &Path, is_own: impl FnOnce() -> Result<bool>) -> Result<()> {
        if self == Self::Program || is_own()? {
            return Ok(());
        }
        let folder = folder.display();
        Err(refused(&format!(
            "{folder} is not the folder of the database, or that has another name (a hard link), and making a file there takes the program's leave"
        )))
    }
}
