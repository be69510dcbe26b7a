//! What the report for programs calls things, one word or a few each. Programs look for them, so
//! they stay as they are, whatever the engine calls its own.

use dash_shadow::inspect::{Action, DbKind, LockedPlace, Opening, Refusal, Relation, ShadowKind};

/// What opening would do.
pub fn opening(opening: &Opening) -> &'static str {
    match opening {
        Opening::Join => "join",
        Opening::OtherFormat(_) => "refuse other format",
        Opening::HardLinks(_) => "refuse hard links",
        Opening::Replaced(_) => "refuse others",
        Opening::Refuse(why, _) => refusal(*why),
        Opening::StockFirst => "stock first",
        Opening::FinishRenames => "finish renames",
        Opening::Row(done, _) => action(*done),
    }
}

fn action(action: Action) -> &'static str {
    match action {
        Action::Create => "create",
        Action::CreateAfresh => "create afresh",
        Action::KeepRepair => "keep and repair",
        Action::KeepUndo => "keep and undo",
        Action::KeepRebuild => "keep and rebuild",
        Action::UseShadow => "use shadow",
        Action::Refuse(why) => refusal(why),
    }
}

fn refusal(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::Missing => "refuse missing",
        Refusal::Emptied => "refuse emptied",
        Refusal::NotSqlite => "refuse not sqlite",
        Refusal::Cut => "refuse cut",
        Refusal::Diverged => "refuse diverged",
        Refusal::Older => "refuse older",
        Refusal::ShadowLost => "refuse shadow lost",
        Refusal::TornCopy => "refuse torn copy",
        Refusal::BothTorn => "refuse both torn",
        Refusal::Hidden => "refuse hidden",
        Refusal::Stranger(_) => "refuse stranger",
        Refusal::StrangeName(_) => "refuse strange name",
    }
}

/// What the file named `app.db` is.
pub fn database(kind: DbKind) -> &'static str {
    match kind {
        DbKind::Missing => "missing",
        DbKind::Empty => "empty",
        DbKind::NotSqlite => "not sqlite",
        DbKind::Cut => "cut",
        DbKind::TornCopy => "torn copy",
        DbKind::Plain => "plain",
        DbKind::Modified => "modified",
        DbKind::Torn => "torn",
        DbKind::Whole => "whole",
        DbKind::Pending => "pending",
        DbKind::Superseded => "superseded",
        DbKind::Older => "older",
    }
}

/// What the file named `app.db-shadow` is.
pub fn shadow(kind: ShadowKind) -> &'static str {
    match kind {
        ShadowKind::Missing => "missing",
        ShadowKind::Lost => "lost",
        ShadowKind::Unrelated => "unrelated",
        ShadowKind::Torn => "torn",
        ShadowKind::Whole => "whole",
        ShadowKind::Pending => "pending",
        ShadowKind::Modified => "modified",
        ShadowKind::Superseded => "superseded",
    }
}

/// How the shadow's commit is related to the database's.
pub fn relation(relation: Relation) -> &'static str {
    match relation {
        Relation::Child => "child",
        Relation::Parent => "parent",
        Relation::Ahead => "ahead",
        Relation::None => "none",
    }
}

/// What a locked byte is for, as the engine's table of locks calls it.
pub fn place(place: LockedPlace) -> &'static str {
    match place {
        LockedPlace::Pending => "PENDING",
        LockedPlace::Reserved => "RESERVED",
        LockedPlace::Shared => "SHARED",
        LockedPlace::Life => "LIFE",
        LockedPlace::Open => "OPEN",
        LockedPlace::Writer => "WRITER",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn openings_have_their_words() {
        use Action::{Create, CreateAfresh, KeepRebuild, KeepRepair, KeepUndo, UseShadow};
        let of = |action| opening(&Opening::Row(action, ""));
        assert_eq!(
            [Create, CreateAfresh, UseShadow].map(of),
            ["create", "create afresh", "use shadow"]
        );
        let kept = [KeepRepair, KeepUndo, KeepRebuild].map(of);
        assert_eq!(kept, ["keep and repair", "keep and undo", "keep and rebuild"]);
        let others = [Opening::Join, Opening::StockFirst, Opening::FinishRenames];
        let words = ["join", "stock first", "finish renames"];
        assert_eq!(others.map(|other| opening(&other)), words);
        let replaced = Opening::Replaced(String::new());
        let refused = [Opening::OtherFormat(3), Opening::HardLinks(2), replaced];
        let words = ["refuse other format", "refuse hard links", "refuse others"];
        assert_eq!(refused.map(|refused| opening(&refused)), words);
    }

    #[test]
    fn refusals_have_their_words() {
        use Refusal::{
            BothTorn, Cut, Diverged, Emptied, Hidden, Missing, NotSqlite, ShadowLost, TornCopy,
        };
        let all = [
            (Missing, "missing"),
            (Emptied, "emptied"),
            (NotSqlite, "not sqlite"),
            (Cut, "cut"),
            (Diverged, "diverged"),
            (ShadowLost, "shadow lost"),
            (TornCopy, "torn copy"),
            (BothTorn, "both torn"),
            (Hidden, "hidden"),
        ];
        for (refusal, word) in all {
            let told = opening(&Opening::Refuse(refusal, String::new()));
            assert_eq!(told.strip_prefix("refuse "), Some(word));
            assert_eq!(opening(&Opening::Row(Action::Refuse(refusal), "")), told);
        }
    }

    #[test]
    fn what_is_seen_has_its_words() {
        use DbKind::{
            Cut, Empty, Missing, Modified, NotSqlite, Pending, Plain, Superseded, Torn, TornCopy,
            Whole,
        };
        let broken = [Missing, Empty, NotSqlite, Cut, TornCopy, Torn].map(database);
        assert_eq!(broken, ["missing", "empty", "not sqlite", "cut", "torn copy", "torn"]);
        let sound = [Plain, Modified, Whole, Pending, Superseded].map(database);
        assert_eq!(sound, ["plain", "modified", "whole", "pending", "superseded"]);
        let broken = [ShadowKind::Missing, ShadowKind::Lost, ShadowKind::Unrelated].map(shadow);
        assert_eq!(broken, ["missing", "lost", "unrelated"]);
        let sound = [
            ShadowKind::Torn,
            ShadowKind::Whole,
            ShadowKind::Pending,
            ShadowKind::Modified,
            ShadowKind::Superseded,
        ];
        let words = ["torn", "whole", "pending", "modified", "superseded"];
        assert_eq!(sound.map(shadow), words);
        let relations = [Relation::Child, Relation::Parent, Relation::Ahead, Relation::None];
        assert_eq!(relations.map(relation), ["child", "parent", "ahead", "none"]);
        let places = [LockedPlace::Pending, LockedPlace::Reserved, LockedPlace::Shared];
        assert_eq!(places.map(place), ["PENDING", "RESERVED", "SHARED"]);
        let ours = [LockedPlace::Life, LockedPlace::Open, LockedPlace::Writer];
        assert_eq!(ours.map(place), ["LIFE", "OPEN", "WRITER"]);
    }
}
