//! What the connections of all processes share: the coordination file, the locks, and what they
//! tell each other.

pub(crate) mod coordination;
pub(crate) mod durability;
pub(crate) mod failed;
pub(crate) mod half_settled;
pub(crate) mod handover;
pub(crate) mod housekeeping;
pub(crate) mod layout;
pub(crate) mod life;
pub(crate) mod locks;
pub(crate) mod readers;
pub(crate) mod state;
pub(crate) mod versions;
