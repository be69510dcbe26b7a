//! Looks at one image: mounts it, so that the kernel replays its journal; reads it with stock
//! SQLite, which may be refused but must never see a mix of two states; opens it as its engine
//! does, which must find an allowed state; commits once more; closes it, and reads at rest what was
//! committed.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::database::{self, Opened, explained};
use super::journal::{self, Nonce};
use super::kind::Kind;
use super::ledger::{Allowed, State};
use super::rig::{Loop, Rig};
use super::visit::{Visit, Visited};

/// What must not be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wrong {
    /// An acknowledged commit is missing; the rest is sound.
    Lost(String),
    /// Anything else: damage, a mix of states, a refusal, a file system that doesn't mount.
    Broken(String),
}

/// A look at a database, as opened by an engine.
#[derive(Debug, Clone, Copy)]
pub struct Look<'a> {
    /// The file system.
    pub kind: Kind,
    /// How the databases are opened.
    pub opened: Opened,
    /// Whether there are two.
    pub is_attached: bool,
    /// What may be found.
    pub allowed: &'a Allowed,
    /// The visitor that comes first.
    pub visit: Visit,
    /// The journals that began between the last flush and the power cut.
    pub begun: &'a [Nonce],
}

/// After a good look.
#[derive(Debug, Clone)]
pub struct Checked {
    /// The state that the further commit made.
    pub after: State,
    /// The position in the log at which it was acknowledged.
    pub acknowledged: u64,
    /// What might have been found before it, and when the visitor had gone.
    pub visited: Visited,
}

const FURTHER: &str = "CREATE TABLE IF NOT EXISTS $.after(n INT); INSERT INTO $.after VALUES (1);";

impl Look<'_> {
    /// At the image on the device.
    pub fn at(&self, rig: &Rig, device: &Loop) -> Result<Checked, Wrong> {
        let broken = |what: &str, error: std::io::Error| Wrong::Broken(format!("{what}: {error}"));
        device.forget().map_err(|error| broken("dropping caches", error))?;
        let lost = device.check(self.kind).map_err(|error| broken("putting it in order", error))?;
        let mounted = device
            .mount(self.kind, &rig.point(), "")
            .map_err(|error| broken("the file system doesn't mount", error))?;
        let db = mounted.point().join("app.db");
        let has_lost = |name: &str| {
            let path = db.with_file_name(name);
            let loaded = self.opened.loaded();
            ["", "-wal"].into_iter().any(|ending| {
                let file = db.with_file_name(format!("{name}{ending}"));
                file.metadata().is_ok_and(|found| lost.contains(&found.ino()))
                    && !loaded.is_some_and(|loaded| loaded.has_copy_of(ending, &path))
            })
        };
        let is_lost = has_lost("app.db") || has_lost("aux.db");
        // A journal's old content, on a file system where that may come back.
        let is_stale = self.kind.shows_old_blocks()
            && ["app.db", "aux.db"]
                .iter()
                .any(|name| journal::is_of_before(&mounted.point().join(name), self.begun));
        let checked = match is_lost || is_stale {
            // Lost: nobody but dash keeps another copy, and that not always.
            true => Ok(self.unasked(Visited::of_nobody(self.allowed))),
            false => self.inside(rig, mounted.point()),
        };
        let unmounted = mounted.unmount();
        let checked = checked?;
        unmounted.map_err(|error| broken("unmounting", error))?;
        Ok(checked)
    }

    /// At a mounted file system.
    pub fn inside(&self, rig: &Rig, folder: &Path) -> Result<Checked, Wrong> {
        let visited = match self.opened {
            Opened::Dash(..) | Opened::Guests(_) => self.visit.make(self, rig, folder)?,
            Opened::Stock(..) => Visited::of_nobody(self.allowed),
        };
        let (after, acknowledged) = match self.opened_again(rig, folder, &visited.allowed) {
            Err(Wrong::Broken(what))
                if visited.is_users_choice
                    && self.opened.choice().is_some_and(|words| what.contains(words)) =>
            {
                return Ok(self.unasked(visited));
            }
            other => other?,
        };
        for (name, content) in [("app.db", after.0), ("aux.db", after.1)] {
            if name == "app.db" || self.is_attached {
                let at_rest =
                    |error| Wrong::Broken(format!("stock SQLite at rest, {name}: {error}"));
                let db = database::read_only(&folder.join(name)).map_err(at_rest)?;
                if database::content(&db, "main").map_err(at_rest)? != content {
                    let what = format!("stock SQLite at rest finds other rows in {name}");
                    return Err(Wrong::Broken(what));
                }
                drop(db);
                if matches!(self.opened, Opened::Guests(_)) {
                    rusqlite::Connection::open(folder.join(name))
                        .and_then(|db| {
                            db.execute_batch("BEGIN IMMEDIATE; PRAGMA user_version = 7; ROLLBACK")
                        })
                        .map_err(at_rest)?;
                }
            }
        }
        Ok(Checked { after, acknowledged, visited })
    }

    /// Of an image of which nothing more is to be asked.
    fn unasked(&self, visited: Visited) -> Checked {
        Checked { after: self.allowed.now[0], acknowledged: u64::MAX, visited }
    }

    fn opened_again(
        &self,
        rig: &Rig,
        folder: &Path,
        allowed: &Allowed,
    ) -> Result<(State, u64), Wrong> {
        let failed = |what: &'static str| {
            move |error: rusqlite::Error| Wrong::Broken(format!("{what}: {}", explained(&error)))
        };
        let attached = self.is_attached;
        let db = self.opened.open(folder, attached, &[]).map_err(failed("opening"))?;
        let found = database::state(&db, attached).map_err(failed("reading"))?;
        let databases = if attached { &["main", "aux"][..] } else { &["main"] };
        for database in databases {
            if let Some(damage) = database::damage(&db, database).map_err(failed("checking"))? {
                return Err(Wrong::Broken(format!("integrity_check of {database}: {damage}")));
            }
        }
        if !self.is_allowed(allowed, &found) {
            return Err(self.not_allowed(allowed, &found));
        }
        let further: String =
            databases.iter().map(|database| FURTHER.replace('$', database)).collect();
        db.execute_batch(&format!("BEGIN IMMEDIATE; {further} COMMIT"))
            .map_err(failed("a further commit"))?;
        let acknowledged = rig.log.position().map_err(|error| Wrong::Broken(error.to_string()))?;
        let after = database::state(&db, attached).map_err(failed("reading again"))?;
        if after == found {
            return Err(Wrong::Broken("the further commit changed nothing".to_owned()));
        }
        db.close().map_err(|(_, error)| failed("closing")(error))?;
        if let Some(loaded) = self.opened.loaded()
            && loaded.needs_recovery(&folder.join("app.db")).map_err(Wrong::Broken)?
        {
            let what = "the database was closed, and is not at rest";
            return Err(Wrong::Broken(what.to_owned()));
        }
        Ok((after, acknowledged))
    }

    fn is_allowed(&self, allowed: &Allowed, found: &State) -> bool {
        let is_one = |of: fn(&State) -> u64| allowed.now.iter().any(|state| of(state) == of(found));
        allowed.now.contains(found)
            || (self.is_attached
                && self.opened.engine().is_some()
                && !self.opened.joins_databases()
                && is_one(|state| state.0)
                && is_one(|state| state.1))
    }

    fn not_allowed(&self, allowed: &Allowed, found: &State) -> Wrong {
        match allowed.lost.iter().rposition(|state| state == found) {
            Some(place) => Wrong::Lost(format!(
                "the newest commit found is number {place}, and number {} was acknowledged",
                allowed.lost.len()
            )),
            // Journals of several databases don't lose their ends together.
            None if !self.opened.joins_databases()
                && allowed.was_ever(found.0, |state| state.0)
                && allowed.was_ever(found.1, |state| state.1) =>
            {
                Wrong::Lost("each database is at a commit, but not at the same".to_owned())
            }
            None => Wrong::Broken("the state found is one that no commit made".to_owned()),
        }
    }
}
