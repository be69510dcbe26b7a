//! What the SQL of a log may do, as SQLite asks for it. A log may come from anybody: what it has
//! run again reads and writes one database, and has no other effect.
//!
//! SQLite tells an authorizer a name only where it is known before the statement runs: so what is
//! denied is denied whatever its name, and what is not known here is denied, too.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dash_statement::MODULES;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};

/// SQLite's own functions that compute something and do nothing else; those by which ALTER TABLE
/// works, which no other statement can call; and those of full-text and spatial indexes. A test
/// compares them with the SQLite that is linked.
const FUNCTIONS: &str = "-> ->> abs avg bm25 changes char coalesce concat concat_ws count cume_dist current_date current_time \
    current_timestamp date datetime dense_rank first_value format fts5_get_locale fts5_insttoken fts5_locale glob group_concat \
    hex highlight if ifnull iif instr json json_array json_array_insert json_array_length json_error_position json_extract \
    json_group_array json_group_object json_insert json_object json_patch json_pretty json_quote json_remove json_replace \
    json_set json_type json_valid jsonb jsonb_array jsonb_array_insert jsonb_extract jsonb_group_array jsonb_group_object \
    jsonb_insert jsonb_object jsonb_patch jsonb_remove jsonb_replace jsonb_set julianday lag last_insert_rowid last_value lead \
    length like likelihood likely lower ltrim match matchinfo max min nth_value ntile nullif octet_length offsets optimize \
    percent_rank printf quote random randomblob rank replace round row_number rtreecheck rtreedepth rtreenode rtrim sign snippet \
    soundex sqlite_add_constraint sqlite_compileoption_get sqlite_compileoption_used sqlite_drop_column sqlite_drop_constraint \
    sqlite_fail sqlite_find_constraint sqlite_rename_column sqlite_rename_quotefix sqlite_rename_table sqlite_rename_test \
    sqlite_source_id sqlite_version strftime string_agg substr substring subtype sum time timediff total total_changes trim \
    typeof unhex unicode unistr unistr_quote unixepoch unlikely upper zeroblob";

/// Modules of virtual tables that show what such tables have, beside those that keep it.
const SHOWING: [&str; 3] = ["fts3tokenize", "fts4aux", "fts5vocab"];

/// PRAGMAs that write the database, and so are in a log.
const WRITING: [&str; 6] = [
    "application_id",
    "auto_vacuum",
    "default_cache_size",
    "incremental_vacuum",
    "schema_version",
    "user_version",
];

/// Those that are asked without a value: by virtual tables, and by programs in a transaction that
/// writes, where SQLite does not call the last one a mere query.
const ASKED: [&str; 3] = ["data_version", "page_size", "journal_mode"];

/// Whose SQL it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Whose {
    /// This crate's own, around the steps.
    #[default]
    Ours,
    /// A step's.
    Step,
    /// A step's that is a VACUUM of the database: SQLite attaches a temporary file, which has no
    /// name, and copies everything into it and back.
    Vacuum,
}

/// What was asked for.
#[derive(Debug, Default)]
struct Asked {
    whose: Whose,
    denied: Option<String>,
}

/// See the module.
#[derive(Debug, Clone, Default)]
pub struct Authorizer(Arc<Mutex<Asked>>);

impl Authorizer {
    /// What SQLite is to ask.
    pub fn hook(&self) -> impl FnMut(AuthContext<'_>) -> Authorization + Send + 'static {
        let asked = Arc::clone(&self.0);
        move |context| {
            let mut asked = lock(&asked);
            match denied(&context, asked.whose) {
                None => Authorization::Allow,
                Some(what) => {
                    asked.denied.get_or_insert(what);
                    Authorization::Deny
                }
            }
        }
    }

    /// What follows is this one's, until it is said otherwise.
    pub fn is_turn_of(&self, whose: Whose) {
        let mut asked = lock(&self.0);
        (asked.whose, asked.denied) = (whose, None);
    }

    /// What was denied since then.
    pub fn denied(&self) -> Option<String> {
        lock(&self.0).denied.clone()
    }
}

fn lock(asked: &Mutex<Asked>) -> MutexGuard<'_, Asked> {
    asked.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is asked for, if it may not be.
fn denied(context: &AuthContext<'_>, whose: Whose) -> Option<String> {
    let schema = match context.action {
        AuthAction::AlterTable { database_name, .. } => Some(database_name),
        _ => context.database_name,
    };
    if let Some(schema) = schema.filter(|schema| !is_inside(schema, whose)) {
        return Some(format!("the database {schema}"));
    }
    match context.action {
        AuthAction::Select
        | AuthAction::Recursive
        | AuthAction::Read { .. }
        | AuthAction::Insert { .. }
        | AuthAction::Update { .. }
        | AuthAction::Delete { .. }
        | AuthAction::CreateTable { .. }
        | AuthAction::CreateIndex { .. }
        | AuthAction::CreateView { .. }
        | AuthAction::CreateTrigger { .. }
        | AuthAction::CreateTempTable { .. }
        | AuthAction::CreateTempIndex { .. }
        | AuthAction::CreateTempView { .. }
        | AuthAction::CreateTempTrigger { .. }
        | AuthAction::DropTable { .. }
        | AuthAction::DropIndex { .. }
        | AuthAction::DropView { .. }
        | AuthAction::DropTrigger { .. }
        | AuthAction::DropTempTable { .. }
        | AuthAction::DropTempIndex { .. }
        | AuthAction::DropTempView { .. }
        | AuthAction::DropTempTrigger { .. }
        | AuthAction::AlterTable { .. }
        | AuthAction::Analyze { .. }
        | AuthAction::Reindex { .. }
        | AuthAction::Savepoint { .. } => None,
        AuthAction::Transaction { .. } => {
            (whose == Whose::Step).then(|| "BEGIN, COMMIT or ROLLBACK".to_owned())
        }
        AuthAction::CreateVtable { module_name, .. }
        | AuthAction::DropVtable { module_name, .. } => {
            let is_known =
                MODULES.iter().chain(&SHOWING).any(|it| it.eq_ignore_ascii_case(module_name));
            (!is_known).then(|| format!("a virtual table of {module_name}"))
        }
        AuthAction::Function { function_name } => {
            let mut known = FUNCTIONS.split_ascii_whitespace();
            let is_known = known.any(|known| known.eq_ignore_ascii_case(function_name));
            (!is_known).then(|| format!("the function {function_name}()"))
        }
        AuthAction::Pragma { pragma_name, pragma_value } => {
            let is = |names: &[&str]| names.iter().any(|it| it.eq_ignore_ascii_case(pragma_name));
            let is_known = is(&WRITING) || (is(&ASKED) && pragma_value.is_none());
            (!is_known).then(|| format!("PRAGMA {pragma_name}"))
        }
        AuthAction::Attach { filename: "" } if whose == Whose::Vacuum => None,
        AuthAction::Attach { .. } => Some("ATTACH".to_owned()),
        AuthAction::Detach { .. } => Some("DETACH".to_owned()),
        AuthAction::Unknown { code: rusqlite::ffi::SQLITE_ATTACH, .. } => Some("ATTACH".to_owned()),
        AuthAction::Unknown { code: rusqlite::ffi::SQLITE_DETACH, .. } => Some("DETACH".to_owned()),
        _ => Some("what is not known here".to_owned()),
    }
}

/// Whether a database is the copy, its temporary one, or the one that VACUUM attaches: `vacuum_db`,
/// and since 3.44 `vacuum_` with a random number.
fn is_inside(schema: &str, whose: Whose) -> bool {
    matches!(schema, "main" | "temp") || (whose == Whose::Vacuum && schema.starts_with("vacuum_"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::collections::BTreeSet;

    use super::*;
    use rusqlite::Connection;

    /// SQLite's own that do more than compute: they load code, take a pointer, write to the host's
    /// log.
    const DANGEROUS: [&str; 5] =
        ["fts3_tokenizer", "fts5", "fts5_source_id", "load_extension", "sqlite_log"];

    #[test]
    fn every_function_of_this_sqlite_is_decided() {
        let db = Connection::open_in_memory().unwrap();
        let mut prepared = db.prepare("SELECT name FROM pragma_function_list").unwrap();
        let names = prepared.query_map([], |row| row.get::<_, String>(0)).unwrap();
        let known: BTreeSet<_> = FUNCTIONS.split_ascii_whitespace().chain(DANGEROUS).collect();
        let undecided: BTreeSet<_> = names
            .map(Result::unwrap)
            .filter(|name| !known.contains(&name[..]) && !name.starts_with("dash_"))
            .collect();
        assert!(undecided.is_empty(), "{undecided:?}");
        assert!(
            DANGEROUS.iter().all(|name| !FUNCTIONS.split_ascii_whitespace().any(|it| it == *name))
        );
    }
}
