//! What a crash left: looked at, classified, looked up in the table, and done. Knows files, names
//! and the coordination file; connections are above it.

pub(crate) mod action;
pub(crate) mod classify;
pub(crate) mod decided;
pub(crate) mod examine;
pub(crate) mod first_opener;
pub(crate) mod left;
pub(crate) mod make_durable;
pub(crate) mod older;
pub(crate) mod published;
pub(crate) mod rows;
pub(crate) mod spare;
pub(crate) mod table;
pub(crate) mod unfit;
pub(crate) mod unopened;
