//! The rows of the recovery table. What `app.db` is, what the shadow is and how they are related
//! lead to what is done, each with the story that leads there.

use crate::recovery::action::{Action as A, Row};
use crate::recovery::examine::{DbKind as D, Relation as R, ShadowKind as S};
use crate::refusal::Refusal;

/// Whatever the shadow is.
pub(crate) const ANY_SHADOW: &[S] =
    &[S::Missing, S::Lost, S::Unrelated, S::Torn, S::Whole, S::Pending, S::Modified, S::Superseded];

const PRESENT: &[S] = &[S::Unrelated, S::Torn, S::Whole, S::Pending, S::Modified, S::Superseded];

/// However they are related.
pub(crate) const ANY: &[R] = &[R::Child, R::Parent, R::Ahead, R::None];

const KIN: &[R] = &[R::Child, R::Parent];

const NO_KIN: &[R] = &[R::Ahead, R::None];

const NOT_CHILD: &[R] = &[R::Parent, R::Ahead, R::None];

const NOT_PARENT: &[R] = &[R::Child, R::Ahead, R::None];

const NOT_AHEAD: &[R] = &[R::Child, R::Parent, R::None];

const fn row(db: &'static [D], shadow: &'static [S], relation: &'static [R], action: A) -> Row {
    Row { db, shadow, relation, action, story: "" }
}

impl Row {
    const fn story(self, story: &'static str) -> Self {
        Self { story, ..self }
    }
}

/// The recovery table. Rows exclude each other.
#[rustfmt::skip]
pub const TABLE: &[Row] = &[
    row(&[D::Missing], &[S::Missing, S::Lost], ANY, A::Create)
        .story("a new database"),
    row(&[D::Missing], PRESENT, ANY, A::Refuse(Refusal::Missing))
        .story("app.db was removed by hand; unless it was closed cleanly, an empty one must not take its place"),
    row(&[D::NotSqlite], ANY_SHADOW, ANY, A::Refuse(Refusal::NotSqlite))
        .story("another file, or damage to page 1"),
    row(&[D::TornCopy], ANY_SHADOW, ANY, A::Refuse(Refusal::TornCopy))
        .story("copied by hand, and written meanwhile"),
    row(&[D::Cut], &[S::Whole, S::Modified, S::Superseded], ANY, A::Refuse(Refusal::Cut))
        .story("app.db was cut by hand"),
    row(&[D::Cut], &[S::Torn, S::Pending], ANY, A::Refuse(Refusal::BothTorn))
        .story("app.db was cut by hand after a crash"),
    row(&[D::Cut], &[S::Missing, S::Lost, S::Unrelated], ANY, A::KeepRebuild)
        .story("app.db was cut by hand: SQLite says so"),
    row(&[D::Empty], &[S::Whole, S::Modified], &[R::Child], A::UseShadow)
        .story("the first commit was flushed, the exchange was lost"),
    row(&[D::Empty], &[S::Whole, S::Modified, S::Superseded], NOT_CHILD, A::Refuse(Refusal::Emptied))
        .story("app.db was cut to nothing by hand"),
    row(&[D::Empty], &[S::Superseded], &[R::Child], A::Refuse(Refusal::Emptied))
        .story("app.db was cut to nothing after its first commits"),
    row(&[D::Empty], &[S::Missing, S::Lost, S::Unrelated], ANY, A::KeepRebuild)
        .story("a new database"),
    row(&[D::Empty], &[S::Torn, S::Pending], &[R::Child], A::KeepRebuild)
        .story("the first commit never became durable"),
    row(&[D::Empty], &[S::Torn, S::Pending], NOT_CHILD, A::Refuse(Refusal::Emptied))
        .story("app.db was cut to nothing by hand after a crash"),
    row(&[D::Plain, D::Modified, D::Whole, D::Pending, D::Older], &[S::Lost], ANY, A::Refuse(Refusal::ShadowLost))
        .story("cut or killed, then the shadow was removed by hand"),
    row(&[D::Plain], &[S::Whole, S::Modified], &[R::Ahead], A::Refuse(Refusal::Diverged))
        .story("power was lost before the exchange was durable, then stock SQLite wrote, or a backup was restored"),
    row(&[D::Plain], &[S::Whole, S::Modified], NOT_AHEAD, A::KeepRebuild)
        .story("a vacuum by stock SQLite at rest"),
    row(&[D::Plain], &[S::Missing, S::Unrelated, S::Torn, S::Pending, S::Superseded], ANY, A::KeepRebuild)
        .story("a database dash has not seen, a restored backup, a copy, a vacuum by stock SQLite"),
    row(&[D::Older], &[S::Torn, S::Whole, S::Pending, S::Modified, S::Superseded], ANY, A::Refuse(Refusal::Older))
        .story("a backup was put in the place of app.db after a crash; the shadow may have what that lacks"),
    row(&[D::Older], &[S::Missing, S::Unrelated], ANY, A::KeepRebuild)
        .story("the same, and nothing else was left"),
    row(&[D::Modified], &[S::Whole, S::Pending, S::Modified], &[R::Child], A::Refuse(Refusal::Diverged))
        .story("power was lost before the exchange was durable, then stock SQLite wrote"),
    row(&[D::Modified], &[S::Whole, S::Pending], NOT_CHILD, A::KeepRebuild)
        .story("stock SQLite wrote at rest"),
    row(&[D::Modified], &[S::Modified], NO_KIN, A::KeepRebuild)
        .story("stock SQLite wrote at rest, beside a shadow from another time"),
    row(&[D::Whole, D::Modified], &[S::Modified], &[R::Parent], A::Refuse(Refusal::Diverged))
        .story("a stock connection that was reading the shadow since it was app.db wrote there without a journal file"),
    row(&[D::Modified], &[S::Missing, S::Unrelated, S::Torn, S::Superseded], ANY, A::KeepRebuild)
        .story("stock SQLite wrote at rest"),
    row(&[D::Torn], &[S::Whole], ANY, A::UseShadow)
        .story("names behind on disk: the file under app.db was the one being written"),
    row(&[D::Torn], &[S::Modified], &[R::Child], A::UseShadow)
        .story("the same, after stock SQLite wrote past the name fence"),
    row(&[D::Torn], &[S::Modified], NOT_CHILD, A::Refuse(Refusal::BothTorn))
        .story("files of different times, mixed by hand"),
    row(&[D::Torn], &[S::Missing, S::Lost, S::Unrelated, S::Torn, S::Pending, S::Superseded], ANY, A::Refuse(Refusal::BothTorn))
        .story("damage beyond a power loss: never guess"),
    row(&[D::Whole], &[S::Whole], &[R::Child], A::UseShadow)
        .story("the commit was flushed, the exchange was lost or never made"),
    row(&[D::Whole, D::Superseded], &[S::Modified], &[R::Child], A::UseShadow)
        .story("published, then stock SQLite wrote without a journal file, and a power loss took the exchange"),
    row(&[D::Whole], &[S::Modified], NO_KIN, A::KeepRebuild)
        .story("a stock connection wrote to a file from another time"),
    row(&[D::Whole], &[S::Whole, S::Superseded], &[R::Parent], A::KeepRepair)
        .story("between two commits, or closed cleanly"),
    row(&[D::Whole], &[S::Superseded], &[R::Child], A::KeepRebuild)
        .story("an older copy of app.db was put back over itself"),
    row(&[D::Whole], &[S::Torn], KIN, A::KeepRepair)
        .story("cut or killed inside a commit"),
    row(&[D::Whole], &[S::Pending], &[R::Child], A::KeepUndo)
        .story("cut or killed inside a commit over several databases"),
    row(&[D::Whole], &[S::Pending], NOT_CHILD, A::KeepRebuild)
        .story("an older copy of app.db was put back"),
    row(&[D::Whole], &[S::Whole, S::Superseded, S::Torn], NO_KIN, A::KeepRebuild)
        .story("one of the two files is from another time"),
    row(&[D::Whole], &[S::Missing, S::Unrelated], ANY, A::KeepRebuild)
        .story("the shadow was removed, as by going back to a plain file, or replaced by hand"),
    row(&[D::Pending], &[S::Whole, S::Superseded], &[R::Parent], A::KeepRepair)
        .story("cannot be: a published commit's super-journal is gone, and the shadow vouches for it"),
    row(&[D::Pending], &[S::Whole, S::Superseded], NOT_PARENT, A::KeepRebuild)
        .story("a published commit, and a file that by chance has its super-journal's name"),
    row(&[D::Pending], &[S::Missing, S::Unrelated, S::Torn, S::Pending, S::Modified], ANY, A::KeepRebuild)
        .story("the same: only what was published has ever been named app.db"),
    row(&[D::Superseded], &[S::Whole, S::Pending], &[R::Child], A::UseShadow)
        .story("closed after one commit, then the power went before the exchange was durable"),
    row(&[D::Superseded], &[S::Missing, S::Lost], ANY, A::Refuse(Refusal::ShadowLost))
        .story("names behind, then the shadow was removed, or was put in the place of app.db by hand"),
    row(&[D::Superseded], &[S::Unrelated], ANY, A::KeepRebuild)
        .story("the shadow was put in the place of app.db by hand"),
    row(&[D::Superseded], &[S::Whole, S::Pending, S::Modified], NOT_CHILD, A::Refuse(Refusal::BothTorn))
        .story("files of different times, mixed by hand"),
    row(&[D::Superseded], &[S::Torn, S::Superseded], ANY, A::Refuse(Refusal::BothTorn))
        .story("the newer of two states is damaged"),
];
