//! A database in a folder in which everybody may make files, and who comes there.

use std::path::PathBuf;

use dash_testing::machine::root_for;

use super::parts::Part;
use super::peers::Session;
use super::rights::{allow, give};
use super::sql::run;

/// The database is this user's, of this group.
pub const OWNER: u32 = 2001;
pub const GROUP: u32 = 5000;
/// Somebody of the group.
pub const MEMBER: u32 = 2002;
/// Somebody else.
pub const STRANGER: u32 = 2003;

/// The folder.
pub struct Place(pub tempfile::TempDir);

impl Place {
    /// One with what stock SQLite makes of `sql`, and these permission bits; `None`, and the test
    /// is skipped, where files can't be given away.
    pub fn made(bits: u32, sql: &str) -> Option<Self> {
        if !root_for("giving files away") {
            return None;
        }
        let place = Self(tempfile::tempdir().expect("a folder"));
        allow(place.0.path(), 0o777);
        run(&super::stock(&place.db()), sql);
        give(&place.db(), (OWNER, GROUP));
        allow(&place.db(), bits);
        Some(place)
    }

    pub fn db(&self) -> PathBuf {
        self.0.path().join("app.db")
    }

    /// Opens it through dash, as root or as a user of the group.
    pub fn open(&self, user: Option<u32>, parameters: &str) -> Result<Session, String> {
        let group = user.map(|_| GROUP);
        Session::dash(&self.db(), Part { parameters, user, group, ..Part::default() })
    }
}
