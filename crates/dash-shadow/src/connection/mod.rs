//! An open database. A connection is made of the parts in `state`; each file here owns one thing
//! that it does. [`transaction`] is the way of a commit.

pub(crate) mod begin;
pub(crate) mod blockers;
pub(crate) mod close;
pub(crate) mod dead_writer;
pub(crate) mod decided;
pub(crate) mod exclude_readers;
pub(crate) mod fence;
pub(crate) mod flush;
pub(crate) mod found;
pub(crate) mod hold_off;
pub(crate) mod intent;
pub(crate) mod kept;
mod last_commit;
pub(crate) mod lock;
pub(crate) mod naive_reset;
pub(crate) mod open;
pub(crate) mod pair;
pub(crate) mod read;
pub(crate) mod rebuild;
pub(crate) mod repair;
pub(crate) mod rest;
pub(crate) mod restore;
pub(crate) mod return_name;
mod room;
pub(crate) mod secure_delete;
pub(crate) mod settle;
pub(crate) mod space;
pub(crate) mod state;
pub(crate) mod transaction;
pub(crate) mod undo;
pub(crate) mod unpublished;
pub(crate) mod versions;
pub(crate) mod view;
pub(crate) mod vouch;
