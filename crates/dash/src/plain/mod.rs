//! The plain modes: SQLite's own rollback journal, through dash's VFS. The mode is there for a
//! connection that leaves an engine, and for programs that want dash loaded and this database left
//! alone.
//!
//! The journal is the host's file, and so is the database where the locks have to be stock
//! SQLite's own: what is read by its rules, or in WAL mode. All else is [`crate::own_file`]'s.

mod file;

pub(crate) use file::PlainFile;

use std::sync::Arc;

use dash_ffi::{OpenFlags, Opened, Result};
use dash_storage::OpenMode;
use dash_storage::real::Real;

use crate::clearing;
use crate::errors::{forbids_writing, to_sqlite};
use crate::leftovers::Leftover;
use crate::main_file::opened;
use crate::mode::registry::Membership;
use crate::mode::{Database, Mode, Opening, Request, Switching};
use crate::own_file::{self, OwnFile};

/// The mode.
pub const MODE: &dyn Mode = &Plain;

/// See [`MODE`].
pub struct Plain;

impl Mode for Plain {
    fn engine(&self) -> &'static str {
        file::ENGINE
    }

    fn names(&self) -> &'static [&'static str] {
        &["delete", "truncate", "persist", "memory", "off"]
    }

    fn described(&self) -> String {
        "as a plain file".to_owned()
    }

    fn is_plain(&self) -> bool {
        true
    }

    /// Where it was asked for, but not an older copy than the newest one.
    fn stock_has_to_read(&self, request: &Request<'_>) -> Result<bool> {
        request.modes.others(MODE).try_for_each(|mode| mode.refuse_stock(request.path))?;
        request.stock_has_to_read()
    }

    fn open(&self, opening: Opening<'_>) -> Result<Opened> {
        if !opening.reading {
            opening.request.leave_wal_mode()?;
        }
        opening.request.plain(Some(opening.membership))
    }

    fn enter(&self, switching: &Switching<'_>) -> Result<Box<dyn Database>> {
        let Switching { host, path, parameters, window, .. } = switching;
        Ok(Box::new(PlainFile::open(host, path, parameters, window)?))
    }
}

impl Request<'_> {
    /// Stock's WAL mode is not offered beside dash's modes: a plain file is taken out of it, too.
    /// So is one that a program was taking out of it when it was stopped: SQLite would roll that
    /// back as it first reads the file.
    fn leave_wal_mode(&self) -> Result<()> {
        let Request { host, path, flags, beside, .. } = self;
        let is_wal = || -> Result<bool> {
            Ok(beside.find()? == Some(Leftover::Wal) || beside.says_wal(path))
        };
        let leaves = is_wal()? || (clearing::roll_back(host, path, *flags)? && is_wal()?);
        if !leaves {
            return Ok(());
        }
        beside.refuse_fence(path)?;
        clearing::clear(host, path, *flags, Leftover::Wal, true)
    }

    /// Opens it. Without a membership it is read by stock SQLite's rules, whatever others do.
    pub(crate) fn plain(&self, membership: Option<Membership>) -> Result<Opened> {
        self.plain_because(membership, None)
    }

    /// The same by stock SQLite's rules, where it could not be had in its mode; `why` is what
    /// `dash_stats` says.
    pub(crate) fn plain_instead(&self, why: &str) -> Result<Opened> {
        self.plain_because(None, Some(why.to_owned()))
    }

    fn plain_because(&self, membership: Option<Membership>, why: Option<String>) -> Result<Opened> {
        if !self.parameters.immutable {
            self.beside.have_one_name()?;
        }
        let (mut file, flags) = match membership {
            Some(_) => self.plain_file()?,
            None => self.hosts_file(self.flags)?,
        };
        let writes = flags.contains(OpenFlags::READWRITE);
        if !self.parameters.immutable && !dash_shadow::keeps_access(&Real, self.path, writes) {
            self.note_exposed();
        }
        if self.flags.contains(OpenFlags::READWRITE) && !flags.contains(OpenFlags::READWRITE) {
            self.note_read_only("no right to write the file");
        }
        // WAL mode needs it, and is only met when reading.
        file.shared_memory = membership.is_none() && file.file.has_shared_memory();
        file.is_read_only = !flags.contains(OpenFlags::READWRITE);
        file.why = why.or_else(|| {
            (membership.is_none() && file.is_read_only).then(|| self.by_stocks_rules()).flatten()
        });
        if let Some(membership) = &membership {
            file.no_database = membership.shared().of();
            // Without locks it is not asked again.
            file.no_database.tell(&mut *file.file);
        }
        Ok(opened(self, (MODE, Box::new(file)), flags, membership))
    }

    /// Opens it for a connection whose mode is not chosen yet; `None`: it can't be written.
    pub(crate) fn plain_undecided(&self) -> Result<Option<Opened>> {
        let (file, flags) = self.plain_file()?;
        if !flags.contains(OpenFlags::READWRITE) {
            return file.file.close().map(|()| None);
        }
        Ok(Some(opened(self, (MODE, Box::new(file)), flags, None)))
    }

    /// On dash's own file, or on the host's where it can't be written.
    fn plain_file(&self) -> Result<(PlainFile, OpenFlags)> {
        let Self { host, path, flags, parameters, window, beside, .. } = self;
        let by_stock = parameters.immutable || parameters.nolock;
        if by_stock
            || !flags.contains(OpenFlags::READWRITE)
            || !own_file::is_possible(host, path, beside, parameters)
        {
            return self.hosts_file(*flags);
        }
        let mode = match flags.contains(OpenFlags::CREATE) {
            true => OpenMode::Create { permissions: parameters.permissions() },
            false => OpenMode::ReadWrite,
        };
        match OwnFile::open(path, mode, parameters, Arc::clone(window)) {
            Ok(file) => Ok((PlainFile::on_own(file, path), *flags)),
            Err(error) if forbids_writing(&error) => self.hosts_file(
                flags.without(OpenFlags::READWRITE | OpenFlags::CREATE) | OpenFlags::READONLY,
            ),
            Err(error) => Err(to_sqlite(error)),
        }
    }

    fn hosts_file(&self, flags: OpenFlags) -> Result<(PlainFile, OpenFlags)> {
        let (file, flags) = self.host.open(self.name, flags)?;
        Ok((PlainFile::on(Box::new(file), self.path), flags))
    }

    /// What a database that is dash's is told to be where stock SQLite reads it.
    fn by_stocks_rules(&self) -> Option<String> {
        if self.parameters.immutable || self.parameters.mode.is_some_and(<dyn Mode>::is_plain) {
            return None;
        }
        self.note_unreadable_wal();
        self.beside.says_wal(self.path).then(|| {
            format!(
                "{} is in WAL mode and was opened read-only, by stock SQLite's rules",
                self.path.display()
            )
        })
    }
}
