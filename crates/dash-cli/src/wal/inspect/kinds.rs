//! What the report for programs calls things, one word or a few each. Programs look for them, so
//! they stay as they are, whatever the engine calls its own.

use dash_wal::inspect::{Action, HeadIs, LockedPlace, Opening, Refusal, Relation, Strayed};

/// What opening would do.
pub fn opening(opening: &Opening) -> &'static str {
    match opening {
        Opening::Join => "join",
        Opening::Held(_) => "refuse in memory",
        Opening::Create => "create",
        Opening::OtherMode => "other mode",
        Opening::HardLinks(_) => "refuse hard links",
        Opening::Refuse(why, _) => refusal(*why),
        Opening::Row(done, _) => action(*done),
    }
}

fn action(action: Action) -> &'static str {
    match action {
        Action::Leave => "leave",
        Action::Blank => "blank",
        Action::Replay => "replay",
        Action::Discard => "discard",
        Action::RefuseLost => "refuse lost",
        Action::RefuseAbsent => "refuse absent",
        Action::RefuseAnother => "refuse another",
        Action::RefuseGap => "refuse gap",
    }
}

fn refusal(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::Newer => "refuse newer",
        Refusal::Damaged => "refuse damaged",
        Refusal::DatabaseMissing => "refuse database missing",
        Refusal::LogMissing => "refuse log missing",
        Refusal::LogWiped => "refuse log wiped",
        Refusal::WalRemoved => "refuse wal removed",
        Refusal::Another => "refuse another",
        Refusal::WalCut => "refuse wal cut",
        Refusal::Statements => "refuse statements",
        Refusal::Stranger => "refuse stranger",
        Refusal::Linked => "refuse linked",
        Refusal::Others => "refuse others",
        Refusal::Strayed(strayed) => match strayed {
            Strayed::Lost => "refuse log elsewhere lost",
            Strayed::Foreign => "refuse log elsewhere foreign",
            Strayed::Cut => "refuse log elsewhere cut",
            Strayed::Copied => "refuse log elsewhere copied",
            Strayed::Unreadable => "refuse log elsewhere unreadable",
            Strayed::Planted => "refuse log elsewhere planted",
            Strayed::Alien => "refuse log elsewhere alien",
        },
    }
}

/// What `-wal` is beside what the log says.
pub fn relation(relation: Relation) -> &'static str {
    match relation {
        Relation::Absent => "absent",
        Relation::Older => "older",
        Relation::Blank => "blank",
        Relation::Same => "same",
        Relation::Newer => "newer",
    }
}

/// What a log's head says.
pub fn head(head: HeadIs) -> &'static str {
    match head {
        HeadIs::Clean => "clean",
        HeadIs::InUse => "in use",
        HeadIs::Absent => "absent",
        HeadIs::Damaged => "damaged",
    }
}

/// What a locked byte is for, as the engine's table of locks calls it.
pub fn place(place: LockedPlace) -> &'static str {
    match place {
        LockedPlace::Pending => "PENDING",
        LockedPlace::Reserved => "RESERVED",
        LockedPlace::Shared => "SHARED",
        LockedPlace::Stock => "STOCK",
        LockedPlace::Readers => "READERS",
        LockedPlace::Open => "OPEN",
        LockedPlace::Writer => "WRITER",
        LockedPlace::Alive => "ALIVE",
        LockedPlace::Checkpoint => "CHECKPOINT",
        LockedPlace::Recovery => "RECOVERY",
        LockedPlace::Log => "LOG",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn openings_have_their_words() {
        use Action::{
            Blank, Discard, Leave, RefuseAbsent, RefuseAnother, RefuseGap, RefuseLost, Replay,
        };
        let of = |action| opening(&Opening::Row(action, ""));
        let rows = [Leave, Blank, Replay, Discard].map(of);
        assert_eq!(rows, ["leave", "blank", "replay", "discard"]);
        let refused = [RefuseLost, RefuseAbsent, RefuseAnother, RefuseGap].map(of);
        assert_eq!(refused, ["refuse lost", "refuse absent", "refuse another", "refuse gap"]);
        let others = [Opening::Join, Opening::Create, Opening::OtherMode, Opening::HardLinks(2)];
        let words = ["join", "create", "other mode", "refuse hard links"];
        assert_eq!(others.map(|other| opening(&other)), words);
    }

    #[test]
    fn refusals_have_their_words() {
        use Refusal::{
            Another, Damaged, DatabaseMissing, Linked, LogMissing, LogWiped, Newer, Statements,
            Stranger, WalCut, WalRemoved,
        };
        let of = |refusal| opening(&Opening::Refuse(refusal, String::new()));
        let all = [
            (Newer, "newer"),
            (Damaged, "damaged"),
            (DatabaseMissing, "database missing"),
            (LogMissing, "log missing"),
            (LogWiped, "log wiped"),
            (WalRemoved, "wal removed"),
            (Another, "another"),
            (WalCut, "wal cut"),
            (Statements, "statements"),
            (Stranger, "stranger"),
            (Linked, "linked"),
            (Refusal::Others, "others"),
            (Refusal::Strayed(Strayed::Lost), "log elsewhere lost"),
            (Refusal::Strayed(Strayed::Foreign), "log elsewhere foreign"),
            (Refusal::Strayed(Strayed::Cut), "log elsewhere cut"),
            (Refusal::Strayed(Strayed::Copied), "log elsewhere copied"),
            (Refusal::Strayed(Strayed::Unreadable), "log elsewhere unreadable"),
            (Refusal::Strayed(Strayed::Planted), "log elsewhere planted"),
            (Refusal::Strayed(Strayed::Alien), "log elsewhere alien"),
        ];
        for (refusal, word) in all {
            assert_eq!(of(refusal).strip_prefix("refuse "), Some(word));
        }
    }

    #[test]
    fn what_is_seen_has_its_words() {
        let relations = [Relation::Absent, Relation::Older, Relation::Blank, Relation::Same];
        assert_eq!(relations.map(relation), ["absent", "older", "blank", "same"]);
        assert_eq!(relation(Relation::Newer), "newer");
        let heads = [HeadIs::Clean, HeadIs::InUse, HeadIs::Absent, HeadIs::Damaged];
        assert_eq!(heads.map(head), ["clean", "in use", "absent", "damaged"]);
        use LockedPlace::{
            Alive, Checkpoint, Log, Open, Pending, Readers, Recovery, Reserved, Shared, Stock,
            Writer,
        };
        let sqlites = [Pending, Reserved, Shared, Stock, Readers].map(place);
        assert_eq!(sqlites, ["PENDING", "RESERVED", "SHARED", "STOCK", "READERS"]);
        let ours = [Open, Writer, Alive, Checkpoint, Recovery, Log].map(place);
        assert_eq!(ours, ["OPEN", "WRITER", "ALIVE", "CHECKPOINT", "RECOVERY", "LOG"]);
    }
}
