//! Mode statement: the engine of mode wal, whose connections record what their transactions ran.
//! Nothing of it is kept by the file, which is in WAL mode: it lasts while the database is open,
//! and connections in both modes have the database open together.
//!
//! The source is SQLite/SSL (VLDB 2017). There the statements are the log, and recovery runs them
//! again; here page differences are, and the statements are beside them, so that nothing depends
//! on whether a statement does the same when it is run again.

use dash_ffi::{Code, Error, Opened, Result};

use super::MODE as WAL;
use crate::mode::{Database, Mode, Opening, Request, Switching};
use crate::shadow;

/// The mode.
pub const MODE: &dyn Mode = &Statement;

/// See [`MODE`].
pub struct Statement;

/// Why protocol `paper` is refused.
pub const NO_PAPER: &str = "dash_commit=paper isn't available in mode statement yet: page differences carry its commits, and \
     the statements are recorded beside them; the column replay of dash_statements says which commits they could carry";

impl Mode for Statement {
    fn engine(&self) -> &'static str {
        "statement"
    }

    fn names(&self) -> &'static [&'static str] {
        &["statement"]
    }

    fn described(&self) -> &'static str {
        "in mode statement"
    }

    fn is_sqlites(&self) -> bool {
        true
    }

    fn is_form_of(&self) -> Option<&'static dyn Mode> {
        Some(WAL)
    }

    fn records_statements(&self) -> bool {
        true
    }

    fn stock_has_to_read(&self, request: &Request<'_>) -> Result<bool> {
        WAL.stock_has_to_read(request)
    }

    fn open(&self, opening: Opening<'_>) -> Result<Opened> {
        if opening.request.parameters.own(shadow::COMMIT) == Some("paper") {
            return Err(Error::new(Code::CANTOPEN, NO_PAPER));
        }
        WAL.open(opening)
    }

    fn enter(&self, switching: &Switching<'_>) -> Result<Box<dyn Database>> {
        let mut database = WAL.enter(switching)?;
        database.takes_form(MODE);
        Ok(database)
    }

    fn join(&self, switching: &Switching<'_>) -> Result<Option<Box<dyn Database>>> {
        let joined = WAL.join(switching)?;
        Ok(joined.map(|mut database| {
            database.takes_form(MODE);
            database
        }))
    }
}
