//! What a recovery does, and a row of the table that says when.

use crate::recovery::examine::{DbKind, Relation, ShadowKind};
use crate::refusal::Refusal;

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Make an empty database, if that was asked for.
    Create,
    /// The same, and put the shadow of what was removed aside.
    CreateAfresh,
    /// `app.db` is current; the shadow is mended by its intent before it is written.
    KeepRepair,
    /// The same, and at once, because a super-journal waits for it.
    KeepUndo,
    /// `app.db` is current; the shadow is made anew before a commit needs it.
    KeepRebuild,
    /// The shadow is current: its pages are written again and flushed, then the names exchanged.
    UseShadow,
    /// Touch nothing.
    Refuse(Refusal),
}

/// A row of the table.
#[derive(Debug)]
pub struct Row {
    /// What `app.db` may be.
    pub db: &'static [DbKind],
    /// What the shadow may be.
    pub shadow: &'static [ShadowKind],
    /// How they may be related.
    pub relation: &'static [Relation],
    /// What to do.
    pub action: Action,
    /// How it comes to this.
    pub story: &'static str,
}
