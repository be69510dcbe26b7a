//! What a database's schema says of its tables.

use std::collections::{HashMap, HashSet};

use super::index;
use super::table::Table;
use super::tokens::{Name, Walk, tokens};
use super::unprovable::Unprovable;

/// Keys and indexes that a table may have: SQLite makes an entry for each, with copies of its
/// columns, before it writes the first.
const INDEXES: usize = 16;

/// See the module. It is made of the rows of `sqlite_schema`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Schema {
    tables: HashMap<Name, Result<Table, Unprovable>>,
    /// What is said of a table in rows of their own, which may come before it.
    keys: HashMap<Name, Vec<Vec<Name>>>,
    refused: HashMap<Name, Unprovable>,
    /// How many keys and indexes a table has.
    indexes: HashMap<Name, usize>,
    /// Tables that others have foreign keys to.
    referred: HashSet<Name>,
    /// Virtual tables, of which other tables may be a part.
    modules: Vec<Name>,
    is_other_encoding: bool,
    is_unreadable: bool,
    /// It has `auto_vacuum`: a transaction may have made more pages than it leaves, as many as its
    /// connection's cache holds. FULL and INCREMENTAL are one, as anybody may change that.
    pub(super) is_cut: bool,
}

impl Schema {
    /// The text encoding is not UTF-8.
    pub fn is_not_utf8(&mut self) {
        self.is_other_encoding = true;
    }

    /// One of which nothing is known.
    #[must_use]
    pub fn unreadable() -> Self {
        Self { is_unreadable: true, ..Self::default() }
    }

    /// A row: the columns `type`, `tbl_name` and `sql`, which an index that SQLite made itself has
    /// none of.
    pub fn add(&mut self, kind: &[u8], table: &[u8], sql: Option<&[u8]>) {
        let name = Name::from(table.to_ascii_lowercase());
        let Some(sql) = sql else { return };
        let definition = tokens(sql);
        match kind {
            b"table" => {
                let mut walk = Walk(&definition);
                while walk.peek().is_some() {
                    if walk.words(&["references"]) {
                        self.referred.extend(walk.name());
                    } else {
                        walk.take();
                    }
                }
                if Walk(&definition).words(&["create", "virtual"]) {
                    self.modules.push(name.clone());
                }
                let table = Table::read(&definition);
                *self.indexes.entry(name.clone()).or_default() +=
                    table.as_ref().map_or(0, Table::keys);
                self.tables.insert(name, table);
            }
            b"index" => {
                *self.indexes.entry(name.clone()).or_default() += 1;
                match index::read(&definition) {
                    Ok(Some(key)) => self.keys.entry(name).or_default().push(key),
                    Ok(None) => {}
                    Err(reason) => drop(self.refused.insert(name, reason)),
                }
            }
            b"trigger" => drop(self.refused.insert(name, Unprovable::Trigger)),
            _ => {}
        }
    }

    /// A table that statements may write, and the keys that indexes make.
    ///
    /// # Errors
    ///
    /// Why they may not.
    pub fn table(&self, name: &[u8]) -> Result<(&Table, &[Vec<Name>]), Unprovable> {
        if self.is_other_encoding {
            return Err(Unprovable::Encoding);
        }
        if self.is_unreadable || name.starts_with(b"sqlite_") || self.is_shadow(name) {
            return Err(Unprovable::Table);
        }
        let table = self.tables.get(name).ok_or(Unprovable::Table)?.as_ref().map_err(|it| *it)?;
        if let Some(reason) = self.refused.get(name) {
            return Err(*reason);
        }
        if self.indexes.get(name).is_some_and(|count| *count > INDEXES) {
            return Err(Unprovable::Table);
        }
        if self.referred.contains(name) {
            return Err(Unprovable::ForeignKey);
        }
        Ok((table, self.keys.get(name).map_or(&[], |keys| &keys[..])))
    }

    /// Whether a virtual table may keep something in it (SQLite's "shadow tables"): not each
    /// connection may write that.
    fn is_shadow(&self, name: &[u8]) -> bool {
        let is_of = |module: &Name| name.strip_prefix(&**module).is_some_and(|it| it[0] == b'_');
        self.modules.iter().any(|module| name.len() > module.len() && is_of(module))
    }
}
