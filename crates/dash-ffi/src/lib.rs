//! dash's boundary with SQLite: a loadable VFS, its files, SQL functions and tables, from safe Rust
//! traits.
//!
//! This crate is the only one that touches SQLite's C interface. It links nothing of SQLite: every
//! call goes through the table of routines that SQLite hands to an extension, and of that table
//! only what SQLite 3.31 has is read. Above it, everything is safe Rust:
//!
//! - a [`Vfs`] opens [`File`]s; both mirror SQLite's methods one by one, with nothing swallowed:
//!   sync flags, URI parameters, file controls, device characteristics, shared memory and mapped
//!   pages;
//! - a [`HostVfs`] and its [`HostFile`]s are what lies below: SQLite's own VFS;
//! - an [`Extension`] bundles a VFS with SQL functions ([`ScalarFunction`]) and tables
//!   ([`TableFunction`]); [`load`] and [`load_automatically`] are what entry points call;
//! - a [`Capture`] is told of the statements of connections that an extension chooses;
//! - an [`Error`] is SQLite's result code and a message, which reaches the host's error log and
//!   [`last_error`].
//!
//! What holds throughout:
//!
//! 1. No panic crosses into C, nor is one printed. It becomes an error, and the file it happened in
//!    is out of use from then on.
//! 2. Text goes to SQLite as the argument of `"%s"`, never as a format.
//! 3. Nothing of a host is global: each copy of SQLite in the process has a slot of its own.
//! 4. At most one `&mut` to a [`File`] exists at any time, whoever calls.

#![expect(unsafe_code, reason = "the one place where dash and SQLite's C interface meet")]

mod api;
mod arguments;
mod backup;
mod capture;
mod cell;
pub mod clock;
mod code;
mod confined;
mod connection;
mod control;
mod control_calls;
mod doing;
mod errand;
mod error;
mod exclusion;
mod exit;
mod extension;
mod file;
mod file_calls;
mod flags;
mod function;
mod guard;
mod host;
mod host_control;
mod host_file;
#[cfg(test)]
mod linked;
mod mutex_api;
mod name;
mod nested;
mod object;
mod op;
mod ours;
mod own;
mod pin;
mod rows;
mod side_file;
mod slot;
mod stated;
mod statement_api;
mod sys;
mod table;
mod value;
mod vfs;
mod vfs_calls;
mod watched;
mod window;

pub use api::OLDEST_SQLITE;
pub use backup::Snapshot;
pub use capture::{Bound, Capture, TracedStatement, Unread};
pub use cell::Door;
pub use code::Code;
pub use confined::{Asked, Bounds};
pub use connection::{ConnectionHandle, ConnectionRef, KeptConnection};
pub use control::{
    BusyHandler, FileControl, Handled, Pragma, TempFilename, UnknownControl, VfsName,
};
pub use error::{Error, Result, explain, hear_with, in_folder_of, last_error, last_error_at};
pub use exclusion::while_nobody_opens;
pub use exit::{Severity, at_exit, syslog_line, temporary_folders, variable};
pub use extension::{AutoExtension, Extension, SlotInfo, load, load_automatically, register_with};
pub use file::{File, PagePointer, SharedRegion, ShmMapping};
pub use flags::{
    AccessCheck, DeviceCharacteristics, FileKind, LockLevel, OpenFlags, ShmLock, SyncFlags,
};
pub use function::{Context, FunctionFlags, ScalarFunction};
pub use guard::behind_the_wall;
pub use host::HostVfs;
pub use host_file::HostFile;
pub use name::FileName;
pub use object::file_name_of;
pub use ours::is_own;
pub use own::{OwnConnection, Ran, ToBind};
pub use side_file::{Side, SideFile};
pub use sys::{ApiRoutines, Connection, EntryPoint};
pub use table::{Row, TableFunction};
pub use value::Value;
pub use vfs::{FullPathname, Opened, Vfs};
pub use watched::Watched;
pub use window::Window;
