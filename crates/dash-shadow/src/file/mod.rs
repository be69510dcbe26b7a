//! One file: positioned I/O, holes, its tail and page lists. Knows the format, and nothing of the
//! other copy.

pub(crate) mod holes;
pub(crate) mod page_list;
pub(crate) mod tail;
pub(crate) mod void_commit;
