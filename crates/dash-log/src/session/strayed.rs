//! Why a log that lies elsewhere is not used, and what to do (WAL-26).

use super::Names;
use dash_engine::error::Error;
use dash_engine::open::shell_word;

/// Why a log that lies elsewhere is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strayed {
    /// It is not there, or its folder is not.
    Lost,
    /// What is there is another log, or none.
    Foreign,
    /// It is shorter than it was.
    Cut,
    /// The sign is another database's: somebody has copied it.
    Copied,
    /// The sign is damaged.
    Unreadable,
    /// The sign does not belong to the database's owner, or has another name.
    Planted,
    /// What is there does not belong to the database's owner, has another name, or is no file.
    Alien,
}

/// Why a database is not opened whose log strayed, and what to do.
pub(super) fn refusal(names: &Names, strayed: Strayed) -> Error {
    let (db, log, sign) = (shell_word(&names.db), names.shown_log(), names.log.to_string_lossy());
    let without = format!("let `sqlite-dash recover {db} --discard` take {db} without it");
    Error::CantOpen(match strayed {
        Strayed::Lost => format!(
            "{log} is missing: it is the log of {db}, as {sign} says, and may hold commits that are nowhere else; mount the \
             folder that it is in, or put it back, or {without}. What lay on a tmpfs is gone after a reboot"
        ),
        Strayed::Foreign => format!(
            "{log} is not the log of {db} that {sign} speaks of, but another one, or damaged; put the right one there, or {without}"
        ),
        Strayed::Cut => format!(
            "{log}, the log of {db}, is shorter than it was, and may have lost commits; put it back whole, or {without}"
        ),
        Strayed::Copied => format!(
            "{sign} says that the log of {db} is {log}, and was written for another file: {db} is a copy of it. Where its log \
             moved with it, `sqlite-dash recover {db} --keep` takes that; else {without}"
        ),
        Strayed::Unreadable => format!(
            "{sign} says where the log of {db} is, and is damaged; put it back, or {without}"
        ),
        Strayed::Planted => format!(
            "{sign} says that the log of {db} lies elsewhere, and is not followed: it does not belong to the owner of {db}, or has \
             hard links. Where it is right, give it the owner and the group of {db}; else {without}"
        ),
        Strayed::Alien => format!(
            "{log}, where the log of {db} is to be, as {sign} says, is left alone: it does not belong to the owner of {db}, has hard \
             links, or is no file. Where it is the log, give it the owner and the group of {db}; else {without}"
        ),
    })
}

/// Why a connection does not join others that have the database open, and use a log that is not to
/// be found from here (WAL-29).
pub(super) fn refusal_to_join(names: &Names, strayed: Strayed) -> Error {
    let (db, log) = (names.shown(), names.shown_log());
    let why = match strayed {
        Strayed::Lost => "is missing here",
        Strayed::Cut => "is shorter here than it was",
        _ => "is another file here",
    };
    Error::CantOpen(format!(
        "{log} {why}: it is the log of {db}, which others have open, and a commit of this process would find no log; mount the \
         folder that it is in for this process, too, or, where it was removed, close {db} everywhere first, which makes all \
         durable without it"
    ))
}
