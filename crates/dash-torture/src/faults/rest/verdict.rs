//! What must hold of a database that was to come to rest while calls failed.

use std::os::unix::process::ExitStatusExt;

use rusqlite::ffi;

use super::case::{Case, Ended};
use super::story::Story;
use crate::faults::sql::stage::{Stage, sound_state};
use crate::faults::sql::verdict::sound_again;
use crate::sqlite::{self, FORGOTTEN, Wrong};

/// Judges what a process has said and left.
///
/// # Errors
///
/// What must never happen.
pub fn judge(case: &Case, stage: &mut Stage, ended: &Ended, met: &[&str]) -> Result<(), String> {
    let as_it_should = match case.story {
        Story::Exit => ended.status.success(),
        Story::Idle | Story::Killed => ended.status.signal() == Some(libc::SIGKILL),
    };
    if !as_it_should {
        return Err(format!("a worker ended with {}: {}", ended.status, ended.errors.trim()));
    }
    if stage.is_fenced() && met.is_empty() {
        return Err("it does not come to rest, though nothing failed".into());
    }
    if case.story == Story::Idle && ended.lines("rests").next().is_none() {
        let why = ended.lines("waits").next().unwrap_or_default();
        let is_said = ["os error", "not known"].iter().any(|word| why.contains(word));
        if !is_said || why.contains(FORGOTTEN) {
            return Err(format!("it neither comes to rest later nor says why: {why}"));
        }
    }
    seen_by_stock(stage)?;
    sound_again(stage)
}

/// Stock SQLite finds the newest commit and makes another one, unless it is kept out.
fn seen_by_stock(stage: &mut Stage) -> Result<(), String> {
    let is_fenced = stage.is_fenced();
    let stock =
        sqlite::open_stock(&stage.path).map_err(|error| format!("stock: opening: {error}"))?;
    match sound_state(&stock) {
        Ok(seen) if (stage.acknowledged..=stage.begun).contains(&seen) => {}
        Ok(seen) => {
            let Stage { acknowledged, begun, .. } = stage;
            return Err(format!(
                "stock sees commit {seen}, of {acknowledged} acknowledged and {begun} begun"
            ));
        }
        Err(Wrong::Sql(error)) if is_fenced && primary(&error) != ffi::SQLITE_CORRUPT => {
            return Ok(());
        }
        Err(other) => return Err(format!("at rest stock finds {other:?}")),
    }
    if is_fenced {
        return Ok(());
    }
    stage.db = Some(stock);
    let wrote = stage.commit(100).and_then(|()| stage.close());
    wrote.map_err(|error| format!("at rest stock can't write: {error}"))
}

fn primary(error: &rusqlite::Error) -> i32 {
    sqlite::code(error) & 0xff
}
