//! The rows of the recovery table. What `app.db` is, what the shadow is and how they are related
//! lead to what is done, each with the story that leads there.

use crate::recovery::action::{Action, Row};
use crate::recovery::examine::{DbKind, Relation, ShadowKind};
use crate::refusal::Refusal;

/// Whatever the shadow is.
pub(crate) const ANY_SHADOW: &[ShadowKind] = &[
    ShadowKind::Missing,
    ShadowKind::Lost,
    ShadowKind::Unrelated,
    ShadowKind::Torn,
    ShadowKind::Whole,
    ShadowKind::Pending,
    ShadowKind::Modified,
    ShadowKind::Superseded,
];

const PRESENT: &[ShadowKind] = &[
    ShadowKind::Unrelated,
    ShadowKind::Torn,
    ShadowKind::Whole,
    ShadowKind::Pending,
    ShadowKind::Modified,
    ShadowKind::Superseded,
];

/// However they are related.
pub(crate) const ANY: &[Relation] =
    &[Relation::Child, Relation::Parent, Relation::Ahead, Relation::None];

const KIN: &[Relation] = &[Relation::Child, Relation::Parent];

const NO_KIN: &[Relation] = &[Relation::Ahead, Relation::None];

const NOT_CHILD: &[Relation] = &[Relation::Parent, Relation::Ahead, Relation::None];

const NOT_PARENT: &[Relation] = &[Relation::Child, Relation::Ahead, Relation::None];

const NOT_AHEAD: &[Relation] = &[Relation::Child, Relation::Parent, Relation::None];

/// The recovery table. Rows exclude each other.
pub const TABLE: &[Row] = &[
    Row {
        db: &[DbKind::Missing],
        shadow: &[ShadowKind::Missing, ShadowKind::Lost],
        relation: ANY,
        action: Action::Create,
        story: "a new database",
    },
    Row {
        db: &[DbKind::Missing],
        shadow: PRESENT,
        relation: ANY,
        action: Action::Refuse(Refusal::Missing),
        story: "app.db was removed by hand; unless it was closed cleanly, an empty one must not take its place",
    },
    Row {
        db: &[DbKind::NotSqlite],
        shadow: ANY_SHADOW,
        relation: ANY,
        action: Action::Refuse(Refusal::NotSqlite),
        story: "another file, or damage to page 1",
    },
    Row {
        db: &[DbKind::TornCopy],
        shadow: ANY_SHADOW,
        relation: ANY,
        action: Action::Refuse(Refusal::TornCopy),
        story: "copied by hand, and written meanwhile",
    },
    Row {
        db: &[DbKind::Cut],
        shadow: &[ShadowKind::Whole, ShadowKind::Modified, ShadowKind::Superseded],
        relation: ANY,
        action: Action::Refuse(Refusal::Cut),
        story: "app.db was cut by hand",
    },
    Row {
        db: &[DbKind::Cut],
        shadow: &[ShadowKind::Torn, ShadowKind::Pending],
        relation: ANY,
        action: Action::Refuse(Refusal::BothTorn),
        story: "app.db was cut by hand after a crash",
    },
    Row {
        db: &[DbKind::Cut],
        shadow: &[ShadowKind::Missing, ShadowKind::Lost, ShadowKind::Unrelated],
        relation: ANY,
        action: Action::KeepRebuild,
        story: "app.db was cut by hand: SQLite says so",
    },
    Row {
        db: &[DbKind::Empty],
        shadow: &[ShadowKind::Whole, ShadowKind::Modified],
        relation: &[Relation::Child],
        action: Action::UseShadow,
        story: "the first commit was flushed, the exchange was lost",
    },
    Row {
        db: &[DbKind::Empty],
        shadow: &[ShadowKind::Whole, ShadowKind::Modified, ShadowKind::Superseded],
        relation: NOT_CHILD,
        action: Action::Refuse(Refusal::Emptied),
        story: "app.db was cut to nothing by hand",
    },
    Row {
        db: &[DbKind::Empty],
        shadow: &[ShadowKind::Superseded],
        relation: &[Relation::Child],
        action: Action::Refuse(Refusal::Emptied),
        story: "app.db was cut to nothing after its first commits",
    },
    Row {
        db: &[DbKind::Empty],
        shadow: &[ShadowKind::Missing, ShadowKind::Lost, ShadowKind::Unrelated],
        relation: ANY,
        action: Action::KeepRebuild,
        story: "a new database",
    },
    Row {
        db: &[DbKind::Empty],
        shadow: &[ShadowKind::Torn, ShadowKind::Pending],
        relation: &[Relation::Child],
        action: Action::KeepRebuild,
        story: "the first commit never became durable",
    },
    Row {
        db: &[DbKind::Empty],
        shadow: &[ShadowKind::Torn, ShadowKind::Pending],
        relation: NOT_CHILD,
        action: Action::Refuse(Refusal::Emptied),
        story: "app.db was cut to nothing by hand after a crash",
    },
    Row {
        db: &[DbKind::Plain, DbKind::Modified, DbKind::Whole, DbKind::Pending],
        shadow: &[ShadowKind::Lost],
        relation: ANY,
        action: Action::Refuse(Refusal::ShadowLost),
        story: "cut or killed, then the shadow was removed by hand",
    },
    Row {
        db: &[DbKind::Plain],
        shadow: &[ShadowKind::Whole, ShadowKind::Modified],
        relation: &[Relation::Ahead],
        action: Action::Refuse(Refusal::Diverged),
        story: "power was lost before the exchange was durable, then stock SQLite wrote, or a backup was restored",
    },
    Row {
        db: &[DbKind::Plain],
        shadow: &[ShadowKind::Whole, ShadowKind::Modified],
        relation: NOT_AHEAD,
        action: Action::KeepRebuild,
        story: "a vacuum by stock SQLite at rest",
    },
    Row {
        db: &[DbKind::Plain],
        shadow: &[
            ShadowKind::Missing,
            ShadowKind::Unrelated,
            ShadowKind::Torn,
            ShadowKind::Pending,
            ShadowKind::Superseded,
        ],
        relation: ANY,
        action: Action::KeepRebuild,
        story: "a database dash has not seen, a restored backup, a copy, a vacuum by stock SQLite",
    },
    Row {
        db: &[DbKind::Modified],
        shadow: &[ShadowKind::Whole, ShadowKind::Pending, ShadowKind::Modified],
        relation: &[Relation::Child],
        action: Action::Refuse(Refusal::Diverged),
        story: "power was lost before the exchange was durable, then stock SQLite wrote",
    },
    Row {
        db: &[DbKind::Modified],
        shadow: &[ShadowKind::Whole, ShadowKind::Pending],
        relation: NOT_CHILD,
        action: Action::KeepRebuild,
        story: "stock SQLite wrote at rest",
    },
    Row {
        db: &[DbKind::Modified],
        shadow: &[ShadowKind::Modified],
        relation: NO_KIN,
        action: Action::KeepRebuild,
        story: "stock SQLite wrote at rest, beside a shadow from another time",
    },
    Row {
        db: &[DbKind::Whole, DbKind::Modified],
        shadow: &[ShadowKind::Modified],
        relation: &[Relation::Parent],
        action: Action::Refuse(Refusal::Diverged),
        story: "a stock connection that was reading the shadow since it was app.db wrote there without a journal file",
    },
    Row {
        db: &[DbKind::Modified],
        shadow: &[
            ShadowKind::Missing,
            ShadowKind::Unrelated,
            ShadowKind::Torn,
            ShadowKind::Superseded,
        ],
        relation: ANY,
        action: Action::KeepRebuild,
        story: "stock SQLite wrote at rest",
    },
    Row {
        db: &[DbKind::Torn],
        shadow: &[ShadowKind::Whole],
        relation: ANY,
        action: Action::UseShadow,
        story: "names behind on disk: the file under app.db was the one being written",
    },
    Row {
        db: &[DbKind::Torn],
        shadow: &[ShadowKind::Modified],
        relation: &[Relation::Child],
        action: Action::UseShadow,
        story: "the same, after stock SQLite wrote past the name fence",
    },
    Row {
        db: &[DbKind::Torn],
        shadow: &[ShadowKind::Modified],
        relation: NOT_CHILD,
        action: Action::Refuse(Refusal::BothTorn),
        story: "files of different times, mixed by hand",
    },
    Row {
        db: &[DbKind::Torn],
        shadow: &[
            ShadowKind::Missing,
            ShadowKind::Lost,
            ShadowKind::Unrelated,
            ShadowKind::Torn,
            ShadowKind::Pending,
            ShadowKind::Superseded,
        ],
        relation: ANY,
        action: Action::Refuse(Refusal::BothTorn),
        story: "damage beyond a power loss: never guess",
    },
    Row {
        db: &[DbKind::Whole],
        shadow: &[ShadowKind::Whole],
        relation: &[Relation::Child],
        action: Action::UseShadow,
        story: "the commit was flushed, the exchange was lost or never made",
    },
    Row {
        db: &[DbKind::Whole, DbKind::Superseded],
        shadow: &[ShadowKind::Modified],
        relation: &[Relation::Child],
        action: Action::UseShadow,
        story: "published, then stock SQLite wrote without a journal file, and a power loss took the exchange",
    },
    Row {
        db: &[DbKind::Whole],
        shadow: &[ShadowKind::Modified],
        relation: NO_KIN,
        action: Action::KeepRebuild,
        story: "a stock connection wrote to a file from another time",
    },
    Row {
        db: &[DbKind::Whole],
        shadow: &[ShadowKind::Whole, ShadowKind::Superseded],
        relation: &[Relation::Parent],
        action: Action::KeepRepair,
        story: "between two commits, or closed cleanly",
    },
    Row {
        db: &[DbKind::Whole],
        shadow: &[ShadowKind::Superseded],
        relation: &[Relation::Child],
        action: Action::KeepRebuild,
        story: "an older copy of app.db was put back over itself",
    },
    Row {
        db: &[DbKind::Whole],
        shadow: &[ShadowKind::Torn],
        relation: KIN,
        action: Action::KeepRepair,
        story: "cut or killed inside a commit",
    },
    Row {
        db: &[DbKind::Whole],
        shadow: &[ShadowKind::Pending],
        relation: &[Relation::Child],
        action: Action::KeepUndo,
        story: "cut or killed inside a commit over several databases",
    },
    Row {
        db: &[DbKind::Whole],
        shadow: &[ShadowKind::Pending],
        relation: NOT_CHILD,
        action: Action::KeepRebuild,
        story: "an older copy of app.db was put back",
    },
    Row {
        db: &[DbKind::Whole],
        shadow: &[ShadowKind::Whole, ShadowKind::Superseded, ShadowKind::Torn],
        relation: NO_KIN,
        action: Action::KeepRebuild,
        story: "one of the two files is from another time",
    },
    Row {
        db: &[DbKind::Whole],
        shadow: &[ShadowKind::Missing, ShadowKind::Unrelated],
        relation: ANY,
        action: Action::KeepRebuild,
        story: "the shadow was removed, as by going back to a plain file, or replaced by hand",
    },
    Row {
        db: &[DbKind::Pending],
        shadow: &[ShadowKind::Whole, ShadowKind::Superseded],
        relation: &[Relation::Parent],
        action: Action::KeepRepair,
        story: "cannot be: a published commit's super-journal is gone, and the shadow vouches for it",
    },
    Row {
        db: &[DbKind::Pending],
        shadow: &[ShadowKind::Whole, ShadowKind::Superseded],
        relation: NOT_PARENT,
        action: Action::KeepRebuild,
        story: "a published commit, and a file that by chance has its super-journal's name",
    },
    Row {
        db: &[DbKind::Pending],
        shadow: &[
            ShadowKind::Missing,
            ShadowKind::Unrelated,
            ShadowKind::Torn,
            ShadowKind::Pending,
            ShadowKind::Modified,
        ],
        relation: ANY,
        action: Action::KeepRebuild,
        story: "the same: only what was published has ever been named app.db",
    },
    Row {
        db: &[DbKind::Superseded],
        shadow: &[ShadowKind::Whole, ShadowKind::Pending],
        relation: &[Relation::Child],
        action: Action::UseShadow,
        story: "closed after one commit, then the power went before the exchange was durable",
    },
    Row {
        db: &[DbKind::Superseded],
        shadow: &[ShadowKind::Missing, ShadowKind::Lost],
        relation: ANY,
        action: Action::Refuse(Refusal::ShadowLost),
        story: "names behind, then the shadow was removed, or was put in the place of app.db by hand",
    },
    Row {
        db: &[DbKind::Superseded],
        shadow: &[ShadowKind::Unrelated],
        relation: ANY,
        action: Action::KeepRebuild,
        story: "the shadow was put in the place of app.db by hand",
    },
    Row {
        db: &[DbKind::Superseded],
        shadow: &[ShadowKind::Whole, ShadowKind::Pending, ShadowKind::Modified],
        relation: NOT_CHILD,
        action: Action::Refuse(Refusal::BothTorn),
        story: "files of different times, mixed by hand",
    },
    Row {
        db: &[DbKind::Superseded],
        shadow: &[ShadowKind::Torn, ShadowKind::Superseded],
        relation: ANY,
        action: Action::Refuse(Refusal::BothTorn),
        story: "the newer of two states is damaged",
    },
];
