//! In a forked child: a connection that came over `fork()` goes on.
//!
//! The engine's handles are dead there, its shared memory shows zeros, and its locks are the
//! parent's. So the first time that SQLite wants something outside a transaction, the database is
//! opened again under the same connection, as far as SQLite can tell without an interruption: what
//! it has cached it compares with the header's version bytes, or with the wal-index, as always.
//!
//! A transaction that was under way at the fork is the parent's, and fails until SQLite has ended
//! it. What came over the fork is never closed and gives no lock up. A connection that the child
//! only closes does nothing at all.

use std::time::Instant;

use dash_ffi::{Code, Error, Result};
use dash_storage::real;

use crate::by_stock::PATIENCE;
use crate::carried::Carried;
use crate::errors::inherited;
use crate::gone::Gone;
use crate::leftovers::Neighbours;
use crate::main_file::MainFile;
use crate::mode::registry::{self, Membership};
use crate::mode::{Database, Place};
use crate::modes::MODES;
use crate::plain::PlainFile;

/// PRAGMAs of the connection that no parameter of the URI stands for.
const SETTINGS: [&str; 1] = ["dash_time_reads"];

impl MainFile {
    /// Whether it came over `fork()`, and is dead.
    #[inline]
    pub(crate) fn is_inherited(&self) -> bool {
        self.forks != real::forks() && !self.database.survives_fork()
    }

    /// Sees to it that the database is this process's.
    ///
    /// # Errors
    ///
    /// In a forked child: within a transaction that is the parent's, or why it can't be opened.
    #[inline]
    pub(crate) fn check_process(&mut self) -> Result<()> {
        if self.forks == real::forks() { Ok(()) } else { self.came_over_fork() }
    }

    #[cold]
    fn came_over_fork(&mut self) -> Result<()> {
        let in_transaction = self.slots != 0 || self.level > self.database.resting_level();
        let survives = self.database.survives_fork();
        if in_transaction && !survives {
            return Err(inherited(&self.path));
        }
        if self.undecided && !in_transaction {
            // Nobody has written it, and nothing is shared about it.
            if !survives {
                self.open_undecided()?;
            }
            self.forks = real::forks();
        }
        if survives || self.undecided {
            return Ok(());
        }
        let begun = Instant::now();
        self.renew().map_err(|error| match error.code.primary() {
            // SQLite's busy handler counts what it asked to sleep, not how long an attempt took.
            Code::BUSY if begun.elapsed() >= PATIENCE => Error { code: Code::CANTOPEN, ..error },
            _ => error,
        })
    }

    /// Opens it again.
    fn renew(&mut self) -> Result<()> {
        let beside = Neighbours::of(&self.path);
        let (path, parameters) = (&*self.path, &self.parameters);
        let place = Place { path, parameters, beside: &beside, creates: false };
        let mode = match registry::mode_of(&self.path) {
            Some(mode) => mode,
            None => MODES.left_in(&place)?,
        };
        if mode != self.mode.base() {
            return Err(inherited(&self.path));
        }
        let joined = registry::join(&self.path, Some(mode), mode);
        let (membership, _) = joined.map_err(|_| inherited(&self.path))?;
        let mut dead = std::mem::replace(&mut self.database, Box::new(Gone));
        dead.keep(&mut self.parameters);
        match self.renewed(&mut *dead, &membership) {
            Ok(database) => self.database = database,
            Err(error) => {
                self.database = dead;
                return Err(error);
            }
        }
        std::mem::forget(dead);
        self.membership = Some(membership);
        self.forks = real::forks();
        Ok(())
    }

    /// Opens one again whose mode is not chosen.
    fn open_undecided(&mut self) -> Result<()> {
        let carried = self.carried()?;
        let Self { host, path, parameters, window, .. } = self;
        let mut file = PlainFile::open(host, path, parameters, window)?;
        carried.set(&mut file)?;
        std::mem::forget(std::mem::replace(&mut self.database, Box::new(file)));
        Ok(())
    }

    /// The database anew, with what SQLite has set in `dead`.
    fn renewed(
        &self,
        dead: &mut dyn Database,
        membership: &Membership,
    ) -> Result<Box<dyn Database>> {
        let carried = Carried::from(dead, &self.said)?;
        let mut database = dead.renew(&self.switching(membership), self.level)?;
        // SQLite has no page from before: it gave all back when its transaction ended.
        self.window.reset();
        // None of these fails in an engine.
        drop(carried.set(&mut *database));
        for name in SETTINGS {
            if let Some(Ok(value)) = dead.pragma(name, None) {
                drop(database.pragma(name, Some(&value)));
            }
        }
        Ok(database)
    }
}
