//! Words for what the engine found.

use dash_shadow::Report;
use dash_shadow::format::{BlockError, Place, State};
use dash_shadow::inspect::{
    Action, DbKind, LockedFile, LockedPlace, Opening, Relation, Seen, ShadowKind, Verdict,
};

/// Where a commit block is.
pub fn block_place(place: Place) -> &'static str {
    match place {
        Place::FirstPage => "in page 1",
        Place::Tail => "in the tail",
        Place::Announced => "announced in page 1, missing in the tail",
    }
}

/// What opening through dash would do, as a sentence.
pub fn opening(report: &Report) -> String {
    match &report.opening {
        Opening::Join => "joins the connections that have it open".into(),
        Opening::OtherFormat(version) => {
            format!("is refused: it {}", dash_shadow::inspect::written_by(*version))
        }
        Opening::HardLinks(links) => {
            format!(
                "is refused: the file has {links} hard links, and exchanging names would split them; remove the others"
            )
        }
        Opening::Refuse(_, message) | Opening::Replaced(message) => {
            format!("is refused: {message}")
        }
        Opening::StockFirst => {
            "first lets stock SQLite finish the journal it left behind, then looks again".into()
        }
        Opening::FinishRenames => {
            "first finishes an exchange of names that was cut off, then looks again".into()
        }
        Opening::Row(done @ (Action::Create | Action::CreateAfresh), _) => action(*done).into(),
        // From the files alone it is the same; the table's story is of the worse of the two.
        Opening::Row(done @ Action::KeepRebuild, _)
            if (report.verdict.db, report.verdict.shadow)
                == (DbKind::Whole, ShadowKind::Missing) =>
        {
            let story = "the database was made plain, or its shadow was removed by hand";
            format!("{} ({story})", action(*done))
        }
        Opening::Row(done, story) => format!("{} ({story})", action(*done)),
    }
}

/// What a row of the recovery table does, as a part of a sentence.
fn action(action: Action) -> &'static str {
    match action {
        Action::Create => "makes an empty database",
        Action::CreateAfresh => {
            "makes an empty database, as the one that is gone was closed cleanly; its shadow is put aside as FILE-shadow-old"
        }
        Action::KeepRepair => {
            "keeps the database as it is; the shadow is mended before it is next written"
        }
        Action::KeepUndo => {
            "keeps the database as it is and undoes an unfinished transaction over several databases"
        }
        Action::KeepRebuild => {
            "keeps the database as it is; a new shadow is made before the next commit"
        }
        Action::UseShadow => {
            "completes the newest commit: the shadow is made durable and becomes the database"
        }
        Action::Refuse(_) => "is refused",
    }
}

/// What the file named `app.db` is.
pub fn database(report: &Report) -> String {
    let usual = match report.verdict.db {
        DbKind::Plain => return plain(report.database.as_ref()),
        DbKind::Missing => "missing",
        DbKind::Empty => "empty",
        DbKind::NotSqlite => "not an SQLite database",
        DbKind::Cut => "shorter than its header says",
        DbKind::TornCopy => {
            "a copy made while the database was written: it holds pages of two states"
        }
        DbKind::Modified => "written by another program after dash's last commit",
        DbKind::Superseded => "an older state, marked so",
        DbKind::Older => "an older state than the last commit, as a backup that was put there",
        DbKind::Torn => "cut off while it was being written",
        DbKind::Whole => "the state after a commit of dash",
        DbKind::Pending => "the state after a commit whose super-journal still exists",
    };
    usual.to_owned()
}

/// An SQLite database in which dash has not committed: it may be a copy of a file in which dash
/// has.
fn plain(seen: Option<&Seen>) -> String {
    let copied = seen.filter(|seen| !seen.is_bound()).and_then(|seen| {
        let block = seen.commit.as_ref().ok()?;
        // Otherwise somebody has written into it since.
        let is_of_block = seen.header.is_some_and(|header| header.counter == block.counter);
        match (block.state, block.vouched) {
            (State::Superseded, Some(vouched)) if is_of_block => Some(format!(
                "a copy of a shadow: the state before commit number {}, which was made in the other file and is not in this one",
                vouched.sequence
            )),
            (State::Settled, Some(vouched)) if is_of_block => {
                Some(format!("a copy of the state after commit number {}", vouched.sequence))
            }
            (State::Whole, _) if seen.as_committed => {
                Some(format!("a copy of the state after commit number {}", block.sequence))
            }
            _ => None,
        }
    });
    copied.unwrap_or_else(|| "a plain SQLite database".to_owned())
}

/// What the file named `app.db-shadow` is.
pub fn shadow(report: &Report) -> &'static str {
    let is_copy =
        report.shadow.as_ref().is_some_and(|seen| seen.commit.is_ok() && !seen.is_bound());
    match report.verdict.shadow {
        ShadowKind::Missing => "missing",
        ShadowKind::Lost => {
            "missing, though the database was not closed cleanly: it may have held the newest commit"
        }
        ShadowKind::Unrelated if is_copy => "a copy made from elsewhere, not a shadow written here",
        ShadowKind::Unrelated => "not a shadow of this database",
        ShadowKind::Torn => "cut off while it was being written",
        ShadowKind::Whole => "the state after a commit of dash",
        ShadowKind::Pending => "a commit over several databases that was not finished",
        ShadowKind::Modified => {
            "written by another program after dash's last commit, while it was the database"
        }
        ShadowKind::Superseded => "an older state, marked so",
    }
}

/// Whether names and sequences agree.
pub fn relation(report: &Report) -> &'static str {
    let Verdict { db, shadow, relation, .. } = report.verdict;
    match (db, shadow, relation) {
        (DbKind::Missing, ..) => "there is no database to compare with",
        (_, ShadowKind::Missing | ShadowKind::Lost, _) => "there is no shadow to compare with",
        // What every commit does until it is done.
        (DbKind::Whole, ShadowKind::Torn | ShadowKind::Pending, Relation::Child) => {
            "yes: the shadow's commit is made on the database's and is not finished"
        }
        (.., Relation::Child) => "no: the shadow's commit was made on the database's, it is newer",
        (.., Relation::Parent) => "yes: the database's commit was made on the shadow's",
        (.., Relation::Ahead) => {
            "no: the database was not made on the shadow's commit, by SQLite's change counter"
        }
        (.., Relation::None) => "no: the two say nothing of each other",
    }
}

/// What a commit block says of its file.
pub fn state(state: State) -> &'static str {
    match state {
        State::Whole => "whole",
        State::Prepared => "prepared",
        State::Superseded => "superseded",
        State::Settled => "settled",
    }
}

/// Why there is no block.
pub fn block_error(error: BlockError) -> String {
    match error {
        BlockError::Absent => "none".into(),
        BlockError::Damaged => "damaged".into(),
        BlockError::OtherFormat(version) => format!("of another format, {version}"),
    }
}

/// A file's role.
pub fn file(file: LockedFile) -> &'static str {
    match file {
        LockedFile::Database => "database",
        LockedFile::Shadow => "shadow",
        LockedFile::Coordination => "coordination file",
    }
}

/// What a locked place is for.
pub fn place(place: LockedPlace) -> &'static str {
    match place {
        LockedPlace::Pending => "PENDING",
        LockedPlace::Reserved => "RESERVED",
        LockedPlace::Shared => "SHARED",
        LockedPlace::Life => "LIFE (open through dash)",
        LockedPlace::Open => "OPEN (opening, closing or recovering)",
        LockedPlace::Writer => "WRITER (a write transaction)",
    }
}
