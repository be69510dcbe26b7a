//! Mode statement: the engine of mode wal, whose connections record what their transactions ran.
//! Nothing of it is kept by the file, which is in WAL mode: it lasts while the database is open,
//! and connections in both modes have the database open together.
//!
//! The source is SQLite/SSL (VLDB 2017). There the statements are the log, and recovery runs them
//! again; here page differences are, and the statements are beside them, so that nothing depends
//! on whether a statement does the same when it is run again. With `dash_commit=paper` it is as
//! there for those transactions that provably do ([`super::paper`]).

use dash_ffi::{Code, Error, Opened, Result};

use super::name::MODE as WAL;
use super::parameters;
use crate::mode::{COMMIT, Database, Mode, Opening, Parameter, Request, Switching};
use crate::statements;

/// The mode.
pub const MODE: &dyn Mode = &Statement;

/// See [`MODE`].
pub struct Statement;

/// How commits are carried: by the frames that they wrote, or by their statements where these
/// provably come to the same pages again.
const PROTOCOLS: [(&str, bool); 2] = [("single", false), ("paper", true)];

/// Why protocol `paper` and a `-wal` in memory don't go together.
pub const NOT_IN_MEMORY: &str = "dash_commit=paper isn't available with dash_wal=memory: each checkpoint would have to write -wal's \
     frames into its file first, which that spares; choose one of the two";

/// Why a connection can't have protocol `paper` whose statements nobody sees.
pub fn not_seen(why: &str) -> String {
    format!(
        "dash_commit=paper needs to see the connection's statements: {why}. With journal_mode=statement in its URI they are seen from its \
         opening on"
    )
}

/// Whether a name is that of protocol `paper`, or a message with the right names.
pub fn protocol(name: &str) -> core::result::Result<bool, String> {
    let found = PROTOCOLS.iter().find(|(known, _)| name.eq_ignore_ascii_case(known));
    found.map(|(_, is_paper)| *is_paper).ok_or_else(|| {
        format!("no such {COMMIT}: {name}; in mode statement there are single, paper")
    })
}

/// The name of a protocol.
pub fn name_of(is_paper: bool) -> &'static str {
    PROTOCOLS[usize::from(is_paper)].0
}

impl Mode for Statement {
    fn engine(&self) -> &'static str {
        "statement"
    }

    fn names(&self) -> &'static [&'static str] {
        &["statement"]
    }

    fn is_sqlites(&self) -> bool {
        true
    }

    fn is_form_of(&self) -> Option<&'static dyn Mode> {
        Some(WAL)
    }

    fn parameters(&self) -> &'static [Parameter] {
        &[Parameter { name: COMMIT, value: "PROTOCOL", check: |text| protocol(text).map(drop) }]
    }

    fn records_statements(&self) -> bool {
        true
    }

    fn stock_has_to_read(&self, request: &Request<'_>) -> Result<bool> {
        WAL.stock_has_to_read(request)
    }

    fn open(&self, opening: Opening<'_>) -> Result<Opened> {
        if let Some(Err(message)) = opening.request.parameters.own(COMMIT).map(protocol) {
            return Err(Error::new(Code::CANTOPEN, message));
        }
        let own = |name| opening.request.parameters.own(name);
        let is_paper = own(COMMIT).map(protocol) == Some(Ok(true));
        if is_paper && own(parameters::WAL).map(parameters::wal) == Some(Ok(true)) {
            return Err(Error::new(Code::CANTOPEN, NOT_IN_MEMORY));
        }
        if own(statements::PARAMETER).is_some_and(|text| text.eq_ignore_ascii_case("off")) {
            let message = "journal_mode=statement records the connection's statements, and dash_statements=off does not: choose one of the \
                 two, or journal_mode=wal";
            return Err(Error::new(Code::CANTOPEN, message));
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
