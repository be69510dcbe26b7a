//! Files of a database that somebody has forged: sets that real sessions left, in which anything
//! may lie under right checksums. Each is opened through dash, read, checked, written and closed.
//! What it holds then nobody promises, as who can forge it can write the database, too. But no file
//! of others is touched, no statement is run that reaches further than rows, nothing crashes, and
//! it takes no more time and memory than `faults::numbered` allows.

mod canary;
mod change;
mod record;
mod set;
mod tools;

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

pub use tools::{ROLE as TOOLS, run as run_tools, worker as tools_worker};

use crate::again::{Again, Assignment};
use crate::faults::numbered::{self, Counts};
use crate::faults::part::GoOn;
use crate::faults::sql::said::Said;
use crate::random::Dice;
use crate::{Options, Summary, sqlite};
use canary::Canary;
use set::{FILES, Set};

/// The part's name, and its workers' role.
pub const ROLE: &str = "forged";

/// Who opens a forged set.
const VISITORS: [&str; 8] = [
    "",
    "",
    "&mode=ro",
    "&journal_mode=wal",
    "&journal_mode=statement&dash_commit=paper",
    "&dash_statements=on&dash_statement_text=full",
    "&dash_wal=memory",
    "&dash_rest=0",
];

/// How an error begins that tells of a statement which passed the judge and was stopped by the
/// authorizer behind it.
const BEYOND: &str = "asked for beyond the list";

/// What a worker needs for its cases.
struct Rig {
    sets: Vec<Set>,
    canary: Canary,
    folder: PathBuf,
    /// Of which dash says what it said last.
    asked: Connection,
}

impl Rig {
    fn new(assignment: &Assignment) -> Result<Self, String> {
        sqlite::load(&assignment.library)?;
        let parent = assignment.file.parent().ok_or("no folder")?;
        let folder = parent.join("cases");
        drop(fs::remove_dir_all(&folder));
        fs::create_dir(&folder).map_err(|error| error.to_string())?;
        let folders = tempfile::tempdir_in(parent).and_then(|it| Ok((it, tempfile::tempdir()?)));
        let (memory, disk) = folders.map_err(|error| error.to_string())?;
        let sets = set::sets(&[memory.path(), disk.path()])?;
        let canary = Canary::new(parent)?;
        let asked = Connection::open_in_memory().map_err(|error| error.to_string())?;
        Ok(Self { sets, canary, folder, asked })
    }

    /// Puts a forged set into a folder of its own; the database.
    fn set(&self, dice: &mut Dice) -> Result<PathBuf, String> {
        let folder = self.folder.join(dice.draw().to_string());
        let database = folder.join("app.db");
        let set = change::forged(&self.sets, dice, &self.canary.folder.to_string_lossy());
        fs::create_dir(&folder)
            .and_then(|()| set.put(&database))
            .map_err(|error| format!("putting files: {error}"))?;
        Ok(database)
    }

    /// Nothing but the database's own files was made or changed.
    fn check(&self, database: &Path) -> Result<(), String> {
        let folder = database.parent().unwrap_or(database);
        for entry in fs::read_dir(folder).map_err(|error| error.to_string())? {
            let name = entry.map_err(|error| error.to_string())?.file_name();
            let ending = name.to_str().and_then(|name| name.strip_prefix("app.db"));
            // `sqlite-dash recover` keeps what loses.
            let ending = ending.and_then(|ending| ending.split(".before-recover-").next());
            if !ending.is_some_and(|it| FILES.contains(&it) || it == "-journal") {
                return Err(format!("{name:?} was made beside the database"));
            }
        }
        fs::remove_dir_all(folder).map_err(|error| error.to_string())?;
        self.canary.check()
    }

    /// After somebody had a right to touch the canary.
    fn renew(&mut self) -> Result<(), String> {
        let parent = self.canary.folder.parent().ok_or("no folder")?;
        self.canary = Canary::new(parent)?;
        Ok(())
    }

    /// What dash said last, where that tells of what must not be.
    fn said(&self) -> Result<(), String> {
        let ask = "SELECT dash_last_error()";
        let said = self
            .asked
            .prepare_cached(ask)
            .and_then(|mut it| it.query_row([], |row| row.get::<_, Option<String>>(0)));
        match said {
            Ok(Some(said)) if said.contains(BEYOND) || said.contains("internal error") => Err(said),
            Ok(_) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Opens it, and does what programs do.
fn visit(path: &Path, dice: &mut Dice) -> rusqlite::Result<bool> {
    let parameters = VISITORS[dice.index(VISITORS.len())];
    let db = sqlite::open(path, parameters)?;
    db.busy_timeout(std::time::Duration::from_millis(5))?;
    db.query_row("SELECT count(*), sum(length(x)) FROM t", [], |_| Ok(()))?;
    let verdict = db.query_row("PRAGMA integrity_check(1)", [], |row| row.get::<_, String>(0))?;
    if parameters != "&mode=ro" {
        db.execute("UPDATE t SET v = 1 WHERE k = 1", [])?;
        if dice.one_in(2) {
            db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        }
    }
    db.close().map_err(|(_, error)| error)?;
    Ok(verdict == "ok")
}

fn case(rig: &Rig, dice: &mut Dice) -> Result<Counts, String> {
    let database = rig.set(dice)?;
    let seen = match visit(&database, dice) {
        Ok(true) => "opened",
        Ok(false) => "unsound",
        Err(error) => {
            let said = Said::of(&error);
            if said.is_panic() || said.message.contains(BEYOND) || said.dash.contains(BEYOND) {
                return Err(format!("{said:?}"));
            }
            "refused"
        }
    };
    rig.said()?;
    rig.check(&database)?;
    Ok(vec![("sets", 1), (seen, 1)])
}

/// The worker.
pub fn worker(assignment: &Assignment) -> Result<(), String> {
    numbered::worker(assignment, || {
        let rig = Rig::new(assignment)?;
        Ok(Box::new(move |dice| case(&rig, dice)))
    })
}

/// The part.
pub fn run(options: &Options, again: &Again, summary: &mut Summary, go_on: &mut GoOn<'_>) {
    numbered::run(ROLE, options, again, summary, go_on);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::part::case_folder;

    /// What a statement does that passes the judge is seen.
    #[test]
    fn a_file_that_a_statement_makes_is_seen() {
        let folder = case_folder(None).expect("a folder");
        let canary = Canary::new(folder.path()).expect("a canary");
        assert_eq!(canary.check(), Ok(()));
        let db = Connection::open_in_memory().expect("SQLite");
        let copy = format!("VACUUM INTO '{}/copy.db'", canary.folder.display());
        db.execute_batch(&copy).expect("runs");
        assert!(canary.check().expect_err("a file").contains("copy.db"));
    }
}
