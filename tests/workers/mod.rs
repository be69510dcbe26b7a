//! What the tests of drivers share.

pub mod crew;
pub mod gunicorn;
pub mod heard;
pub mod verdict;
