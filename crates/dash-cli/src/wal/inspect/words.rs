//! Words for what the engine found.

use dash_wal::Report;
use dash_wal::inspect::{
    Action, ChainSeen, DatabaseSeen, GenerationSeen, HeadIs, InMemorySeen, LockedFile, LockedPlace,
    Opening, Relation, Whose,
};

/// What opening through dash would do, as a sentence.
pub fn opening(report: &Report) -> String {
    match &report.opening {
        Opening::Join => {
            let stock = report.stock.map(|stock| format!(" with dash_stock={}", stock.name()));
            format!("joins the connections that have it open{}", stock.unwrap_or_default())
        }
        Opening::Held(seen) => format!(
            "is refused to other processes: {} has it open with dash_wal=memory, and its last commits are in memory that no \
             other process sees; `SELECT dash_backup(path)` there makes a copy",
            holder(*seen)
        ),
        Opening::Create => "makes an empty database".into(),
        Opening::OtherMode => {
            "has nothing to recover: it is not in WAL mode, and no log lies beside it".into()
        }
        Opening::HardLinks(links) => format!(
            "is refused: the file has {links} hard links, and a log beside each of them would be another one; remove the others"
        ),
        Opening::Refuse(_, message) => format!("is refused: {message}"),
        Opening::Row(Action::Leave, _)
            if !report.fence
                && report.coordination.is_none()
                && report.wal.is_none_or(|wal| wal.len == 0) =>
        {
            "has nothing to recover: it was closed cleanly".into()
        }
        Opening::Row(done, story) => match report.in_memory.filter(|_| *done == Action::Replay) {
            Some(seen) => format!(
                "{} ({} had -wal in memory, and was killed, or the power was lost: the log has what -wal's file lacks)",
                action(*done),
                holder(seen)
            ),
            None => format!("{} ({story})", action(*done)),
        },
    }
}

/// Where `-wal` is, if it is in memory, or was.
pub fn in_memory(report: &Report) -> Option<String> {
    let by = holder(report.in_memory?);
    Some(match report.open {
        true => format!(
            "{by} has -wal in memory (dash_wal=memory): its file is behind on purpose, and the log has what it lacks"
        ),
        false => format!(
            "{by} had -wal in memory (dash_wal=memory): its file is behind, and the log has what it lacks"
        ),
    })
}

/// Who has, or had, `-wal` in memory.
fn holder(seen: InMemorySeen) -> String {
    let unknown = || "a process that is not known".to_owned();
    seen.process.map_or_else(unknown, |process| format!("process {process}"))
}

/// What a row of the recovery table does, as a part of a sentence.
fn action(action: Action) -> &'static str {
    match action {
        Action::Leave => "leaves everything to SQLite's own recovery of -wal",
        Action::Blank => "makes -wal empty, as all that was in it is in the database",
        Action::Replay => {
            "writes the log's frames into -wal where that lacks them, then SQLite reads -wal"
        }
        Action::Discard => "takes the database as it is and marks the log void",
        Action::RefuseLost | Action::RefuseAbsent | Action::RefuseAnother | Action::RefuseGap => {
            "is refused"
        }
    }
}

/// What the file named `app.db` is.
pub fn database(seen: Option<&DatabaseSeen>) -> &'static str {
    match seen {
        None => "missing",
        Some(seen) if seen.len == 0 => "empty",
        Some(DatabaseSeen { header: Some(header), .. }) if header.is_wal => {
            "an SQLite database in WAL mode"
        }
        Some(DatabaseSeen { header: Some(header), .. }) if header.is_sqlite => {
            "an SQLite database, not in WAL mode"
        }
        Some(_) => "not an SQLite database",
    }
}

/// What a log's head says.
pub fn head(head: HeadIs) -> &'static str {
    match head {
        HeadIs::Clean => "clean: no record counts",
        HeadIs::InUse => "in use: what is in it may be nowhere else",
        HeadIs::Absent => "never written: the log was made and not used",
        HeadIs::Damaged => "damaged: all its records may count",
    }
}

/// Whom a log belongs to.
pub fn whose(whose: Whose) -> String {
    let Whose { owner, group, counts } = whose;
    match counts {
        true => format!("to user {owner}, group {group}: statements in it are run again"),
        false => format!(
            "to user {owner}, group {group}, and neither may write the database: statements in it are not run again"
        ),
    }
}

/// A window of records, as a sentence.
pub fn chain(chain: &ChainSeen) -> String {
    let ChainSeen { sequences, frames, first_frame, commits, .. } = chain;
    let records = match sequences {
        (first, last) if first == last => format!("record {first}"),
        (first, last) => format!("records {first} to {last}"),
    };
    let last = first_frame + frames.saturating_sub(1);
    let frames = match frames {
        0 => "no frame".to_owned(),
        1 => format!("frame {first_frame}"),
        _ => format!("frames {first_frame} to {last}"),
    };
    format!("{records}: {frames}, {}", counted(*commits, "commit"))
}

/// A generation of `-wal`.
pub fn generation(generation: &GenerationSeen) -> String {
    let [one, two] = generation.salts;
    let older = match generation.first == one {
        true => String::new(),
        false => format!(", older ones from salt {:08x} on", generation.first),
    };
    format!("generation {}, salts {one:08x} {two:08x}{older}", generation.number)
}

/// How `-wal` stands to the log.
pub fn relation(report: &Report) -> &'static str {
    match (&report.log, report.relation) {
        (None, _) => "there is no log to compare with",
        (Some(Err(_)), _) => "the log can't be read",
        (Some(Ok(_)), None) => "the log says nothing of -wal",
        (_, Some(Relation::Absent)) => "-wal is missing",
        (_, Some(Relation::Blank)) => "-wal is empty",
        (_, Some(Relation::Older)) => "-wal is older than what the log speaks of",
        (_, Some(Relation::Same)) => "-wal is of the generation that the log speaks of",
        (_, Some(Relation::Newer)) => "-wal is newer than what the log speaks of",
    }
}

/// A file's role.
pub fn file(file: LockedFile) -> &'static str {
    match file {
        LockedFile::Database => "database",
        LockedFile::Index => "wal-index",
        LockedFile::Coordination => "coordination file",
    }
}

/// What a locked place is for.
pub fn place(place: LockedPlace) -> &'static str {
    match place {
        LockedPlace::Pending => "PENDING",
        LockedPlace::Reserved => "RESERVED",
        LockedPlace::Shared => "SHARED",
        LockedPlace::Stock => "WRITE, CKPT or RECOVER of SQLite (shared: dash has it open)",
        LockedPlace::Readers => "READ (readers of -wal)",
        LockedPlace::Open => "OPEN (opening, closing or recovering)",
        LockedPlace::Writer => "WRITER (a write transaction)",
        LockedPlace::Alive => "ALIVE (open through dash)",
        LockedPlace::Checkpoint => "CKPT (a checkpoint)",
        LockedPlace::Recovery => "RECOVER (the wal-index is made anew)",
        LockedPlace::Log => "LOG (a commit is being flushed)",
    }
}

/// `1 commit`, `2 commits`.
pub fn counted(number: u32, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}
