//! A backup that was put in the place of `app.db` after a crash: an older state than others were
//! shown (SHADOW-29). A writer counts on in SQLite's header from what it finds, so none that was
//! written is behind what was there.

use crate::format::CommitBlock;
use crate::format::header::{Header, Marks};
use crate::mutation::{Mutation, broken};
use crate::recovery::examine::{DbKind, Found, Relation};
use crate::recovery::left::Left;
use dash_storage::File;

/// What tells of one.
pub(crate) struct Older<'a, F> {
    pub db: Option<&'a Found<F>>,
    pub shadow: Option<&'a Found<F>>,
    /// Their commit blocks, as far as those count.
    pub blocks: [Option<&'a CommitBlock>; 2],
    pub left: Left,
}

impl<F: File> Older<'_, F> {
    /// Whether `app.db`, which is of this kind otherwise, is one.
    pub(crate) fn is_put_there(&self, kind: DbKind, relation: Relation) -> bool {
        let is_older = self.is_behind_what_was_shown().unwrap_or(false)
            || self.is_behind_the_shadow(kind, relation);
        is_older && !broken(Mutation::OlderTaken)
    }

    /// After a kill, by the coordination file. One that was copied along says nothing of copies
    /// that were made one by one.
    fn is_behind_what_was_shown(&self) -> Option<bool> {
        let (db, newest) = (self.db?, self.left.newest?);
        let is_its = |found: &Found<F>| newest.files.contains(&Some(found.id()));
        let header = db.unmarked().filter(Header::is_sqlite)?;
        let is_behind = header.counter().wrapping_sub(newest.counter) >= 1 << 31;
        let is_newest = self.blocks[0].is_some_and(|block| block.id == newest.id);
        Some(is_behind && !is_newest && (is_its(db) || self.shadow.is_some_and(is_its)))
    }

    /// After a power loss, by the shadow: no crash leaves it more than one commit ahead.
    fn is_behind_the_shadow(&self, kind: DbKind, relation: Relation) -> bool {
        let [db, shadow] = self.blocks;
        kind == DbKind::Whole
            && relation == Relation::None
            && self.left.fence
            && db.zip(shadow).is_some_and(|(db, shadow)| shadow.sequence > db.sequence)
    }
}
