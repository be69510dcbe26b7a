//! Why a transaction does not provably replay.

/// A reason. The first one that is found is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unprovable {
    /// More was done than is recorded, or it may have been.
    Incomplete,
    /// `ROLLBACK TO`.
    RolledBack,
    /// A statement of another form, or one that is too large.
    Form,
    /// Another database is named, or there is one.
    OtherDatabase,
    /// The connection may have temporary tables.
    Temporary,
    /// The connection took no long values, wrote real numbers otherwise, or was told how to delete.
    Settings,
    /// A statement is not known to have changed a row.
    Unconfirmed,
    /// No ordinary table, or one whose definition is not understood.
    Table,
    /// A trigger.
    Trigger,
    /// A foreign key, of the table or to it.
    ForeignKey,
    /// A function or the clock.
    Function,
    /// A collation.
    Collation,
    /// An expression in the schema.
    Expression,
    /// UTF-16.
    Encoding,
    /// Several statements, in a database with `auto_vacuum`.
    Vacuum,
}

impl Unprovable {
    /// All of them.
    pub const ALL: [Self; 15] = [
        Self::Incomplete,
        Self::RolledBack,
        Self::Form,
        Self::OtherDatabase,
        Self::Temporary,
        Self::Settings,
        Self::Unconfirmed,
        Self::Table,
        Self::Trigger,
        Self::ForeignKey,
        Self::Function,
        Self::Collation,
        Self::Expression,
        Self::Encoding,
        Self::Vacuum,
    ];

    /// Its name in statistics and JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Incomplete => "incomplete",
            Self::RolledBack => "rolled_back",
            Self::Form => "form",
            Self::OtherDatabase => "other_database",
            Self::Temporary => "temporary",
            Self::Settings => "settings",
            Self::Unconfirmed => "unconfirmed",
            Self::Table => "table",
            Self::Trigger => "trigger",
            Self::ForeignKey => "foreign_key",
            Self::Function => "function",
            Self::Collation => "collation",
            Self::Expression => "expression",
            Self::Encoding => "encoding",
            Self::Vacuum => "auto_vacuum",
        }
    }

    /// What it says to people.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Incomplete => "not all that matters is recorded of the transaction",
            Self::RolledBack => "a part of the transaction was rolled back to a savepoint",
            Self::Form => {
                "a statement is neither an INSERT of one row of values, nor an UPDATE or a DELETE of one row by its key, or it is \
                 too large"
            }
            Self::OtherDatabase => {
                "a statement names another database than main, or its connection had one attached"
            }
            Self::Temporary => {
                "its connection may have had temporary tables, views or triggers, which come before others"
            }
            Self::Settings => {
                "its connection was not set as SQLite is as a rule: SQLITE_LIMIT_LENGTH, SQLITE_DBCONFIG_FP_DIGITS, or PRAGMA secure_delete"
            }
            Self::Unconfirmed => {
                "a statement within a transaction failed or changed no row, and may change one when it is run again"
            }
            Self::Table => {
                "a statement writes no ordinary table, or one whose definition dash can't read or whose indexes are many, or the schema was written by hand"
            }
            Self::Trigger => {
                "a table that is written has a trigger, or a statement ran another one inside"
            }
            Self::ForeignKey => {
                "a table that is written has a foreign key, or another table has one to it"
            }
            Self::Function => "a statement calls a function, or asks the clock",
            Self::Collation => {
                "a statement, a table or an index names a collation, which a program may replace"
            }
            Self::Expression => {
                "a table that is written has an expression in its definition: CHECK, DEFAULT, a generated column, or an index"
            }
            Self::Encoding => "the database is not in UTF-8",
            Self::Vacuum => {
                "a transaction has several statements, and the database has auto_vacuum, which may throw away pages that they made"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_reason_has_a_name_and_a_sentence_of_its_own() {
        let all = Unprovable::ALL;
        let names: BTreeSet<_> = all.iter().map(|it| it.name()).collect();
        let sentences: BTreeSet<_> = all.iter().map(|it| it.sentence()).collect();
        assert_eq!((names.len(), sentences.len()), (all.len(), all.len()));
    }
}
