//! What the loaded extension keeps beside a database in mode `shadow`.

use std::path::Path;

use dash_storage::real::Real;

use crate::engine::Loaded;

/// The files.
pub struct Files;

impl Loaded for Files {
    fn beside(&self) -> &'static [&'static str] {
        &["-shadow"]
    }

    fn may_be_left(&self) -> &'static [&'static str] {
        &["-shadow", "-journal", "-shadow-tmp"]
    }

    fn needs_recovery(&self, database: &Path) -> Result<bool, String> {
        let seen = dash_shadow::inspect(&Real, database)
            .map_err(|error| format!("inspecting what was left: {error}"))?;
        let beside = &seen.beside;
        Ok(beside.fence
            || beside.coordination
            || beside.renaming
            || beside.journal.is_some_and(|len| len > 0))
    }

    fn choice(&self) -> Option<&'static str> {
        Some("sqlite-dash recover")
    }

    fn rests_beside_readers(&self) -> bool {
        true
    }

    fn shows_failed_commits(&self) -> bool {
        false
    }

    fn commits_flush_the_database(&self) -> bool {
        true
    }

    // In the shadow, while a name fence stands.
    fn has_copy_of(&self, _ending: &str, database: &Path) -> bool {
        dash_shadow::inspect(&Real, database).is_ok_and(|seen| seen.beside.fence)
    }

    fn reads_without_writing(&self) -> bool {
        true
    }
}
